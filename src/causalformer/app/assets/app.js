"use strict";
/* One page, three views: #/ (runs), #/run/ID, #/compare/A/B. The page asks for the list of runs. */

let about = null;
let runs = [];
let shown = { key: null, update: () => {} }; // the view on the screen, and how it takes news
const STAGES = {
  starting: "Starting", reading: "Reading the file", training: "Training", writing: "Writing the results",
};
const STATES = {
  draft: "not started", waiting: "waiting", running: "running", done: "done", failed: "failed",
  cancelled: "cancelled",
};

/* ---- Talking to the server ---- */

async function call(method, path, body) {
  const file = body instanceof Blob;
  const answer = await fetch(path, {
    method,
    body: body === undefined || file ? body : JSON.stringify(body),
    headers: body === undefined || file ? {} : { "Content-Type": "application/json" },
  }).catch(() => { throw new Error("The server does not answer. Is `causalformer app` still running?"); });
  if (answer.status === 403) throw new Error(await answer.text());
  const content = await answer.json().catch(() => ({ error: `The server failed (${answer.status}).` }));
  if (!answer.ok) throw new Error(content.error);
  return content;
}

function upload(file, onProgress) { // fetch tells nothing while it sends
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/runs?name=${encodeURIComponent(file.name)}`);
    request.upload.onprogress = (event) => onProgress(event.loaded / (event.total || 1));
    request.onerror = () => reject(new Error("The upload was cut off."));
    request.onload = () => {
      let content = {};
      try { content = JSON.parse(request.responseText); } catch { content.error = request.responseText; }
      if (request.status === 200) resolve(content);
      else reject(new Error(content.error));
    };
    request.send(file);
  });
}

let seen = ""; // the mark of the list of runs that is known here
let next = 0;

async function news() { // the list of runs, or null if it is as it was
  const answer = await fetch("/api/runs", { headers: seen ? { "If-None-Match": seen } : {} });
  if (answer.status === 304) return null;
  if (!answer.ok) throw new Error(`refused (${answer.status})`);
  seen = answer.headers.get("ETag");
  return answer.json();
}

async function follow() { // asks twice a second, and not at all behind other tabs
  if (!document.hidden) {
    const lost = "No connection. If the app was restarted, open the address it printed.";
    const list = await news().catch(() => lost);
    byId("connection").textContent = list === lost ? lost : "";
    if (Array.isArray(list)) {
      runs = list;
      shown.update();
    }
  }
  clearTimeout(next);
  next = setTimeout(follow, 500);
}

/* ---- Views ---- */

const route = () => location.hash.replace(/^#\/?/, "").split("/");

function navigate() {
  const [view, a, b] = route();
  shown = { key: location.hash, update: () => {} };
  byId("main").className = "";
  replace(byId("tools"));
  document.title = "causalformer";
  if (view === "run") showRun(a);
  else if (view === "compare") showCompare(a, b);
  else showRuns();
}

function view(...children) {
  replace(byId("main"), ...children);
  const title = byId("main").querySelector("h1");
  if (title && navigated) title.focus();
}

let navigated = false; // whether the reader moved within the app: then the focus must move, too

const heading = (text) => el("h1", { tabindex: "-1" }, el("bdi", null, text));
const errorBox = () => el("p", { class: "error", role: "alert", hidden: true });

function tell(box, error) {
  box.textContent = error ? error.message : "";
  box.hidden = !error;
}

async function trying(box, action) {
  tell(box, null);
  try { await action(); } catch (error) { tell(box, error); }
}

const when = (seconds) => new Date(1000 * seconds).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
const duration = (s) => (s < 100 ? `${Math.round(s)} s` : s < 6000 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`);


