/* The drawing: nodes and arrows, zoom, hover, and its export as a picture. */

const large = names.length > MANY;
const degrees = names.map((_, i) => found.filter((edge) => edge.cause === i || edge.effect === i).length);
const DASH_DOT = [11, 4, 2, 4]; // of edges that may be confounded
let cy = null;

function textWidth(text) {
  textWidth.pen = textWidth.pen || document.createElement("canvas").getContext("2d");
  textWidth.pen.font = "500 14px system-ui, sans-serif";
  return textWidth.pen.measureText(text).width;
}

function nodeOf(i) {
  const label = shortened(labels[i], large ? 18 : 22);
  if (!large) return { data: { id: `n${i}`, series: i, label, width: Math.max(44, Math.ceil(textWidth(label)) + 26), height: 34 } };
  const share = degrees[i] / Math.max(...degrees, 1); // hubs are larger, so are their names
  const size = 12 + 20 * share;
  return { data: { id: `n${i}`, series: i, label, width: size, height: size, font: 11 + 12 * share } };
}

function edgeOf(edge) {
  const width = 1.2 + 4.3 * Math.sqrt(Math.max(0, edge.weight - lightest) / (heaviest - lightest || 1));
  const classes = [edge.kind, edge.found ? "" : "near", edge.oriented ? "" : "unoriented", edge.may_be_confounded ? "confounded" : ""];
  return {
    data: {
      id: edge.id, source: `n${edge.cause}`, target: `n${edge.effect}`, label: edge.lag + markOf(edge.may_be_confounded), loop: "-40deg",
      width: (edge.kind === "self" ? 0.7 : large ? 1.8 : 1) * width,
    },
    classes: classes.join(" "),
  };
}

/* Spread the places over the canvas, then push apart what overlaps. */
function places() {
  const box = byId("canvas").getBoundingClientRect();
  const upright = box.height > box.width;
  const stretch = large ? Math.sqrt((12000 * names.length) / (box.width * box.height)) : Math.max(1, Math.sqrt(names.length / 9));
  const at = facts.positions.map(([x, y]) => {
    const [across, down] = upright ? [y, x] : [x, y];
    const margin = large ? 0 : 140;
    return { x: across * (box.width - margin) * stretch, y: down * (box.height - margin) * stretch };
  });
  if (large) return at;
  const sizes = names.map((_, i) => nodeOf(i).data);
  for (let round = 0; round < 60; round += 1) {
    let moved = false;
    for (let i = 0; i < at.length; i += 1) {
      for (let j = 0; j < i; j += 1) {
        const dx = at[i].x - at[j].x, dy = at[i].y - at[j].y;
        const wide = (sizes[i].width + sizes[j].width) / 2 + 34 - Math.abs(dx);
        const high = 78 - Math.abs(dy);
        if (wide <= 0 || high <= 0) continue;
        moved = true;
        const axis = wide < high ? "x" : "y";
        const step = (Math.min(wide, high) / 2 + 1) * ((axis === "x" ? dx : dy) < 0 ? -1 : 1);
        at[i][axis] += step;
        at[j][axis] -= step;
      }
    }
    if (!moved) break;
  }
  return at;
}

function graphStyle() {
  const [ink, card, soft] = ["ink", "card", "soft"].map(colour);
  const lagged = colour("lagged");
  const straight = large ? "straight" : "bezier";
  const node = {
    shape: large ? "ellipse" : "round-rectangle", "background-color": large ? lagged : colour("node"),
    "border-width": large ? 0 : 1.5, "border-color": colour("node-line"),
    width: "data(width)", height: "data(height)", label: "data(label)", color: ink,
    "font-size": large ? "data(font)" : 14, "font-weight": 500, "font-family": "system-ui, sans-serif",
    "text-valign": large ? "bottom" : "center", "text-margin-y": large ? 3 : 0,
    "min-zoomed-font-size": large ? 9 : 0, "overlay-opacity": 0,
  };
  const edge = {
    width: "data(width)", "line-color": lagged, "target-arrow-color": lagged,
    "target-arrow-shape": "triangle", "arrow-scale": large ? 1.2 : 1, "curve-style": straight,
    "control-point-step-size": 46, "loop-sweep": "-50deg",
    "line-opacity": large ? 0.6 : 0.9, "overlay-opacity": 0,
  };
  const label = {
    label: "data(label)", "font-size": 12, "font-weight": 600, color: ink,
    "font-family": "system-ui, sans-serif", "text-background-color": card,
    "text-background-opacity": 0.92, "text-background-padding": 2.5, "text-background-shape": "round-rectangle",
  };
  const painted = (name) => ({ "line-color": colour(name), "target-arrow-color": colour(name) });
  return [
    { selector: "node", style: node },
    { selector: "edge", style: large ? edge : { ...edge, ...label } },
    { selector: "edge.self", style: { ...painted("self"), "loop-direction": "data(loop)" } },
    { selector: "edge.instantaneous", style: { ...painted("within"), "line-style": "dashed" } },
    { selector: "edge.unoriented", style: { "target-arrow-shape": "none" } },
    { selector: "edge.confounded", style: { "line-style": "dashed", "line-dash-pattern": DASH_DOT } },
    { selector: "edge.near", style: { ...painted("near"), "line-style": "dotted" } },
    { selector: ".gone", style: { display: "none" } },
    { selector: ".faded", style: { opacity: 0.13 } },
    { selector: "node.chosen", style: { "border-width": 3, "border-color": colour("accent") } },
    { selector: "edge.chosen", style: { ...label, "underlay-color": colour("accent"), "underlay-opacity": 0.22, "underlay-padding": 6, "line-opacity": 1 } },
    { selector: "edge.hovered", style: { ...label, "line-opacity": 1 } },
    { selector: "core", style: { "active-bg-opacity": 0, "outside-texture-bg-color": soft } },
  ];
}

