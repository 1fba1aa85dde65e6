/* The series over time, what drove single predictions, and the table of the data. */

const local = facts.local;
let timePlot = null;
let looked = { series: 0, at: 0 };

const slotText = (slot, times, k) => (times ? `${times[k]} (slot ${slot})` : `slot ${slot}`);

function nearest(list, value) {
  let best = 0;
  list.forEach((each, k) => { if (Math.abs(each - value) < Math.abs(list[best] - value)) best = k; });
  return best;
}

function axisTexts(_, ticks) {
  const { slot, times } = facts.series;
  return ticks.map((tick) => (times ? shortened(times[nearest(slot, tick)], 16) : String(tick)));
}

/* A line at the explained slot, drawn over the plot. */
function drawMarker(plot) {
  if (!local || !local.slots.length) return;
  const x = plot.valToPos(local.slots[looked.at], "x", true);
  const pen = plot.ctx;
  pen.save();
  pen.strokeStyle = colour("ink");
  pen.setLineDash([4, 4]);
  pen.beginPath();
  pen.moveTo(x, plot.bbox.top);
  pen.lineTo(x, plot.bbox.top + plot.bbox.height);
  pen.stroke();
  pen.restore();
}

function drawTime() {
  const host = byId("time-plot");
  if (timePlot) timePlot.destroy();
  const { slot, observed, predicted } = facts.series;
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "12px system-ui, sans-serif" };
  const value = (_, v) => figure(v);
  timePlot = new uPlot({
    width: Math.max(240, host.clientWidth - 18), height: 250,
    scales: { x: { time: false } },
    axes: [{ ...axis, values: axisTexts, space: facts.series.times ? 120 : 60 }, { ...axis, size: 58, values: (_, ticks) => ticks.map(figure) }],
    series: [
      { label: "slot", value: (_, v) => (known(v) ? slotText(Math.floor(v), facts.series.times, nearest(slot, v)) : "–") },
      { label: "observed", stroke: colour("lagged"), width: 1.6, value, points: { show: false } },
      { label: "predicted", stroke: colour("within"), width: 1.3, dash: [5, 3], value, points: { show: false } },
    ],
    hooks: { draw: [drawMarker] },
  }, [slot, observed[looked.series], predicted[looked.series]], host);
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", `${labels[looked.series]} over time, observed and predicted.`);
  timePlot.over.addEventListener("click", () => {
    const left = timePlot.cursor.left;
    if (local && known(left) && left >= 0) lookAtSlot(nearest(local.slots, timePlot.posToVal(left, "x")));
  });
}

function lookAtSlot(at) {
  looked.at = at;
  const input = byId("slot");
  const name = slotText(local.slots[at], local.times, at);
  input.value = at;
  input.setAttribute("aria-valuetext", name);
  byId("slot-name").textContent = name;
  timePlot.redraw(false);
  explain();
}

function explain() {
  const effect = local.effects[looked.series];
  const told = Object.fromEntries(Object.entries(effect).map(([name, values]) => [name, values[looked.at]]));
  const rest = told.prediction - told.bias - told.shares.reduce((sum, share) => sum + share[2], 0);
  const most = Math.max(...told.shares.map((share) => Math.abs(share[2])), Math.abs(rest), 0.01);
  const row = (name, share) => {
    const width = (50 * Math.abs(share)) / most;
    const bar = el("i", { class: share < 0 ? "down" : null });
    bar.style.width = `${width}%`;
    bar.style.left = `${share < 0 ? 50 - width : 50}%`;
    return [name, el("div", { class: "track", "aria-hidden": "true" }, bar), el("div", { class: "n" }, signed(share))];
  };
  const past = ([cause, lag, , value]) => el("div", {}, nameOf(cause),
    `, ${plural(lag, "slot")} before${known(value) ? ` (${figure(value)})` : " (missing)"}`);
  const observed = known(told.observed) ? `; it came out at ${signed(told.observed)}` : "; its value is missing";
  replace(byId("explanation"),
    el("p", {}, "Predicted for ", nameOf(looked.series), `: ${signed(told.prediction)} standard deviations from its middle${observed}. What pushed the prediction up or down:`),
    el("div", { class: "shares" }, ...told.shares.flatMap((share) => row(past(share), share[2])),
      ...row(el("div", {}, "everything else"), rest), ...row(el("div", {}, "baseline"), told.bias)));
}