function chosenWords(settings) { // what differs from the defaults, to tell runs apart
  const words = (value) => (Array.isArray(value) ? value.join(", ")
    : typeof value === "object" ? Object.entries(value).map((pair) => pair.join(" = ")).join(", ") : value);
  return Object.entries(settings).map(([name, value]) =>
    shortened(name === "set" ? words(value) : `${name.replace("_", " ")} ${words(value)}`, 60));
}

/* ---- The list ---- */

function showRuns() {
  const error = errorBox();
  const input = el("input", { type: "file", class: "unseen", id: "file", accept: about.suffixes.join(",") });
  const sending = el("progress", { max: "1", hidden: true, "aria-label": "Upload" });
  const drop = el("label", { class: "drop", for: "file" }, input,
    el("strong", null, "Drop a file of time series here, or click to choose one"),
    el("span", null, `One column per series, one row per time slot. CSV, TSV, Parquet, NPY, NPZ or netCDF, up to ${about.max_upload} MB.`),
    sending);

  const take = (file) => trying(error, async () => {
    if (!file) return;
    if (file.size > 1e6 * about.max_upload)
      throw new Error(`“${file.name}” is larger than ${about.max_upload} MB; start the app with a larger --max-upload.`);
    sending.hidden = false;
    try { open(await upload(file, (share) => { sending.value = share; })); }
    finally { sending.hidden = true; input.value = ""; }
  });
  const open = (run) => { location.hash = `#/run/${run.id}`; };

  input.addEventListener("change", () => take(input.files[0]));
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });

  const list = el("ul", { class: "runs", id: "runs" });
  const chosen = new Set();
  const compare = el("button", { type: "button", id: "compare", disabled: true, onclick: () => {
    const [a, b] = runs.filter((run) => chosen.has(run.id)).reverse();
    location.hash = `#/compare/${a.id}/${b.id}`;
  } }, "Compare two");
  const section = el("section", { "aria-labelledby": "runs-title", hidden: true },
    el("div", { class: "head" }, el("h2", { id: "runs-title" }, "Runs"), compare), list);
  const refresh = () => {
    compare.disabled = runs.filter((run) => chosen.has(run.id)).length !== 2;
  };

  const item = (run) => el("li", { "data-id": run.id },
    el("input", { type: "checkbox", "aria-label": `Choose ${run.name}, ${when(run.created)}, to compare`,
      disabled: run.state !== "done", checked: chosen.has(run.id), onchange: (event) => {
        if (event.target.checked) chosen.add(run.id); else chosen.delete(run.id);
        refresh();
      } }),
    el("div", null, el("a", { href: `#/run/${run.id}` }, el("bdi", null, run.name)),
      el("small", null, [when(run.created), known(run.n_edges) ? plural(run.n_edges, "edge") : null,
        ...chosenWords(run.settings)].filter(Boolean).join(" · ")),
      run.state === "running" ? bar(run.progress) : null),
    el("span", { class: `state ${run.state}` }, STATES[run.state]),
    el("button", { type: "button", "aria-label": `Delete ${run.name}`, disabled: run.state === "running",
      onclick: () => confirm(`Delete “${run.name}” and its results?`)
        && trying(error, () => call("DELETE", `/api/runs/${run.id}`)) }, "Delete"));

  const items = new Map(); // only what changed is drawn anew, so that the focus stays and clicks arrive
  shown.update = () => {
    section.hidden = !runs.length;
    for (const [id, each] of items)
      if (!runs.some((run) => run.id === id)) { each.node.remove(); items.delete(id); chosen.delete(id); }
    runs.forEach((run, i) => {
      const text = JSON.stringify({ ...run, progress: null });
      const old = items.get(run.id);
      if (!old || old.text !== text) {
        const node = item(run);
        if (old) old.node.replaceWith(node); else list.insertBefore(node, list.children[i] || null);
        items.set(run.id, { node, text });
      } else if (run.state === "running") old.node.querySelector("progress").replaceWith(bar(run.progress));
    });
    refresh();
  };
  view(el("section", null, heading("Which series drives which, and after how long?"),
    el("p", { class: "intro" }, "Everything is computed on this machine; nothing leaves it."),
    drop, error,
    el("p", { class: "hint" }, "No data at hand? ", el("button", { type: "button", class: "link", id: "example",
      onclick: () => trying(error, async () => open(await call("POST", "/api/example"))) }, "Try the bundled example."))),
  section);
  shown.update();
}

