/* Recordings fitted on their own: how far their graphs agree, and each graph as a table. */

const ownGraphs = facts.recordings;
const agreement = new Map(ownGraphs ? ownGraphs.agreement.map(([cause, effect, , n]) => [`${cause} ${effect}`, n]) : []);
const agreeing = (cause, effect) => `${agreement.get(`${cause} ${effect}`) || 0} of ${ownGraphs.names.length}`;

function shareBar(n) { // a bar: the share of the recordings
  const width = 90;
  return svg("svg", { class: "share", viewBox: `0 0 ${width} 10`, "aria-hidden": "true" },
    svg("rect", { class: "bar", width, height: 10, rx: 3 }),
    svg("rect", { class: "bar main", width: (width * n) / ownGraphs.names.length, height: 10, rx: 3 }));
}

function recordingRow([cause, effect, lag, oriented, confounded, strength, q], single) {
  const together = found.find((edge) => edge.cause === cause && edge.effect === effect);
  const name = together
    ? el("button", { type: "button", class: "link", "aria-label": `Evidence for ${titleOf(together)}, ${delay(together.lag)}`,
      onclick: () => openEdge(together) }, nameOf(cause))
    : nameOf(cause);
  const cell = (text) => el("td", { class: "n" }, text);
  const numbers = single ? [cell(figure(strength)), cell(probability(q))] : [];
  return el("tr", {}, el("td", {}, name), el("td", {}, nameOf(effect)), cell(String(lag)),
    single ? el("td", {}, kindText(kindOf(cause, effect, lag), oriented) + (confounded ? `, ${CONFOUNDED}: ${confounded}` : "")) : null, ...numbers,
    cell(agreeing(cause, effect)), single ? null : el("td", {}, shareBar(agreement.get(`${cause} ${effect}`))),
    el("td", {}, together ? "yes" : "no"));
}

function drawRecording() {
  const chosen = byId("recording").value;
  const single = chosen !== "";
  const rows = single ? ownGraphs.graphs[Number(chosen)] : ownGraphs.agreement.map(([cause, effect, lag]) => [cause, effect, lag]);
  const titles = single ? ["cause", "effect", "lag", "kind", "strength", "q", "recordings", "in the graph of all"]
    : ["cause", "effect", "lag", "recordings", "share", "in the graph of all"];
  const numeric = ["lag", "strength", "q", "recordings"];
  replace(byId("recording-table"),
    el("thead", {}, el("tr", {}, ...titles.map((title) => el("th", { scope: "col", class: numeric.includes(title) ? "n" : null }, title)))),
    el("tbody", {}, ...rows.map((row) => recordingRow(row, single))));
  byId("recording-said").textContent = single ? `${plural(rows.length, "edge")} in this recording on its own.`
    : `${plural(rows.length, "edge")} in at least one of ${ownGraphs.names.length} recordings on their own; the lag is the one most of them found.`;
}

function drawRecordings() {
  if (!ownGraphs) return;
  byId("recordings").hidden = byId("to-recordings").hidden = false;
  byId("recording").append(el("option", { value: "" }, "how far they agree"),
    ...ownGraphs.names.map((name, i) => el("option", { value: i }, shortened(name, 60))));
  byId("recording").addEventListener("change", drawRecording);
  replace(byId("refused"), ...ownGraphs.refused.map(([name, reason]) =>
    el("li", {}, el("bdi", {}, name), ` gave no graph: ${reason}`)));
  drawRecording();
}