function drawGraph() {
  const at = places();
  cy = cytoscape({
    container: byId("canvas"),
    elements: {
      nodes: names.map((_, i) => ({ ...nodeOf(i), position: at[i] })),
      edges: edges.filter((edge, i) => i < DRAWN || !edge.found).map(edgeOf),
    },
    layout: { name: "preset", fit: false },
    style: graphStyle(),
    minZoom: 0.05, maxZoom: 4, boxSelectionEnabled: false, selectionType: "single",
    hideEdgesOnViewport: large, textureOnViewport: large, pixelRatio: large ? 1 : "auto",
  });
  cy.on("tap", "node", (event) => chooseNode(event.target.data("series")));
  cy.on("tap", "edge", (event) => chooseEdge(edgeWith(event.target.id())));
  cy.on("tap", (event) => { if (event.target === cy) change({ node: null, edge: null }); });
  cy.on("mouseover", "node, edge", showTooltip);
  cy.on("mouseout pan zoom drag", "node, edge", hideTooltip);
  cy.on("pan zoom", hideTooltip);
  cy.on("dragfree", "node", aimLoops);
  aimLoops();
  moveByKeys();
  tameWheel();
  byId("zoom-in").addEventListener("click", () => zoomBy(1.3));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.3));
  byId("zoom-fit").addEventListener("click", fit);
  onChange(refreshGraph);
}

/* Self-loops stand above or below, where they are farthest from the node's other edges. */
function aimLoops() {
  const degrees = [-40, 40, 140, -140, 0, 180];
  cy.edges(".self").forEach((loop) => {
    const node = loop.source(), here = node.position();
    const taken = node.openNeighborhood("node").not(node).map((other) => {
      const there = other.position();
      return (Math.atan2(there.x - here.x, here.y - there.y) * 180) / Math.PI; // clockwise from the top
    });
    const room = (angle) => Math.min(360, ...taken.map((each) => Math.abs(((angle - each + 540) % 360) - 180)));
    const best = degrees.reduce((a, b) => (room(b) > room(a) + 1 ? b : a));
    loop.data("loop", `${best}deg`);
  });
}

const edgeWith = (id) => edges[Number(id.slice(1))];
const fit = () => cy.fit(cy.elements(":visible"), 50);

/* Nothing is larger than life: few nodes do not fill the canvas with letters. */
function fitCalmly() {
  fit();
  if (cy.zoom() > 1.25) { cy.zoom(1.25); cy.center(cy.elements(":visible")); }
}

function refreshGraph() {
  const shown = new Set(shownEdges.map((edge) => edge.id));
  const linked = new Set(shownEdges.flatMap((edge) => [edge.cause, edge.effect]));
  const setGone = (each, gone) => { if (each.hasClass("gone") !== gone) each.toggleClass("gone", gone); };
  cy.batch(() => {
    cy.edges().forEach((each) => setGone(each, !shown.has(each.id())));
    cy.nodes().forEach((each) => setGone(each, !state.alone && !linked.has(each.data("series"))));
    cy.elements(".faded, .chosen").removeClass("faded chosen");
    highlight();
  });
  cy.elements().cleanStyle(); // else what is visible is known with the next frame only: too late to fit or save
}

