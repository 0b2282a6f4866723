"use strict";
const $ = (id) => document.getElementById(id);
const token = location.hash.slice(1);
const METRICS = {
  classification: { "": "probabilities that are true (log loss)", accuracy: "accuracy", balanced_accuracy: "balanced accuracy", f1: "F1 of the larger of two labels", roc_auc: "ranking (ROC AUC)" },
  regression: { "": "squared error (RMSE, R2)", neg_mean_absolute_error: "absolute error" },
};
let known = {}, shownReport = "", timer = 0;

async function call(path, body, headers = {}) {
  const method = body === undefined ? "GET" : "POST";
  const answer = await fetch("/api/" + path, { method, body, headers: { Authorization: "Bearer " + token, ...headers } });
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer;
}
async function attempt(words, work) {
  $("trouble").textContent = "";
  $("status").textContent = words;
  try {
    const found = await work();
    $("status").textContent = "";
    return found;
  } catch (error) {
    $("status").textContent = "";
    $("trouble").textContent = error.message;
  }
}
function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
function fill(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, words]) => element("option", words, { value })));
  if (chosen !== undefined && pairs.some(([value]) => value === chosen)) select.value = chosen;
}
function table(target, columns, rows) {
  const head = element("thead"), line = element("tr"), body = element("tbody");
  line.append(...columns.map((c) => element("th", c, { scope: "col" })));
  head.append(line);
  for (const row of rows) {
    const cells = element("tr");
    cells.append(...row.map((cell) => (cell instanceof Node ? cell : element("td", brief(cell)))));
    body.append(cells);
  }
  target.replaceChildren(head, body);
}

function brief(value) {
  const long = /^-?\d+\.\d{5,}(e-?\d+)?$/.test(value);
  return long ? String(Number(Number(value).toPrecision(5))) : value;
}

// -- what was understood
function showTable(state) {
  const facts = state.facts, asked = state.asked || {}, names = state.preview.columns;
  $("drop-words").textContent = state.name;
  $("facts").textContent = `${facts.rows.toLocaleString()} rows and ${facts.columns} columns; ${facts.missing.toLocaleString()} values are missing. Correct a type where the guess is wrong.`;
  const lines = facts.details.length ? facts.details : names.map((name) => ({ name, type: "number", reason: "", examples: [], low: null }));
  const body = $("columns").tBodies[0];
  body.replaceChildren();
  for (const column of lines) {
    const row = element("tr"), choice = element("select", undefined, { "aria-label": "type of " + column.name, "data-column": column.name });
    const types = Object.entries(state.types).map(([type, words]) => [type, type]);
    fill(choice, [...types, ["drop", "do not learn from it"]], (asked.types || {})[column.name] || column.type);
    choice.dataset.guess = column.type;
    const values = column.examples.length ? column.examples.join(", ") : column.low === null ? "" : `${brief(column.low)} to ${brief(column.high)}`;
    const cell = element("td");
    cell.append(choice);
    row.append(element("th", column.name, { scope: "row" }), cell, element("td", column.reason), element("td", values));
    body.append(row);
  }
  table($("preview"), names, state.preview.rows);
  const all = names.map((name) => [name, name]);
  fill($("target"), all, asked.target || names.at(-1));
  fill($("group"), [["", "every row by itself"], ...all], asked.group || "");
  fill($("time"), [["", "no order in time"], ...all], asked.time || "");
  for (const field of ["task", "library", "time_limit"]) if (asked[field]) $(field).value = asked[field];
  showMetrics(asked.metric || "");
}
function showMetrics(chosen) {
  const task = $("task").value;
  const groups = task === "auto" ? { "": "what suits the target" } : { ...METRICS[task] };
  const labels = (known.facts?.details.find((column) => column.name === $("target").value) || {}).examples || [];
  if (groups.f1 && labels.length === 2) groups.f1 = `F1 of ${[...labels].sort()[1]}`;
  fill($("metric"), Object.entries(groups), chosen);
}
function settings() {
  const types = {};
  for (const choice of document.querySelectorAll("#columns select")) {
    const column = choice.dataset.column, special = [$("target").value, $("group").value].includes(column);
    if (choice.value !== choice.dataset.guess && !special) types[column] = choice.value;
  }
  const asked = { types };
  for (const field of ["target", "task", "metric", "library", "time_limit", "group", "time"]) if ($(field).value) asked[field] = $(field).value;
  return asked;
}