function bar(progress) {
  const done = progress.losses.length;
  const attributes = { max: "1", "aria-label": "Progress" };
  if (done && done < progress.max_epochs) attributes.value = done / progress.max_epochs;
  return el("progress", attributes);
}

/* ---- One run ---- */

async function showRun(id) {
  const key = shown.key;
  let state = null;
  const refresh = async () => {
    const summary = runs.find((run) => run.id === id);
    if (summary && summary.state === state) return;
    let run;
    try { run = await call("GET", `/api/runs/${encodeURIComponent(id)}`); } catch (error) {
      const box = errorBox();
      view(el("section", null, heading("This run cannot be shown"), box, el("p", null, el("a", { href: "#/" }, "All runs"))));
      tell(box, error);
      return;
    }
    if (shown.key !== key || run.state === state) return;
    const before = state;
    state = run.state;
    document.title = `${run.name} – causalformer`;
    if (before) byId("said").textContent = `${run.name}: ${STATES[state]}`;
    if (state === "done") showDone(run);
    else if (state === "waiting" || state === "running") showWork(run, refresh);
    else showDraft(run);
  };
  shown.update = refresh;
  await refresh();
}

function showWork(run, refresh) {
  const error = errorBox();
  const stage = el("p", { class: "stage-name", role: "status", id: "stage" });
  const line = el("p", { class: "hint", id: "left" });
  const meter = el("div", null);
  const curve = svg("svg", { viewBox: "0 0 700 150", role: "img", "aria-label": "Validation loss by epoch", id: "curve" });
  const cancel = el("button", { type: "button", id: "cancel",
    onclick: () => trying(error, () => call("POST", `/api/runs/${run.id}/cancel`)) }, "Cancel");
  view(el("section", null, el("div", { class: "head" }, heading(run.name)),
    el("div", { class: "work" }, stage, meter, line, curve,
      el("div", { class: "actions" }, cancel, el("span", { class: "hint" }, "You may close this page; the run goes on.")), error)));
  shown.update = () => {
    const now = runs.find((each) => each.id === run.id);
    if (now && now.state === run.state) drawWork(now, { stage, meter, line, curve });
    refresh();
  };
  shown.update();
}

function drawWork(run, { stage, meter, line, curve }) {
  const { losses, max_epochs: most, stage: name, seconds_left: left } = run.progress;
  const waiting = run.state === "waiting";
  const trained = most && losses.length >= most && name === "training";
  const refits = run.settings.stability;
  const testing = `Testing every edge${refits ? `, then ${plural(refits, "refit")}` : ""}`;
  const words = waiting ? "Waiting for another run to end" : trained ? testing : STAGES[name] || name;
  const epoch = name === "training" && !trained && losses.length ? `, epoch ${losses.length} of ${most}` : "";
  if (stage.textContent !== words + epoch) stage.textContent = words + epoch;
  replace(meter, waiting ? null : bar(run.progress));
  line.textContent = known(left) && left > 0 && name === "training" ? `at most ${duration(left)} of training left` : "\u00a0";
  drawLosses(curve, losses, most);
}

