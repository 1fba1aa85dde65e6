/* Puts the page together. */

function drawHead() {
  document.title = `Causal graph: ${facts.title}`;
  byId("title").textContent = facts.title;
  byId("version").textContent = facts.run.versions.causalformer;
  byId("lead").textContent = facts.summary[0];
  const between = found.filter((edge) => edge.kind !== "self").length;
  const counts = `${names.length} series of ${facts.series.n_slots} slots: ${plural(between, "edge")} between series, ${plural(found.length - between, "self-loop")}.`;
  byId("more").textContent = [counts, ...facts.summary.slice(1)].join(" ");
  const { warnings } = facts;
  byId("warnings").hidden = !warnings.length;
  byId("warnings").open = warnings.length <= 2;
  byId("warnings-title").textContent = plural(warnings.length, "warning") + " about the data";
  replace(byId("warnings-list"), ...warnings.map((text) => el("li", {}, text)));
}

function drawFoot() {
  const { run } = facts;
  replace(byId("caveats-list"), ...facts.caveats.map((text) => el("li", {}, text)));
  replace(byId("method-text"), ...(facts.tested ? [
    el("p", {}, "A network learned to predict every series from the past of all, with and without each cause. A cause is an edge if errors on held-out stretches of time grow without it (or if, in the terms test, it adds to the few basis terms that predict the effect at least as well as the network), after correction for all pairs that were tested."),
    el("p", {}, el("b", {}, "Relative gain"), ": by which share the held-out error grows without the cause. ",
      el("b", {}, "p-value"), ": how often evidence this strong would appear if the cause added nothing. ",
      el("b", {}, "q-value"), ": call every edge with at most this q an edge, and about this share of them is false. ",
      el("b", {}, "Strength"), ": how much the cause moves the prediction, in standard deviations of the effect. Every other term: the glossary of the documentation (docs/explanation/glossary.md)."),
  ] : [
    el("p", {}, "The causality-aware transformer of the CausalFormer paper was trained to predict all series and decomposed by relevance propagation. The ",
      el("b", {}, "score"), " of a pair is its relevance times its gradient; pairs in the upper class of a clustering are edges."),
  ]));
  byId("repeat").textContent = run.command || run.code;
  const list = (id, entries) => replace(byId(id), ...entries.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
  const metadata = facts.graph.metadata;
  const options = ["preset", "random_state", "max_lag", "max_lag_used", "alpha", "instantaneous", "stability", "missing"]
    .filter((name) => metadata[name] !== undefined).map((name) => [name, String(metadata[name])]);
  list("settings", [...options, ...Object.entries(run.settings)]);
  list("versions", [...Object.entries(run.versions), ["data", run.source], ["data, SHA-256", run.sha256.slice(0, 16) + "…"]]);
}

function followTheme() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    cy.style(graphStyle());
    refreshGraph();
    drawTime();
  });
}

drawHead();
drawFilters();
fillPicker();
drawGraph();
readyExports();
onChange(refreshPanel);
onChange(refreshTable);
onChange(refreshShown);
onChange(drawLegend);
change({ edge: found.find((edge) => edge.kind !== "self") || found[0] || null });
fitCalmly();
drawRecordings();
readyTime();
drawData();
drawFoot();
followTheme();