function highlight() {
  if (state.node !== null) {
    const node = cy.getElementById(`n${state.node}`);
    const kept = node.closedNeighborhood();
    cy.elements().not(kept).addClass("faded");
    node.addClass("chosen");
  } else if (state.edge) {
    cy.getElementById(state.edge.id).addClass("chosen");
  }
}

function tooltipText(target) {
  if (target.isNode()) {
    const i = target.data("series");
    const { causes, effects, links } = around(i);
    const r2 = facts.series.figures[i].r2;
    return [labels[i], `${plural(causes.length, "cause")}, ${plural(effects.length, "effect")}`,
      links.length ? `${plural(links.length, "link")} without direction` : null,
      known(r2) ? `held-out R² ${figure(r2)}` : null];
  }
  const edge = edgeWith(target.id());
  return [titleOf(edge), delay(edge.lag), known(edge.strength) ? `strength ${figure(edge.strength)}` : null,
    known(edge.relative_gain) ? `relative gain ${percent(edge.relative_gain)}` : null,
    known(edge.q_value) ? `q ${probability(edge.q_value)}` : `score ${figure(edge.score)}`,
    edge.may_be_confounded ? CONFOUNDED : null,
    edge.found ? null : "near miss: not in the graph"];
}

function showTooltip(event) {
  if (event.target.isEdge()) event.target.addClass("hovered");
  const box = byId("tooltip");
  box.textContent = tooltipText(event.target).filter(Boolean).join("\n");
  box.hidden = false;
  const canvas = byId("canvas");
  const { x, y } = event.renderedPosition;
  box.style.left = `${Math.max(4, Math.min(x + 14, canvas.clientWidth - box.offsetWidth - 6))}px`;
  box.style.top = `${Math.max(4, Math.min(y + 14, canvas.clientHeight - box.offsetHeight - 6))}px`;
}

function hideTooltip(event) {
  byId("tooltip").hidden = true;
  if (event.target !== cy) event.target.removeClass("hovered");
}

function zoomBy(factor) {
  const box = byId("canvas");
  cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: box.clientWidth / 2, y: box.clientHeight / 2 } });
}

function moveByKeys() {
  const steps = { ArrowLeft: [50, 0], ArrowRight: [-50, 0], ArrowUp: [0, 50], ArrowDown: [0, -50] };
  byId("canvas").addEventListener("keydown", (event) => {
    if (steps[event.key]) cy.panBy({ x: steps[event.key][0], y: steps[event.key][1] });
    else if (event.key === "+" || event.key === "=") zoomBy(1.2);
    else if (event.key === "-") zoomBy(1 / 1.2);
    else if (event.key === "0") fit();
    else if (event.key === "Escape") change({ node: null, edge: null });
    else return;
    event.preventDefault();
  });
}

/* The wheel scrolls the page, until somebody has touched the drawing (or holds Ctrl). */
function tameWheel() {
  const canvas = byId("canvas");
  let entered = false;
  canvas.addEventListener("pointerdown", () => { entered = true; canvas.focus({ preventScroll: true }); });
  canvas.addEventListener("pointerleave", () => { entered = false; });
  canvas.addEventListener("wheel", (event) => {
    if (!entered && !event.ctrlKey) event.stopPropagation();
  }, { capture: true, passive: true });
}

function drawLegend() {
  const line = (name, dash, head) => svg("svg", { width: 34, height: 10, "aria-hidden": "true" },
    svg("line", { x1: 1, y1: 5, x2: head ? 26 : 33, y2: 5, stroke: `var(--${name})`, "stroke-width": 2.5, "stroke-dasharray": dash }),
    head ? svg("path", { d: "M25 1 L33 5 L25 9 Z", fill: `var(--${name})` }) : null);
  const entry = (mark, text) => el("li", {}, mark, text);
  const has = (test) => edges.some(test);
  replace(byId("legend"),
    has((e) => e.kind === "lagged") ? entry(line("lagged", null, true), "drives, after the lag in slots") : null,
    has((e) => e.kind === "self") ? entry(line("self", null, true), "its own past (self-loop)") : null,
    has((e) => e.kind === "instantaneous") ? entry(line("within", "6 4", true), "contemporaneous, within the slot") : null,
    has((e) => !e.oriented) ? entry(line("within", "6 4", false), "direction unknown") : null,
    anyConfounded ? entry(line("lagged", DASH_DOT.join(" "), true), `* ${CONFOUNDED}`) : null,
    state.near && facts.near.length ? entry(line("near", "2 3", true), "near miss") : null,
    entry(null, `wider = larger ${weightField}`));
}