// -- the fit
function showGrid(grid) {
  const rows = grid.rows.map((row) => [
    element("th", row.specialist, { scope: "row" }),
    ...row.states.map((state) => element("td", grid.marks[state] || "", { class: state, title: state })),
    element("td", grid.errors[row.specialist] || "", { class: "failed" }),
  ]);
  table($("grid"), ["specialist", ...grid.folds, ""], rows);
}
async function showReport() {
  const text = await (await call("results/report")).text();
  if (text === shownReport) return;
  shownReport = text;
  $("report").src = URL.createObjectURL(new Blob([text], { type: "text/html" }));
}
function showScored(scored) {
  $("scored").hidden = !scored;
  if (!scored) return;
  $("scores").textContent = scored.said;
  table($("predictions"), scored.preview.columns, scored.preview.rows);
}
const WORDS = { fitting: "", done: "Done.", stopped: "Stopped. Finished work is kept.", failed: "The fit failed; see what it said." };
async function show(state) {
  if (!state) return;
  const step = state.step, before = known.step;
  if (state.facts && (state.name !== known.name || JSON.stringify(state.facts) !== JSON.stringify(known.facts))) showTable(state);
  known = state;
  $("understood").hidden = step === "empty";
  $("work").hidden = !["fitting", "done", "stopped", "failed"].includes(step);
  $("result").hidden = step !== "done";
  $("start").disabled = step === "fitting";
  $("stop").hidden = step !== "fitting";
  $("go-on").hidden = step !== "stopped";
  $("headline").textContent = step === "fitting" ? state.headline : WORDS[step] || "";
  $("said").textContent = state.said;
  $("said-box").open = step === "failed" || $("said-box").open;
  if (state.grid) showGrid(state.grid);
  if (step === "failed") $("trouble").textContent = (state.said.match(/Error: [^]*$/) || ["The fit failed."])[0];
  if (step === "done") await showReport();
  showScored(state.scored);
  if (before && before !== "fitting" && step === "fitting") $("h-work").scrollIntoView();
  if (before === "fitting" && step === "done") $("h-result").scrollIntoView();
  clearTimeout(timer);
  if (step === "fitting") timer = setTimeout(look, 500);
}
async function look() {
  try {
    await show(await (await call("state")).json());
  } catch (error) {
    $("trouble").textContent = error instanceof TypeError ? "The studio has ended. Start it again in the same folder: it goes on." : error.message;
  }
}

// -- files in and out
function takes(zone, input, words, path) {
  const send = (file) => file && attempt(words, async () => {
    const answer = await call(`${path}?name=${encodeURIComponent(file.name)}`, file);
    await show(await answer.json());
  });
  input.addEventListener("change", () => send(input.files[0]));
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => { event.preventDefault(); zone.classList.remove("over"); send(event.dataTransfer.files[0]); });
}
async function download(what, name) {
  await attempt("", async () => {
    const link = element("a", undefined, { download: name });
    link.href = URL.createObjectURL(await (await call("results/" + what)).blob());
    link.click();
  });
}
takes($("drop"), $("file"), "Reading the table ..", "table");
takes($("drop-new"), $("new"), "Predicting ..", "score");
$("task").addEventListener("change", () => showMetrics(""));
$("start").addEventListener("click", () => attempt("", async () => show(await (await call("fit", JSON.stringify(settings()))).json())));
$("go-on").addEventListener("click", () => attempt("", async () => show(await (await call("fit", "")).json())));
$("stop").addEventListener("click", () => attempt("", async () => show(await (await call("stop", "")).json())));
$("get-model").addEventListener("click", () => download("model", "model.soft"));
$("get-report").addEventListener("click", () => download("report", "report.html"));
$("get-predictions").addEventListener("click", () => download("predictions", "predictions.csv"));
if (token) look();
else $("trouble").textContent = "The address has no token: use the one that `softlearning studio` printed.";