function drawLosses(curve, losses, most) {
  const values = losses.filter(known);
  curve.toggleAttribute("hidden", values.length < 2);
  if (values.length < 2) return;
  const low = Math.min(...values), high = Math.max(...values);
  const x = (i) => 44 + (646 * i) / Math.max(1, (most || losses.length) - 1);
  const y = (value) => 12 + 112 * (high === low ? 0.5 : (high - value) / (high - low));
  const points = losses.map((value, i) => (known(value) ? `${x(i).toFixed(1)},${y(value).toFixed(1)}` : "")).join(" ");
  replace(curve, svg("line", { class: "axis", x1: 44, x2: 690, y1: 128, y2: 128 }),
    svg("polyline", { class: "spark", points, "stroke-width": 2 }),
    svg("text", { x: 38, y: 18, "text-anchor": "end" }, figure(high)),
    svg("text", { x: 38, y: 126, "text-anchor": "end" }, figure(low)),
    svg("text", { x: 44, y: 144 }, "validation loss"),
    svg("text", { x: 690, y: 144, "text-anchor": "end" }, `epoch ${most}`));
}

function showDone(run) {
  const error = errorBox();
  byId("main").className = "full";
  const link = (name) => el("li", null, el("a", { href: `/api/runs/${run.id}/files/${name}`, download: name }, name));
  const save = el("details", { class: "save", id: "downloads" }, el("summary", null, "Download"),
    el("ul", null, el("li", null, el("a", { href: `/api/runs/${run.id}/all.zip`, id: "all" }, "everything (zip)")),
      ...about.downloads.map(link)));
  save.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { save.open = false; save.querySelector("summary").focus(); }
  });
  const again = el("button", { type: "button", id: "again", onclick: () => trying(error, async () => {
    location.hash = `#/run/${(await call("POST", `/api/runs/${run.id}/copy`)).id}`;
  }) }, "Other settings");
  const seconds = run.finished && run.started ? ` in ${duration(run.finished - run.started)}` : "";
  replace(byId("tools"), el("span", { class: "counts long" }, `${plural(run.n_edges, "edge")}${seconds}`),
    el("a", { href: `/api/runs/${run.id}/report`, target: "_blank", rel: "noopener", class: "long" }, "Open in a tab"),
    again, save);
  const title = heading(run.name);
  title.className = "unseen"; // the report shows it
  view(title, error,
  el("iframe", { src: `/api/runs/${run.id}/report`, title: `Report of ${run.name}`, id: "report",
    sandbox: "allow-scripts allow-downloads" }));
}

/* ---- A draft: what the file holds, and the settings ---- */

function showDraft(run) {
  const error = errorBox();
  const looked = el("div", { id: "preview", "aria-live": "polite" }, el("p", { class: "hint" }, "Looking at the file …"));
  const fields = settingsForm(run.settings);
  const start = el("button", { type: "submit", class: "main", id: "start" }, "Discover the graph");
  const resume = run.state === "draft" ? null : el("button", { type: "button", id: "resume",
    onclick: () => trying(error, () => call("POST", `/api/runs/${run.id}/resume`)) },
  run.state === "cancelled" ? "Resume with the same settings" : "Try again with the same settings");
  const form = el("form", { id: "settings-form", onsubmit: (event) => {
    event.preventDefault();
    trying(error, async () => {
      start.disabled = true;
      try { await call("POST", `/api/runs/${run.id}/start`, fields.read()); } finally { start.disabled = false; }
    });
  } }, el("h2", null, "Settings"), ...fields.nodes, error, el("p", { class: "actions" }, start, resume));
  const look = async () => {
    try {
      const found = await call("POST", `/api/runs/${run.id}/preview`, fields.columns());
      fields.offer(found);
      drawPreview(looked, found, fields);
    } catch (problem) { replace(looked, el("p", { class: "error" }, problem.message)); }
  };
  fields.onColumns(look);
  const state = run.state === "failed" ? el("p", { class: "error", role: "alert", id: "failure" }, run.error)
    : run.state === "cancelled" ? el("p", { class: "notice" }, "Cancelled. What was trained is kept: it can be resumed.") : null;
  view(el("section", null, heading(run.name), state, looked), el("section", null, form));
  look();
}

