/* The filters, and the table that says the same as the drawing. */

const ROWS = 200; // drawn at once
let sorting = { field: null, down: true };
let allRows = false;

const COLUMNS = [
  { field: "cause", title: "cause", text: (e) => labels[e.cause] },
  { field: "effect", title: "effect", text: (e) => labels[e.effect] },
  { field: "lag", title: "lag", show: (e) => String(e.lag) },
  { field: "kind", title: "kind", text: (e) => kindText(e.found ? e.kind : "near miss", e.oriented) },
  { field: "strength", title: "strength", show: (e) => figure(e.strength) },
  { field: "relative_gain", title: "relative gain", show: (e) => percent(e.relative_gain) },
  { field: "p_value", title: "p", show: (e) => probability(e.p_value) },
  { field: "q_value", title: "q", show: (e) => probability(e.q_value) },
  { field: "frequency", title: "in refits", show: (e) => percent(e.frequency) },
  { field: "score", title: "score", show: (e) => figure(e.score) },
  { field: "may_be_confounded", title: "may be confounded", text: (e) => e.may_be_confounded },
];
const columns = COLUMNS.filter((column) => (column.field === "may_be_confounded" ? anyConfounded
  : column.text || column.field === "lag" || some(column.field)));

function sortedEdges() {
  if (!sorting.field) return shownEdges;
  const column = columns.find((each) => each.field === sorting.field);
  const worth = (edge) => (column.text ? column.text(edge) : edge[column.field]);
  const order = (a, b) => {
    const [x, y] = [worth(a), worth(b)];
    if (column.text) return x.localeCompare(y);
    return (known(x) ? x : -Infinity) - (known(y) ? y : -Infinity);
  };
  return [...shownEdges].sort((a, b) => (sorting.down ? order(b, a) : order(a, b)));
}

function sortBy(column) {
  const down = sorting.field === column.field ? !sorting.down : !column.text && column.field !== "lag" && !column.field.endsWith("_value");
  sorting = { field: column.field, down };
  refreshTable();
}

function heading(column) {
  const now = sorting.field === column.field;
  return el("th", { scope: "col", class: column.text ? null : "n", "aria-sort": now ? (sorting.down ? "descending" : "ascending") : null },
    el("button", { type: "button", onclick: () => sortBy(column) }, column.title, now ? (sorting.down ? " ↓" : " ↑") : ""));
}

function edgeRow(edge) {
  const cells = columns.map((column, k) => {
    if (k === 0) {
      const open = el("button", { type: "button", class: "link", "aria-label": `Evidence for ${titleOf(edge)}, ${delay(edge.lag)}`, onclick: () => openEdge(edge) }, nameOf(edge.cause));
      return el("td", {}, open);
    }
    if (column.field === "effect") return el("td", {}, nameOf(edge.effect));
    return el("td", { class: column.text ? null : "n" }, column.text ? column.text(edge) : column.show(edge));
  });
  const classes = [state.edge === edge ? "chosen" : "", edge.found ? "" : "near"].join(" ").trim();
  return el("tr", { class: classes || null }, ...cells);
}

function openEdge(edge) {
  chooseEdge(edge);
  byId("panel").scrollTop = 0;
  byId("panel").scrollIntoView({ block: "nearest" });
}

function refreshTable() {
  const rows = sortedEdges();
  const drawn = allRows ? rows : rows.slice(0, ROWS);
  replace(byId("edge-table"),
    el("caption", { hidden: true }, "Edges"),
    el("thead", {}, el("tr", {}, ...columns.map(heading))),
    el("tbody", {}, ...drawn.map(edgeRow)));
  const more = byId("all-rows");
  more.hidden = drawn.length === rows.length;
  more.textContent = `Show all ${rows.length} rows`;
}

function refreshShown() {
  const n = shownEdges.filter((edge) => edge.found).length;
  const near = shownEdges.length - n;
  const linked = new Set(shownEdges.flatMap((edge) => [edge.cause, edge.effect]));
  const hidden = state.alone ? 0 : names.length - linked.size;
  const parts = [`${n} of ${plural(found.length, "edge")} shown`];
  if (near) parts.push(`and ${near} near miss${near === 1 ? "" : "es"}`);
  if (hidden) parts.push(`· ${hidden} series without a shown edge hidden`);
  if (n > DRAWN) parts.push(`· the drawing holds the strongest ${DRAWN}`);
  byId("shown").textContent = parts.join(" ");
}

