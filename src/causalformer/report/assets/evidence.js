/* The panel beside the drawing: what speaks for an edge; what drives a series and what it drives. */

function describeEdge(edge) {
  const cause = labels[edge.cause], effect = labels[edge.effect];
  if (edge.kind === "instantaneous") {
    return edge.oriented
      ? `${cause} and ${effect} change together within the slot, more than their pasts explain; the shape of the noise speaks for this direction.`
      : `${cause} and ${effect} change together within the slot, more than their pasts explain; the direction is a guess.`;
  }
  const whose = edge.kind === "self" ? "its own past" : `the past of ${cause}`;
  if (!known(edge.relative_gain)) return `${cause} has a high causal score for ${effect} among all series.`;
  if (edge.relative_gain > 0) return `Without ${whose}, held-out errors of ${effect} grow by ${percent(edge.relative_gain)}.`;
  return `The network's held-out errors of ${effect} do not grow without ${whose}; the terms test speaks for this edge.`;
}

function whyNot(edge) {
  if (edge.found) return null;
  const reason = edge.q_value <= alpha
    ? "significant, but smaller than an edge has to be"
    : `its q-value is above ${alpha}`;
  return el("p", { class: "lag" }, `Near miss, not in the graph: ${reason}.`);
}

function numbersOf(edge) {
  const rows = [
    ["relative gain", known(edge.relative_gain) ? percent(edge.relative_gain) : null],
    ["strength", known(edge.strength) ? figure(edge.strength) : null],
    ["p-value", known(edge.p_value) ? probability(edge.p_value) : null],
    ["q-value", known(edge.q_value) ? probability(edge.q_value) : null],
    ["p of the terms test", known(edge.terms_p_value) ? probability(edge.terms_p_value) : null],
    ["partial correlation", known(edge.partial_correlation) ? figure(edge.partial_correlation) : null],
    ["found in refits", known(edge.frequency) ? percent(edge.frequency) : null],
    ["found in recordings", ownGraphs ? agreeing(edge.cause, edge.effect) : null],
    ["score", edge.found && known(edge.score) ? figure(edge.score) : null],
  ].filter((row) => row[1] !== null);
  return el("dl", { class: "numbers" }, ...rows.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
}

function edgeCard(edge) {
  return [
    el("h3", {}, nameOf(edge.cause), arrowOf(edge), nameOf(edge.effect)),
    el("p", { class: "lag" }, delay(edge.lag)),
    whyNot(edge),
    el("p", {}, describeEdge(edge)),
    edge.may_be_confounded ? el("p", { class: "notice" }, `This edge ${CONFOUNDED}: ${edge.may_be_confounded}`) : null,
    numbersOf(edge),
    edge.profile ? lagProfile(edge) : null,
    scatter(edge),
    partialPlot(edge),
    edge.points ? null : el("p", { class: "lag" }, `Only the strongest ${facts.edges.length} edges come with plots.`),
  ];
}

function linkList(title, list, other) {
  const item = (edge) => el("li", {},
    el("button", { type: "button", class: "link", onclick: () => chooseEdge(edge) }, nameOf(other(edge))),
    el("span", {}, `lag ${edge.lag}${markOf(edge.may_be_confounded)}, ${weightField} ${figure(edge.weight)}`));
  return [el("h4", {}, `${title} (${list.length})`),
    list.length ? el("ul", {}, ...list.map(item)) : el("p", { class: "lag" }, "none")];
}

/* The shown edges of a series to others; a link without direction is neither cause nor effect. */
function around(i) {
  const own = shownEdges.filter((edge) => (edge.cause === i) !== (edge.effect === i));
  return {
    causes: own.filter((edge) => edge.oriented && edge.effect === i),
    effects: own.filter((edge) => edge.oriented && edge.cause === i),
    links: own.filter((edge) => !edge.oriented),
  };
}

function nodeCard(i) {
  const own = facts.series.figures[i];
  const { causes, effects, links } = around(i);
  const selves = shownEdges.filter((edge) => edge.cause === i && edge.effect === i);
  return [
    el("h3", {}, nameOf(i)),
    known(own.r2) ? el("p", { class: "lag" }, `${percent(Math.max(0, own.r2))} of its variance can be predicted from the past, on held-out data.`) : null,
    ...linkList("Its causes", causes, (edge) => edge.cause),
    ...linkList("Its effects", effects, (edge) => edge.effect),
    ...(links.length ? linkList("Contemporaneous links, direction unknown", links, (edge) => edge.cause + edge.effect - i) : []),
    ...(selves.length ? linkList("Its own past", selves, () => i) : []),
    el("p", {}, el("button", { type: "button", onclick: () => lookAtTime(i) }, "See it over time")),
  ];
}

function refreshPanel() {
  const pick = byId("pick");
  pick.value = state.node === null ? "" : String(state.node);
  byId("said").textContent = state.node !== null ? `Details: ${labels[state.node]}`
    : state.edge ? `Details: ${titleOf(state.edge)}, ${delay(state.edge.lag)}` : "";
  if (state.node !== null) replace(byId("details"), ...nodeCard(state.node));
  else if (state.edge) replace(byId("details"), ...edgeCard(state.edge));
  else replace(byId("details"), el("p", { class: "lag" }, found.length
    ? "Click an arrow for the evidence, a series for its causes and effects."
    : "There is no edge. Near misses, if there are any, can be switched on in the filters."));
}

function fillPicker() {
  const pick = byId("pick");
  pick.append(el("option", { value: "" }, "–"), ...labels.map((label, i) => el("option", { value: i }, shortened(label, 60))));
  pick.addEventListener("change", () => chooseNode(pick.value === "" ? null : Number(pick.value)));
}

/* --- Small plots -------------------------------------------------------------------------------- */

function lagProfile(edge) {
  const { first, values } = edge.profile;
  const width = 340, height = 110, base = 88, left = 6;
  const most = Math.max(...values.map((value) => value || 0), 1e-300);
  const step = (width - 2 * left) / values.length;
  const every = Math.ceil(values.length / 16);
  const drawn = new Set(found.filter((e) => e.cause === edge.cause && e.effect === edge.effect).map((e) => e.lag).concat(edge.lag));
  const bars = values.flatMap((value, k) => {
    const tall = Math.max(0, ((value || 0) / most) * 76), x = left + k * step;
    const bar = svg("rect", {
      class: drawn.has(first + k) ? "bar main" : "bar", x: x + step * 0.12, y: base - tall,
      width: step * 0.76, height: Math.max(tall, 0.8), rx: 2,
    }, svg("title", {}, `lag ${first + k}: ${percent((value || 0) / most)} of the largest`));
    const label = k % every ? null : svg("text", { x: x + step / 2, y: base + 15, "text-anchor": "middle" }, String(first + k));
    return [bar, label];
  });
  const peak = values.indexOf(Math.max(...values.map((v) => v || 0))) + first;
  return el("figure", {}, el("figcaption", {}, "Contribution of each lag, in slots"),
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Lag profile; lag ${peak} contributes most.` },
      svg("line", { class: "axis", x1: left, x2: width - left, y1: base + 0.5, y2: base + 0.5 }), ...bars));
}

function range(values) {
  const inside = values.filter(known);
  let low = Math.min(...inside), high = Math.max(...inside);
  if (!(high > low)) { low -= 0.5; high += 0.5; }
  return [low, high];
}

/* layers: [{values, class}] over the same x */
function pointPlot(x, layers, xTitle, yTitle, caption, summaryText) {
  const width = 340, height = 216, box = { left: 46, right: 8, top: 8, bottom: 38 };
  const [x0, x1] = range(x), [y0, y1] = range(layers.flatMap((layer) => layer.values));
  const across = (v) => box.left + ((v - x0) / (x1 - x0)) * (width - box.left - box.right);
  const down = (v) => height - box.bottom - ((v - y0) / (y1 - y0)) * (height - box.top - box.bottom);
  const dots = layers.flatMap((layer) => x.map((value, k) => (known(value) && known(layer.values[k])
    ? svg("circle", { class: layer.class, cx: across(value).toFixed(1), cy: down(layer.values[k]).toFixed(1), r: layer.r }) : null)));
  const text = (content, attributes) => svg("text", attributes, content);
  return el("figure", {}, el("figcaption", {}, ...caption),
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": summaryText },
      svg("path", { class: "axis", fill: "none", d: `M ${box.left} ${box.top} V ${height - box.bottom} H ${width - box.right}` }),
      text(figure(x0), { x: box.left, y: height - 23 }),
      text(figure(x1), { x: width - box.right, y: height - 23, "text-anchor": "end" }),
      text(figure(y0), { x: box.left - 5, y: height - box.bottom, "text-anchor": "end" }),
      text(figure(y1), { x: box.left - 5, y: box.top + 9, "text-anchor": "end" }),
      text(shortened(xTitle, 46), { x: (width + box.left) / 2, y: height - 6, "text-anchor": "middle" }),
      text(shortened(yTitle, 30), { transform: `translate(11 ${(height - box.bottom) / 2 + 4}) rotate(-90)`, "text-anchor": "middle" }),
      ...dots));
}

const beforeText = (edge) => (edge.lag === 0 ? labels[edge.cause] : `${labels[edge.cause]}, ${plural(edge.lag, "slot")} before`);

function scatter(edge) {
  const { x, y } = edge.points || { x: [] };
  if (!x.length) return null;
  return pointPlot(x, [{ values: y, class: "dot", r: 2.4 }], beforeText(edge), labels[edge.effect],
    ["Observed values"], `Scatter plot of ${labels[edge.effect]} against ${beforeText(edge)}.`);
}

function partialPlot(edge) {
  const { x, part, left } = edge.points || {};
  if (!part || !x.length) return null;
  const caption = ["All else accounted for: what this past value adds to the prediction (small orange dots), and that plus what the prediction missed (blue), in standard deviations"];
  return pointPlot(x, [{ values: left, class: "dot", r: 2.4 }, { values: part, class: "part", r: 1.6 }],
    beforeText(edge), `adds to ${labels[edge.effect]}`, caption,
    `Partial effect of ${beforeText(edge)} on ${labels[edge.effect]}.`);
}