function drawPreview(place, found, fields) {
  const fact = (value, words) => el("li", null, el("b", null, value), el("span", null, words));
  const count = (n) => n.toLocaleString("en");
  const at = found.time_position;
  const time = known(at) ? found.columns[at] : found.time ? "yes" : "none";
  const facts = found.error ? null : el("ul", { class: "facts", id: "facts-list" },
    fact(count(found.n_series), "series"), fact(count(found.n_slots), "time slots"),
    fact(time, found.time ? `time, ${shortened(found.time[0], 19)} to ${shortened(found.time[1], 19)}` : "time column"),
    found.n_recordings > 1 ? fact(count(found.n_recordings), "recordings") : null,
    found.n_segments > found.n_recordings ? fact(count(found.n_segments), "unbroken stretches") : null,
    found.missing_share ? fact(percent(found.missing_share), "of the values are missing") : null);
  const problem = found.error ? el("p", { class: "error", role: "alert" }, found.error) : null;
  const group = found.error && (found.groups || []).length
    ? el("p", null, "Does one of these columns tell recordings (subjects, runs, sites) apart? ",
      ...found.groups.slice(0, 5).map((name) => el("button", { type: "button", onclick: () => fields.chooseGroup(name) },
        "Use ", el("bdi", null, name))))
    : null;
  const fix = (note) => (note.kind === "stationarity"
    ? el("button", { type: "button", onclick: () => fields.prepare("difference") }, "Use differences") : null);
  const notes = found.notes.length ? el("ul", { class: "notes", "aria-label": "What deserves care" },
    ...found.notes.map((note) => el("li", null, note.text, fix(note)))) : null;
  const head = found.columns.slice(0, (found.rows[0] || []).length);
  const mark = (i) => (i === at ? { class: "time" } : null);
  const table = found.rows.length ? el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "First rows" },
    el("table", { id: "first-rows" },
      el("thead", null, el("tr", null, ...head.map((name, i) =>
        el("th", { scope: "col", ...mark(i) }, el("bdi", null, shortened(name, 40)), i === at ? el("small", null, "time") : null)))),
      el("tbody", null, ...found.rows.map((row) => el("tr", null, ...row.map((cell, i) => el("td", mark(i), cell))))))) : null;
  const rest = found.n_columns > head.length
    ? el("p", { class: "hint" }, `… and ${plural(found.n_columns - head.length, "more column")}`) : null;
  replace(place, problem, group, facts, notes, table, rest);
}