/* --- Pictures ----------------------------------------------------------------------------------- */

/* Pictures go into papers: light colours, nothing highlighted, whatever the screen shows. */
function onPaper(draw) {
  const { classList } = document.documentElement;
  classList.add("on-paper");
  cy.elements(".faded, .chosen").removeClass("faded chosen");
  cy.style(graphStyle());
  try {
    return draw();
  } finally {
    classList.remove("on-paper");
    cy.style(graphStyle());
    refreshGraph();
  }
}

function graphAsPng() {
  return cy.png({ output: "blob", full: true, scale: large ? 1 : 2, bg: colour("card"), maxWidth: 5000, maxHeight: 5000 });
}

function curve(edge) {
  const start = edge.sourceEndpoint(), end = edge.targetEndpoint();
  const bends = edge.controlPoints() || [];
  const at = (p) => `${p.x.toFixed(1)} ${p.y.toFixed(1)}`;
  const parts = [`M ${at(start)}`];
  bends.forEach((bend, i) => {
    const next = bends[i + 1];
    const to = next ? { x: (bend.x + next.x) / 2, y: (bend.y + next.y) / 2 } : end;
    parts.push(`Q ${at(bend)} ${at(to)}`);
  });
  if (!bends.length) parts.push(`L ${at(end)}`);
  const before = bends.length ? bends[bends.length - 1] : start;
  return { path: parts.join(" "), end, angle: Math.atan2(end.y - before.y, end.x - before.x) };
}

function svgEdge(each) {
  const edge = edgeWith(each.id());
  const stroke = colour(!edge.found ? "near" : { lagged: "lagged", self: "self", instantaneous: "within" }[edge.kind]);
  const { path, end, angle } = curve(each);
  const width = each.data("width"), size = 5 + 2 * width, middle = each.midpoint();
  const dash = !edge.found ? "2 4" : edge.may_be_confounded ? DASH_DOT.join(" ") : edge.kind === "instantaneous" ? "7 5" : null;
  const corner = (turn) => `${(end.x - size * Math.cos(angle + turn)).toFixed(1)} ${(end.y - size * Math.sin(angle + turn)).toFixed(1)}`;
  const label = large ? [] : [
    svg("rect", { x: middle.x - 8, y: middle.y - 9, width: 16, height: 18, rx: 4, fill: colour("card"), "fill-opacity": 0.92 }),
    svg("text", { x: middle.x, y: middle.y + 4, "text-anchor": "middle", "font-size": 12, "font-weight": 600, fill: colour("ink") }, each.data("label")),
  ];
  return svg("g", {}, svg("title", {}, `${titleOf(edge)}, ${delay(edge.lag)}`),
    svg("path", { d: path, fill: "none", stroke, "stroke-width": width.toFixed(2), "stroke-dasharray": dash }),
    edge.oriented ? svg("path", { d: `M ${end.x.toFixed(1)} ${end.y.toFixed(1)} L ${corner(0.45)} L ${corner(-0.45)} Z`, fill: stroke }) : null,
    ...label);
}

function svgNode(each) {
  const { x, y } = each.position();
  const { width, height, label } = each.data();
  const shape = large ? svg("circle", { cx: x, cy: y, r: width / 2, fill: colour("lagged") })
    : svg("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 8, fill: colour("node"), stroke: colour("node-line"), "stroke-width": 1.5 });
  return svg("g", {}, shape, svg("text", {
    x, y: large ? y + width / 2 + 13 : y + 5, "text-anchor": "middle", "font-size": large ? each.data("font") : 14, fill: colour("ink"),
  }, label));
}

function graphAsSvg() {
  const visible = cy.elements(":visible");
  const box = visible.boundingBox({ includeLabels: true });
  const margin = 20;
  const root = svg("svg", {
    xmlns: "http://www.w3.org/2000/svg", "font-family": "system-ui, sans-serif",
    width: Math.ceil(box.w + 2 * margin), height: Math.ceil(box.h + 2 * margin),
    viewBox: [box.x1 - margin, box.y1 - margin, box.w + 2 * margin, box.h + 2 * margin].map((v) => v.toFixed(1)).join(" "),
  });
  root.append(svg("rect", { x: box.x1 - margin, y: box.y1 - margin, width: "100%", height: "100%", fill: colour("card") }));
  visible.edges().forEach((each) => root.append(svgEdge(each)));
  visible.nodes().forEach((each) => root.append(svgNode(each)));
  return new XMLSerializer().serializeToString(root);
}