/* --- Filters ------------------------------------------------------------------------------------ */

function slider(id, title, least, most, step, value, show, apply) {
  const output = el("output", { for: id }, show(value));
  const input = el("input", { type: "range", id, min: least, max: most, step, value });
  const update = () => {
    const now = Number(input.value);
    output.textContent = show(now);
    input.setAttribute("aria-valuetext", show(now));
  };
  input.addEventListener("input", () => { update(); apply(Number(input.value)); });
  update();
  const field = el("label", { class: "field slider", for: id }, `${title} `, output, input);
  field.set = (now) => { input.value = now; update(); };
  return field;
}

function toggle(id, title, field, then) {
  const input = el("input", { type: "checkbox", id, checked: state[field] });
  input.addEventListener("change", () => { change({ [field]: input.checked, ...(then ? then(input.checked) : {}) }); });
  return el("label", { class: "toggle", for: id }, input, title);
}

function drawFilters() {
  const has = (kind) => edges.some((edge) => edge.kind === kind);
  const step = (heaviest - lightest) / 100;
  const qSlider = some("q_value") || facts.near.length
    ? slider("filter-q", "q-value ≤", 0, LEVELS.length - 1, 1, state.level, (k) => probability(LEVELS[k]).replace(/\.?0+$/, ""), (level) => change({ level }))
    : null;
  const nearLevel = LEVELS.indexOf(0.25);
  replace(byId("controls"),
    qSlider,
    edges.length ? slider("filter-weight", `${weightField} ≥`, lightest, heaviest, step, state.weight, figure, (weight) => change({ weight })) : null,
    edges.length ? slider("filter-lag", "lag ≤", 0, longest, 1, state.lag, String, (lag) => change({ lag })) : null,
    found.length > 12 ? slider("filter-most", "strongest", 1, found.length, 1, state.most, String, (most) => change({ most })) : null,
    has("self") ? toggle("filter-self", "self-loops", "self") : null,
    has("instantaneous") ? toggle("filter-contemporaneous", "contemporaneous links", "instantaneous") : null,
    anyConfounded ? toggle("filter-confounded", "may be confounded", "confounded") : null,
    facts.near.length ? toggle("filter-near", `near misses (${facts.near.length})`, "near", (on) => {
      const level = on ? Math.max(state.level, nearLevel) : startLevel;
      qSlider.set(level);
      return { level };
    }) : null,
    toggle("filter-alone", "series without an edge", "alone"));
  const narrow = matchMedia("(max-width: 860px)");
  const fold = () => { byId("filters").open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
}

/* --- Exports ------------------------------------------------------------------------------------ */

function csvCell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function edgesAsCsv() {
  const kept = shownEdges.filter((edge) => edge.found);
  const evidence = ["p_value", "q_value", "strength", "frequency"].filter(some);
  const fields = ["cause", "effect", "lag", "kind", "score", ...evidence];
  const known = evidence.length > 0 || anyConfounded || found.some((edge) => !edge.oriented); // as in edges.csv
  if (known && found.some((edge) => edge.kind === "instantaneous")) fields.push("oriented");
  if (anyConfounded) fields.push("may_be_confounded");
  const row = (edge) => fields.map((field) => (field === "kind" || field === "oriented" ? edge[field] : edge.raw[field]));
  return [fields, ...kept.map(row)].map((cells) => cells.map(csvCell).join(",") + "\n").join("");
}

function graphAsJson() {
  const kept = shownEdges.filter((edge) => edge.found).map((edge) => edge.raw);
  return JSON.stringify({ ...facts.graph, edges: kept }, null, 2) + "\n";
}

function readyExports() {
  byId("save-png").addEventListener("click", () => save("causal-graph.png", onPaper(graphAsPng), "image/png"));
  byId("save-svg").addEventListener("click", () => save("causal-graph.svg", onPaper(graphAsSvg), "image/svg+xml"));
  byId("save-csv").addEventListener("click", () => save("edges.csv", edgesAsCsv(), "text/csv"));
  byId("save-json").addEventListener("click", () => save("graph.json", graphAsJson(), "application/json"));
  byId("all-rows").addEventListener("click", () => { allRows = true; refreshTable(); });
}