function lookAtSeries(i) {
  looked.series = i;
  byId("time-series").value = i;
  drawTime();
  if (local && local.slots.length) explain();
}

function lookAtTime(i) {
  lookAtSeries(i);
  byId("time").scrollIntoView();
  byId("time-series").focus({ preventScroll: true });
}

function readyTime() {
  byId("time-series").append(...labels.map((label, i) => el("option", { value: i }, shortened(label, 60))));
  byId("time-series").addEventListener("change", (event) => lookAtSeries(Number(event.target.value)));
  const explains = local && local.slots.length;
  byId("slot-field").hidden = !explains;
  byId("time-hint").textContent = explains
    ? "Choose a slot, or click into the plot, to see which past values drove its prediction. Drag to zoom, double click to zoom out."
    : "Observed and predicted values. Drag to zoom, double click to zoom out.";
  const first = state.edge ? state.edge.effect : 0;
  if (explains) {
    const input = byId("slot");
    input.max = local.slots.length - 1;
    input.addEventListener("input", () => lookAtSlot(Number(input.value)));
  }
  lookAtSeries(first);
  if (explains) lookAtSlot(Math.floor(local.slots.length / 2));
  window.addEventListener("resize", () => timePlot.setSize({ width: Math.max(240, byId("time-plot").clientWidth - 18), height: 250 }));
}

/* --- Data --------------------------------------------------------------------------------------- */

function sparkline(values) {
  const width = 160, height = 30, n = 120;
  const every = Math.max(1, Math.floor(values.length / n));
  const picked = values.filter((_, k) => k % every === 0);
  const [low, high] = range(picked);
  let pen = "M";
  const path = picked.map((value, k) => {
    if (!known(value)) { pen = "M"; return ""; }
    const point = `${pen}${((k / (picked.length - 1 || 1)) * width).toFixed(1)} ${(height - 3 - ((value - low) / (high - low)) * (height - 6)).toFixed(1)}`;
    pen = "L";
    return point;
  });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, svg("path", { class: "spark", d: path.join("") }));
}

function drawData() {
  const { figures, observed, n_slots: nSlots } = facts.series;
  const missing = figures.some((own) => own.observed < 1);
  const r2 = figures.some((own) => known(own.r2));
  const heads = [["series"], ["over time"], ["mean", "n"], ["sd", "n"], ["least", "n"], ["most", "n"],
    ...(missing ? [["observed", "n"]] : []), ...(r2 ? [["held-out R²", "n"], ["better than linear", "n"]] : [])];
  const cell = (value) => el("td", { class: "n" }, value);
  const row = (own, i) => el("tr", { "data-name": labels[i].toLowerCase() },
    el("td", {}, el("button", { type: "button", class: "link", "aria-label": `See ${labels[i]} over time`, onclick: () => lookAtTime(i) }, nameOf(i))),
    el("td", {}, sparkline(observed[i])),
    cell(figure(own.mean)), cell(figure(own.sd)), cell(figure(own.least)), cell(figure(own.most)),
    missing ? cell(percent(own.observed)) : null,
    r2 ? cell(figure(own.r2)) : null, r2 ? cell(percent(own.better_than_linear)) : null);
  replace(byId("series-table"),
    el("thead", {}, el("tr", {}, ...heads.map(([title, kind]) => el("th", { scope: "col", class: kind }, title)))),
    el("tbody", {}, ...figures.map(row)));
  const accounted = facts.graph.metadata.time_terms || [];
  const recordings = facts.series.recordings > 1 ? ` in ${facts.series.recordings} recordings` : "";
  byId("data-hint").textContent = `${names.length} series of ${nSlots} slots${recordings}.`
    + (r2 ? " R² is the share of a series' variance that the pasts of all series predict on held-out data." : "")
    + (accounted.length ? ` Accounted for: ${accounted.join("; ")}.` : "")
    + (facts.series.thinned ? " Plots show the outline of the series: smallest and largest value of every stretch." : "");
  byId("search-field").hidden = names.length < 12;
  byId("search").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    for (const each of byId("series-table").tBodies[0].rows) each.hidden = !each.dataset.name.includes(wanted);
  });
}