function settingsForm(settings) {
  const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
  const choice = (name, options, value) => {
    const select = el("select", { name, id: `set-${name}` },
      ...options.map(([key, words]) => el("option", { value: key }, words)));
    select.value = String(value);
    return select;
  };
  const number = (name, value, rest) => el("input", { type: "number", name, id: `set-${name}`, value, required: true, ...rest });
  const area = (name, value, placeholder) => {
    const node = el("textarea", { name, id: `set-${name}`, placeholder, rows: "2", spellcheck: "false" });
    node.value = value.join("\n");
    return node;
  };
  const label = (words, node, hint) => el("label", null, words, node, hint ? el("small", null, hint) : null);

  const lag = el("input", { name: "max_lag", id: "set-max_lag", value: settings.max_lag, required: true, pattern: "auto|[1-9][0-9]{0,2}",
    title: "a whole number from 1, or auto" });
  const alpha = number("alpha", settings.alpha, { min: "0.001", max: "0.5", step: "any" });
  const within = choice("instantaneous", [["auto", "if the data call for it"], ["yes", "yes"], ["no", "no"]], settings.instantaneous);
  const stability = number("stability", settings.stability, { min: "0", max: "1000" });
  const season = el("input", { name: "season", id: "set-season", value: settings.season, required: true,
    pattern: "auto|none|[0-9., ]+", title: "auto, none, or numbers of slots such as 24 or 24, 168" });
  const missing = choice("missing", [["mask", "leave out"], ["interpolate", "draw lines through gaps"],
    ["previous", "repeat the value before"], ["mean", "put the mean"]], settings.missing);
  const time = choice("time_column", [["auto", "find out"], ["none", "there is none"]], settings.time_column);
  const group = choice("group", [["", "one recording"]], "");
  const prepare = area("prepare", settings.prepare, "detrend\nseason:12");
  const forbid = area("forbid", settings.forbid, "* -> rain");
  const require = area("require", settings.require, "rain -> river @ 2");
  const preset = choice("preset", about.presets.map((name) => [name, name]), settings.preset);
  const seed = number("seed", settings.seed, { min: "0" });
  const set = area("set", Object.entries(settings.set).map((pair) => pair.join(" = ")), "max_epochs = 20");

  const more = el("details", { class: "more-settings", id: "advanced" }, el("summary", null, "Advanced"), el("div", { class: "grid" },
    label("Prepare", prepare, "One step per line: detrend, difference, season:12, log[a, b], standardise, normal-score, every:5, mean:5."),
    label("Edges that cannot be", forbid, "One per line; * is any series."),
    label("Edges that must be", require, "One per line; @ 2 is lag 2."),
    label("Method", preset, "“default”, or a preset of the paper."),
    label("Seed", seed, "The same seed gives the same graph."),
    label("Single settings", set, "name = value, one per line.")));
  more.open = Boolean(settings.prepare.length || settings.forbid.length || settings.require.length
    || settings.preset !== "default" || Object.keys(settings.set).length);
  const nodes = [el("div", { class: "grid" },
    label("Lags to look back", lag, "In time slots; generous is fine. “auto” suggests a number."),
    label("Share of false edges to tolerate", alpha, "0.05 is one in twenty."),
    label("Contemporaneous edges", within, "Within a time slot: for effects faster than the sampling."),
    label("Refits for stability", stability, "20 tells how often each edge comes back; takes longer."),
    label("Seasons", season, "In time slots, such as 24 or 24, 168; “auto” finds them. They make no edges."),
    label("Missing values", missing),
    label("Time column", time),
    label("Column that tells recordings apart", group, "Subjects, runs or sites: nothing looks across.")), more];

  let columnsChanged = () => {};
  for (const node of [time, group]) node.addEventListener("change", () => columnsChanged());
  const columns = () => ({
    time_column: /^\d+$/.test(time.value) ? Number(time.value) : time.value,
    group: group.selectedIndex > 0 ? group.value : null,
  });
  const offer = (found) => { // the columns of the file become choices
    const keep = { time: time.value, group: group.selectedIndex > 0 ? group.value : settings.group };
    if (time.options.length === 2) {
      time.append(...found.columns.map((name, i) => el("option", { value: i }, shortened(name, 60))));
      group.append(...found.columns.map((name) => el("option", { value: name }, shortened(name, 60))));
      time.value = String(settings.time_column);
    } else time.value = keep.time;
    if (keep.group !== null) group.value = keep.group;
    if (time.value === "auto" && !found.error)
      time.options[0].textContent = `find out: ${known(found.time_position) ? shortened(found.columns[found.time_position], 40) : found.time ? "yes" : "none"}`;
  };
  return {
    nodes,
    columns: () => (time.options.length === 2 ? { time_column: settings.time_column, group: settings.group } : columns()),
    offer,
    onColumns: (react) => { columnsChanged = react; },
    chooseGroup: (name) => { group.value = name; columnsChanged(); },
    prepare: (step) => {
      more.open = true;
      if (!lines(prepare.value).includes(step)) prepare.value = [...lines(prepare.value), step].join("\n");
      prepare.focus();
    },
    read: () => ({
      ...columns(),
      max_lag: lag.value.trim() === "auto" ? "auto" : Number(lag.value),
      alpha: Number(alpha.value),
      instantaneous: within.value,
      stability: Number(stability.value),
      season: season.value.trim(),
      missing: missing.value,
      prepare: lines(prepare.value),
      forbid: lines(forbid.value),
      require: lines(require.value),
      preset: preset.value,
      seed: Number(seed.value),
      set: Object.fromEntries(lines(set.value).map((line) => {
        const [name, ...rest] = line.split("=");
        return [name.trim(), rest.join("=").trim()];
      })),
    }),
  };
}

