/* What there is to show, what is shown now, and who wants to know when that changes. */

const facts = JSON.parse(byId("facts").textContent);
const names = facts.graph.names;
const labels = facts.labels;
const seriesOf = new Map(names.map((name, i) => [name, i]));
const MANY = 60; // series from which on the drawing starts small
const DRAWN = 2000; // edges that the drawing holds, the strongest ones; the table holds all

function kindOf(cause, effect, lag) {
  return cause === effect ? "self" : lag === 0 ? "instantaneous" : "lagged";
}

const found = facts.graph.edges.map((edge, i) => ({
  ...edge, ...(facts.edges[i] || {}), raw: edge, found: true,
  cause: seriesOf.get(edge.cause), effect: seriesOf.get(edge.effect),
}));
const edges = found.concat(facts.near.map((edge) => ({ ...edge, found: false })));
const some = (field) => found.some((edge) => known(edge[field]));
const weightField = some("strength") ? "strength" : "score";
edges.forEach((edge, i) => {
  edge.id = `e${i}`;
  edge.kind = kindOf(edge.cause, edge.effect, edge.lag);
  edge.oriented = edge.oriented !== false;
  edge.may_be_confounded = edge.may_be_confounded || "";
  edge.weight = known(edge[weightField]) ? edge[weightField] : 0;
});
const anyConfounded = found.some((edge) => edge.may_be_confounded);
const heaviest = Math.max(...edges.map((edge) => edge.weight), 1e-12);
const lightest = Math.min(0, ...edges.map((edge) => edge.weight));
const longest = Math.max(...edges.map((edge) => edge.lag), 1);

const alpha = facts.alpha === null ? 1 : facts.alpha;
const largestQ = Math.max(0, ...found.map((edge) => edge.q_value || 0));
const LEVELS = [...new Set([1e-12, 1e-9, 1e-6, 1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.25, 1, alpha])]
  .sort((a, b) => a - b);
const startLevel = LEVELS.findIndex((level) => level >= Math.max(alpha, largestQ));

const state = {
  level: startLevel, weight: lightest, lag: longest,
  most: names.length > MANY ? Math.min(150, found.length) : found.length,
  self: true, instantaneous: true, confounded: true, near: false, alone: names.length <= MANY,
  edge: null, node: null,
};
let shownEdges = [];
const listeners = [];
const onChange = (listener) => listeners.push(listener);

function passes(edge) {
  if (!edge.found && !state.near) return false;
  if (edge.kind !== "lagged" && !state[edge.kind]) return false;
  if (edge.may_be_confounded && !state.confounded) return false;
  if (known(edge.q_value) && edge.q_value > LEVELS[state.level]) return false;
  return edge.weight >= state.weight && edge.lag <= state.lag;
}

function change(updates) {
  Object.assign(state, updates);
  const near = edges.slice(found.length);
  shownEdges = found.filter(passes).slice(0, state.most).concat(near.filter(passes));
  listeners.forEach((listener) => listener());
}

const chooseEdge = (edge) => change({ edge, node: null });
const chooseNode = (node) => change({ node, edge: null });
const nameOf = (i) => el("bdi", {}, labels[i]);
const arrowOf = (edge) => (edge.oriented ? " → " : " — ");
const kindText = (kind, oriented) => (kind === "instantaneous" ? "contemporaneous" : kind) + (oriented ? "" : ", direction unknown");
const CONFOUNDED = "may come from a hidden common driver";
const markOf = (sentence) => (sentence ? "*" : "");
const titleOf = (edge) => labels[edge.cause] + arrowOf(edge) + labels[edge.effect];