/* ---- Two runs side by side ---- */

async function showCompare(a, b) {
  const key = shown.key;
  const box = errorBox();
  try {
    const { runs: pair, edges } = await call("GET", `/api/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
    if (shown.key !== key) return;
    const groups = [
      ["In both", edges.filter((edge) => edge.a && edge.b)],
      ["Only in A", edges.filter((edge) => edge.a && !edge.b)],
      ["Only in B", edges.filter((edge) => !edge.a && edge.b)],
    ];
    const lag = (edge) => `${edge.lag}${edge.oriented ? "" : "?"}${edge.may_be_confounded ? "*" : ""}`;
    const numbers = (edge, differs) => (edge ? [lag(edge), figure(edge.score), probability(edge.q_value)] : ["–", "–", "–"])
      .map((text, i) => el("td", { class: i === 0 && differs ? "n differs" : "n" }, text));
    const row = (words, edge) => {
      const differs = edge.a && edge.b && edge.a.lag !== edge.b.lag;
      return el("tr", { class: edge.a && edge.b ? null : "single" }, el("td", null, words),
        el("td", null, el("bdi", null, edge.cause)), el("td", null, el("bdi", null, edge.effect)),
        el("td", null, edge.kind === "instantaneous" ? "contemporaneous" : edge.kind), ...numbers(edge.a, differs), ...numbers(edge.b, differs));
    };
    const title = (letter, run) => el("p", null, el("b", null, `${letter}: `),
      el("a", { href: `#/run/${run.id}` }, el("bdi", null, run.name)), `, ${when(run.created)}; `,
      el("span", { class: "hint" }, `lags up to ${run.settings.max_lag}, false edges ${run.settings.alpha}, ${run.settings.preset}`));
    const has = (test) => edges.some((edge) => (edge.a && test(edge.a)) || (edge.b && test(edge.b)));
    const notes = [
      has((edge) => !edge.oriented) ? "? direction unknown" : null,
      has((edge) => edge.may_be_confounded) ? "* may come from a hidden common driver; the report says why" : null,
    ].filter(Boolean);
    const columns = ["", "cause", "effect", "kind", "lag A", "score A", "q A", "lag B", "score B", "q B"];
    view(el("section", null, heading("Two runs side by side"), title("A", pair[0]), title("B", pair[1]),
      el("p", { class: "lead", id: "counts" }, groups.map(([words, rows]) => `${words}: ${rows.length}`).join(" · ")),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Edges of both runs" },
        el("table", { id: "compared" }, el("thead", null, el("tr", null,
          ...columns.map((name, i) => el("th", { scope: "col", class: i > 3 ? "n" : null }, name || el("span", { class: "unseen" }, "found"))))),
        el("tbody", null, ...groups.flatMap(([words, rows]) => rows.map((edge) => row(words, edge)))))),
      notes.length ? el("p", { class: "hint", id: "marks" }, notes.join(" · ")) : null));
  } catch (error) {
    view(el("section", null, heading("These runs cannot be compared"), box));
    tell(box, error);
  }
}

/* ---- Begin ---- */

async function begin() {
  history.replaceState(null, "", location.pathname + location.hash); // the token need not stay
  try { about = await call("GET", "/api/about"); } catch (error) {
    const box = errorBox();
    view(box);
    tell(box, error);
    return;
  }
  window.addEventListener("hashchange", () => { navigated = true; navigate(); });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address is the view's
    byId("main").focus();
  });
  document.addEventListener("visibilitychange", follow);
  follow();
  navigate();
}

begin();
