// The page of the workbench. What anything means is said by the server (`cepheid.play.api`): here it is asked for and shown.

import { Lights, after, drawingOf, eventsTable, h, matchesTable, rowKeys, showStep, stepWords, timeline } from "./views.js";

const TYPING = 250; // ms without a key after which the server is asked

const address = new URLSearchParams(location.search);
const token = address.get("token") || "";
const $ = (id) => document.getElementById(id);

const state = { query: "", args: {}, source: { format: "line", text: "", type: null, time: null }, ended: false };
let known = null; // what the server began with: examples, limits
let table = null; // the last answer about events
let found = null; // the last answer about matches
let machine = null; // the last answer about the automaton
let painted = { text: "", tokens: [], error: null };
const picked = new Set();
const stale = { matches: true, automaton: true, explain: true, code: true };
let tab = "matches";
let order = null; // the column by which matches are sorted
const lights = new Lights(document.body, $("events-table"), $("pane-matches"));

// ------------------------------------------------------------------------------------------------------------ asking

async function ask(question, request) {
  try {
    const response = await fetch(`api/${question}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Cepheid-Token": token },
      body: JSON.stringify(request),
    });
    return await response.json();
  } catch {
    return { error: { kind: "refused", fact: "the workbench does not answer: it may have been stopped", help: ["start cepheid play again"], span: null } };
  }
}

// One request of a kind at a time, and only the last of those that were made meanwhile.
function latest(work) {
  let running = false;
  let again = false;
  return async function start() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    busy(1);
    do {
      again = false;
      await work();
    } while (again);
    running = false;
    busy(-1);
  };
}

let working = 0;
let slow = 0;
function busy(change) {
  working += change;
  clearTimeout(slow);
  document.body.dataset.working = String(working);
  if (working) slow = setTimeout(() => ($("busy").textContent = "evaluating .."), 400);
  else $("busy").textContent = "";
}

let toastTimer = 0;
function toast(text) {
  $("toast").textContent = text;
  $("toast").classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => $("toast").classList.remove("shown"), 4500);
}

function problem(kind, fact, help = [], place = null) {
  const said = place ? h("button", { type: "button", onclick: () => select(place) }, fact) : fact;
  return h("div", { class: `problem ${kind}` }, h("div", {}, said), ...help.map((line) => h("div", { class: "help" }, line)));
}

function failure(error) {
  return problem("error", error.fact, error.help);
}

// A lint as it prints: "warning: .." or "note: ..", the place, and the help.
function lint(text) {
  const lines = text.split("\n");
  const [, kind, head] = lines[0].match(/^(warning|note): (.*)$/);
  const help = lines.filter((line) => line.startsWith("help: ")).map((line) => line.slice(6));
  return problem(kind, head, help);
}

// -------------------------------------------------------------------------------------------------------- the editor

// Places come in code points, a textarea has UTF-16.
function units(text) {
  const places = [0];
  for (const point of text) places.push(places[places.length - 1] + point.length);
  return places;
}

function paint() {
  const { text, tokens, error } = painted;
  const parts = [];
  const pieces = tokens.map(([start, end, kind]) => ({ start, end, kind }));
  let place = 0;
  for (const piece of pieces) {
    if (piece.start > place) parts.push({ start: place, end: piece.start, kind: null });
    parts.push(piece);
    place = piece.end;
  }
  if (place < text.length) parts.push({ start: place, end: text.length, kind: null });
  const nodes = [];
  for (const part of parts) {
    for (const [start, end, wrong] of split(part, error)) {
      const names = [part.kind ? `t-${part.kind}` : "", wrong ? "wrong" : ""].filter(Boolean).join(" ");
      const words = text.slice(start, end);
      nodes.push(names ? h("span", { class: names }, words) : document.createTextNode(words));
    }
  }
  // What is missing at the end has a place of no width.
  if (error && error[0] >= text.length) nodes.push(h("span", { class: "wrong" }, " "));
  nodes.push(document.createTextNode("\n"));
  $("painted").replaceChildren(...nodes);
}

function split(part, error) {
  if (!error) return [[part.start, part.end, false]];
  const from = Math.min(Math.max(error[0], part.start), part.end);
  const to = Math.min(Math.max(error[1], part.start), part.end);
  return [
    [part.start, from, false],
    [from, to, true],
    [to, part.end, false],
  ].filter(([start, end]) => start < end);
}

// While one types, the words around the change keep their colours.
function repaint(text) {
  const old = painted.text;
  let head = 0;
  while (head < Math.min(old.length, text.length) && old[head] === text[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(old.length, text.length) - head && old[old.length - 1 - tail] === text[text.length - 1 - tail]) tail += 1;
  const shift = text.length - old.length;
  const tokens = painted.tokens.flatMap(([start, end, kind]) => {
    if (end <= head) return [[start, end, kind]];
    if (start >= old.length - tail) return [[start + shift, end + shift, kind]];
    return [];
  });
  painted = { text, tokens, error: null };
  paint();
}

function select([start, end]) {
  $("query").focus();
  $("query").setSelectionRange(start, end);
}

const check = latest(async () => {
  const text = state.query;
  const request = { query: text, args: state.args, type: state.source.type, time: state.source.time };
  const answer = await ask("check", { ...request, schema: table && table.count ? table.schema : null });
  if (text !== state.query) return;
  if (answer.tokens) {
    const at = units(text);
    const place = (point) => at[Math.min(point, at.length - 1)];
    const span = answer.error && answer.error.span;
    const error = span ? [place(span[0]), Math.max(place(span[1]), place(span[0]))] : null;
    painted = { text, tokens: answer.tokens.map(([start, end, kind]) => [place(start), place(end), kind]), error };
    paint();
    $("query").setAttribute("aria-invalid", String(Boolean(answer.error)));
    showProblems(answer, error);
    if (answer.controls) showControls(answer.controls);
    showParameters(answer.parameters);
  } else {
    $("problems").replaceChildren(failure(answer.error));
  }
});

function showProblems(answer, place) {
  const shown = [];
  if (answer.error && state.query.trim()) shown.push(problem("error", answer.error.fact, answer.error.help, place));
  for (const note of answer.notes) shown.push(problem("note", note));
  for (const text of answer.lints) shown.push(lint(text));
  $("problems").replaceChildren(...shown);
}

function showControls(controls) {
  for (const name of ["strategy", "window", "limit"]) {
    if (document.activeElement !== $(name)) $(name).value = controls[name];
  }
}

function showParameters(names) {
  const box = $("parameters");
  if (box.dataset.names === names.join("\n")) return;
  box.dataset.names = names.join("\n");
  box.replaceChildren(
    ...names.map((name) => {
      const input = h("input", { size: 8, placeholder: "value", spellcheck: "false" });
      input.value = state.args[name] || "";
      input.addEventListener("input", () => {
        state.args[name] = input.value;
        queryChanged();
      });
      return h("label", { class: "field" }, h("span", {}, `:${name}`), input);
    }),
  );
}

async function rewrite(control) {
  const value = $(control).value;
  const answer = await ask("rewrite", { query: state.query, control, value });
  if (answer.error) {
    $("problems").replaceChildren(failure(answer.error));
    return;
  }
  if (answer.query !== state.query) setQuery(answer.query);
  if (!answer.kept) toast("The query was printed anew: its comments and line breaks are not kept by this change.");
}

function setQuery(text) {
  $("query").value = text;
  queryTyped();
}

function queryTyped() {
  state.query = $("query").value;
  repaint(state.query);
  queryChanged();
}

const askSoon = after(TYPING, () => {
  check();
  refresh();
});

function queryChanged() {
  Object.keys(stale).forEach((name) => (stale[name] = true));
  $(`pane-${tab}`).classList.add("stale");
  remember();
  askSoon();
}

// ------------------------------------------------------------------------------------------------------------ events

const readEvents = latest(async () => {
  const source = { ...state.source };
  const answer = await ask("events", { source });
  if (source.text !== state.source.text || source.format !== state.source.format) return;
  picked.clear();
  $("why").disabled = true;
  if (answer.error) {
    table = null;
    $("events-count").textContent = "";
    $("events-notes").replaceChildren(failure(answer.error));
    $("events-table").replaceChildren();
  } else {
    table = answer;
    $("events-count").textContent = answer.count.toLocaleString("en");
    $("events-notes").replaceChildren(...uploadNotes.map((note) => problem("note", note)), ...answer.notes.map((note) => problem("note", note)));
    showEvents();
    showColumns();
  }
  queryChanged();
});

const readSoon = after(TYPING, readEvents);
let uploadNotes = [];

function sourceChanged(now = false) {
  remember();
  if (now) readEvents();
  else readSoon();
}

function showColumns() {
  const times = table.columns.map((column) => column.name);
  options($("type-column"), table.types, state.source.type, table.type, "each stream is one type");
  options($("time-column"), times, state.source.time, table.time, "none");
}

function options(box, names, given, used, none) {
  const automatic = h("option", { value: "" }, used && !given ? used : none);
  box.replaceChildren(automatic, ...names.filter((name) => given || name !== used).map((name) => h("option", { value: name }, name)));
  box.value = given || "";
}

function showEvents() {
  const box = $("events-table");
  if (!table.rows.length) {
    box.replaceChildren(h("p", { class: "empty" }, "No events yet. Choose an example, open a file, drop one here, or write them under Text."));
    return;
  }
  const pick = { head: h("th", { scope: "col" }, h("span", { class: "soft" }, "pick")), cell: (row) => h("td", {}, pickBox(row)) };
  box.replaceChildren(eventsTable(table, pick));
  const body = box.querySelector("tbody");
  rowKeys(body, (tr) => lights.event(Number(tr.dataset.row)), () => lights.darken());
  body.addEventListener("keydown", (event) => {
    if (event.key !== " " || event.target.localName !== "tr") return;
    event.preventDefault();
    event.target.querySelector("input").click();
  });
}

function pickBox(row) {
  const box = h("input", { type: "checkbox", "aria-label": `Pick row ${row}`, tabindex: "-1" });
  box.addEventListener("change", () => {
    if (box.checked) picked.add(row);
    else picked.delete(row);
    $("why").disabled = !picked.size;
  });
  return box;
}

function showAs(text) {
  $("as-text").setAttribute("aria-pressed", String(text));
  $("as-table").setAttribute("aria-pressed", String(!text));
  $("events-text").hidden = !text;
  $("events-table").hidden = text;
}

function setSource(source) {
  state.source = { type: null, time: null, ...source };
  $("source").value = state.source.text;
  $("format").value = state.source.format;
  sourceChanged(true);
}

// What pasted text looks like.
function formOf(text) {
  const first = text.trim().split("\n", 1)[0];
  if (first.startsWith("{")) return "jsonl";
  return first.includes(",") && !first.includes("(") ? "csv" : "line";
}

async function openFile(file) {
  if (file.size > known.limits.MAX_BODY_BYTES * 0.7) {
    toast(`${file.name} is longer than the workbench takes (MAX_BODY_BYTES); cepheid run has no such limit.`);
    return;
  }
  const data = await base64(new Uint8Array(await file.arrayBuffer()));
  const answer = await ask("upload", { name: file.name, data });
  if (answer.error) {
    $("events-notes").replaceChildren(failure(answer.error));
    return;
  }
  uploadNotes = answer.notes;
  setSource(answer.source);
}

// ----------------------------------------------------------------------------------------------------------- matches

const evaluate = latest(async () => {
  const asked = JSON.stringify(state);
  const answer = await ask("run", state);
  if (asked !== JSON.stringify(state)) return;
  stale.matches = false;
  $("pane-matches").classList.remove("stale");
  found = answer.error ? null : answer;
  lights.show(found);
  order = null;
  $("matches-count").textContent = found ? found.count : "";
  // What is wrong with the query stands under the query.
  const notes = answer.error ? [problem("error", answer.error.fact, [])] : answer.notes.map((note) => problem("note", note));
  $("matches-notes").replaceChildren(...notes);
  showMatches();
  showTimeline();
});

function refresh() {
  if (!stale[tab]) return;
  if (tab === "matches") evaluate();
  else if (tab === "automaton") draw();
  else if (tab === "explain") explain();
  else programs();
  if (tab !== "matches" && stale.matches) evaluate();
}

function showMatches() {
  const box = $("matches-table");
  if (!found) {
    box.replaceChildren();
    return;
  }
  if (!found.matches.length) {
    box.replaceChildren(h("p", { class: "empty" }, table && table.count ? "No match in these events." : "There are no events."));
    return;
  }
  const sort = (next) => {
    order = next;
    showMatches();
    box.querySelectorAll("th button")[next.column].focus();
  };
  box.replaceChildren(matchesTable(found, order, sort));
  rowKeys(box.querySelector("tbody"), (tr) => lights.match(Number(tr.dataset.match)), () => lights.darken());
}

function showTimeline() {
  const box = $("timeline");
  box.replaceChildren();
  if (!found || !found.matches.length || !table) return;
  box.append(...timeline(table, found, Math.max(box.clientWidth - 24, 240), lights));
}

// ------------------------------------------------------------------------------------------------- automaton and step

const draw = latest(async () => {
  const asked = JSON.stringify(state);
  const answer = await ask("automaton", state);
  if (asked !== JSON.stringify(state)) return;
  stale.automaton = false;
  $("pane-automaton").classList.remove("stale");
  machine = answer.error ? null : answer;
  $("drawing").replaceChildren();
  if (!machine) {
    $("step-text").replaceChildren(failure(answer.error));
    $("step-note").textContent = "";
    $("step").max = "0";
    return;
  }
  const picture = drawingOf(machine.svg);
  if (picture) $("drawing").append(picture);
  $("step").max = String(machine.steps.length);
  $("step").value = String(Math.min(Number(address.get("step") || $("step").value), machine.steps.length));
  $("step-note").textContent = machine.note;
  showMachine();
});

function showMachine() {
  if (!machine) return;
  const place = Number($("step").value);
  $("step-number").textContent = `${place} / ${machine.steps.length}`;
  showStep(machine, place, $("drawing"), $("events-table"));
  $("step-text").replaceChildren(...stepWords(machine, place, table));
}

function stepBy(change) {
  $("step").value = String(Number($("step").value) + change);
  showMachine();
}

// ------------------------------------------------------------------------------------------------- explanation, code

const OPEN = ["meaning", "lints", "evaluation"];

const explain = latest(async () => {
  const asked = JSON.stringify(state);
  const answer = await ask("explain", state);
  if (asked !== JSON.stringify(state)) return;
  stale.explain = false;
  $("pane-explain").classList.remove("stale");
  if (answer.error) {
    $("pane-explain").replaceChildren(failure(answer.error));
    return;
  }
  const rank = ([title]) => (OPEN.includes(title) ? OPEN.indexOf(title) : OPEN.length);
  const sections = [...answer.sections].sort((one, other) => rank(one) - rank(other)).filter(([title]) => title !== "text");
  const names = { evaluation: "How it is evaluated, and what that costs", lints: "Warnings", meaning: "What it means" };
  const shown = { evaluation: terms, meaning: sentences };
  $("pane-explain").replaceChildren(
    ...sections.map(([title, text]) =>
      h("details", { open: OPEN.includes(title) }, h("summary", {}, names[title] || title), shown[title] ? shown[title](text) : h("pre", {}, text)),
    ),
  );
});

// A paragraph for each line; indented lines go on with it.
function sentences(text) {
  return h("div", {}, ...text.replace(/\n +/g, " ").split("\n").map((line) => h("p", {}, line)));
}

// Lines of a word, spaces and what is said of it, as a list of terms; other lines stand as they are.
function terms(text) {
  const list = h("dl");
  for (const line of text.split("\n")) {
    const [, term, said] = /^\s*(\S+(?: \S+)*)\s{2,}(\S.*)$/.exec(line) || [];
    if (term) list.append(h("dt", {}, term), h("dd", {}, said));
    else if (/^\s{2,}\S/.test(line) && list.lastElementChild) list.lastElementChild.append(` ${line.trim()}`);
    else if (line.trim()) list.append(h("dt", { class: "whole" }, line.trim()));
  }
  return list;
}

const programs = latest(async () => {
  const asked = JSON.stringify(state);
  const answer = await ask("programs", state);
  if (asked !== JSON.stringify(state)) return;
  stale.code = false;
  $("pane-code").classList.remove("stale");
  if (answer.error) {
    $("pane-code").replaceChildren(failure(answer.error));
    return;
  }
  const blocks = [["Python", answer.python], ["PySpark", answer.pyspark]].map(([name, text]) =>
    h(
      "div",
      { class: "code" },
      h("div", { class: "bar" }, h("h3", {}, name), h("span", { class: "stretch" }), h("button", { type: "button", onclick: () => copy(text, `${name} copied.`) }, `Copy as ${name}`)),
      h("pre", { tabindex: "0", "aria-label": `${name} program` }, text),
    ),
  );
  $("pane-code").replaceChildren(...blocks);
});

async function whyNot() {
  const answer = await ask("why_not", { ...state, rows: [...picked] });
  choose("matches");
  const close = h("button", { type: "button", onclick: () => ($("why-answer").hidden = true) }, "Close");
  const title = `Why is there no match with ${picked.size > 1 ? "rows" : "row"} ${[...picked].sort((one, other) => one - other).join(", ")}?`;
  $("why-answer").replaceChildren(
    h("div", { class: "bar" }, h("h3", {}, title), h("span", { class: "stretch" }), close),
    answer.error ? failure(answer.error) : h("pre", {}, answer.text),
  );
  $("why-answer").hidden = false;
  $("why-answer").scrollIntoView({ block: "nearest" });
}

async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    toast(said);
  } catch {
    toast("The browser does not allow to copy; select the text instead.");
  }
}

// -------------------------------------------------------------------------------------------------------------- tabs

const TABS = ["matches", "automaton", "explain", "code"];

function choose(name) {
  tab = name;
  for (const each of TABS) {
    $(`tab-${each}`).setAttribute("aria-selected", String(each === name));
    $(`tab-${each}`).tabIndex = each === name ? 0 : -1;
    $(`pane-${each}`).hidden = each !== name;
  }
  $(`pane-${name}`).classList.toggle("stale", stale[name]);
  refresh();
  if (name === "matches" && !stale.matches) showTimeline();
}

function tabKeys(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  choose(TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length]);
  $(`tab-${tab}`).focus();
}

// ------------------------------------------------------------------------------------------------------------- links

async function through(bytes, stream) {
  const packed = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

async function base64(bytes) {
  let text = "";
  for (let start = 0; start < bytes.length; start += 0x8000) text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  return btoa(text);
}

async function fragment() {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  return `#w=${(await base64(bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
}

const remember = after(600, async () => {
  const text = await fragment();
  if (text.length <= known.limits.MAX_LINK) history.replaceState(null, "", location.search + text);
});

async function share() {
  const text = await fragment();
  if (text.length > known.limits.MAX_LINK) {
    toast(`The link would be longer than ${known.limits.MAX_LINK.toLocaleString("en")} characters (MAX_LINK): share fewer events.`);
    return;
  }
  // Without the token: it is for this machine alone.
  await copy(`${location.origin}/${text}`, "Link copied. It holds the query and the events; open it anywhere with: cepheid play 'LINK'");
}

function begin(held) {
  state.args = held.args && typeof held.args === "object" ? held.args : {};
  state.ended = Boolean(held.ended);
  $("ended").checked = state.ended;
  $("parameters").dataset.names = "?";
  state.query = typeof held.query === "string" ? held.query : "";
  $("query").value = state.query;
  repaint(state.query);
  const source = held.source && typeof held.source.text === "string" ? held.source : { format: "line", text: "" };
  setSource(source);
}

function beginExample(number) {
  const example = known.examples[number];
  $("asks").textContent = example.asks;
  uploadNotes = [];
  begin({ query: example.query, source: { format: example.format, text: example.events }, ended: example.ended });
}

// ------------------------------------------------------------------------------------------------------------- start

function listen() {
  $("query").addEventListener("input", queryTyped);
  for (const control of ["strategy", "window", "limit"]) {
    $(control).addEventListener("change", () => rewrite(control));
  }
  $("example").addEventListener("change", () => {
    if ($("example").value) beginExample(Number($("example").value));
  });
  $("source").addEventListener("input", () => {
    state.source.text = $("source").value;
    uploadNotes = [];
    sourceChanged();
  });
  $("source").addEventListener("paste", () =>
    setTimeout(() => {
      $("format").value = state.source.format = formOf($("source").value);
      sourceChanged();
    }),
  );
  $("format").addEventListener("change", () => {
    state.source.format = $("format").value;
    sourceChanged(true);
  });
  $("type-column").addEventListener("change", () => {
    state.source.type = $("type-column").value || null;
    sourceChanged(true);
  });
  $("time-column").addEventListener("change", () => {
    state.source.time = $("time-column").value || null;
    sourceChanged(true);
  });
  $("ended").addEventListener("change", () => {
    state.ended = $("ended").checked;
    queryChanged();
  });
  $("as-table").addEventListener("click", () => showAs(false));
  $("as-text").addEventListener("click", () => showAs(true));
  $("open-file").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => {
    if ($("file").files[0]) openFile($("file").files[0]);
    $("file").value = "";
  });
  const panel = $("events-panel");
  panel.addEventListener("dragover", (event) => {
    event.preventDefault();
    panel.classList.add("dropping");
  });
  panel.addEventListener("dragleave", () => panel.classList.remove("dropping"));
  panel.addEventListener("drop", (event) => {
    event.preventDefault();
    panel.classList.remove("dropping");
    if (event.dataTransfer.files[0]) openFile(event.dataTransfer.files[0]);
  });
  for (const name of TABS) $(`tab-${name}`).addEventListener("click", () => choose(name));
  document.querySelector("[role=tablist]").addEventListener("keydown", tabKeys);
  $("step").addEventListener("input", showMachine);
  $("step-back").addEventListener("click", () => stepBy(-1));
  $("step-on").addEventListener("click", () => stepBy(1));
  $("share").addEventListener("click", share);
  $("why").addEventListener("click", whyNot);
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("query").focus();
  });
  new ResizeObserver(after(100, () => tab === "matches" && showTimeline())).observe($("timeline"));
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = () => (document.documentElement.dataset.theme = address.get("theme") || (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", set);
  set();
}

async function start() {
  theme();
  known = await ask("start", {});
  if (known.error) {
    $("problems").replaceChildren(failure(known.error));
    return;
  }
  known.strategies.forEach((name) => $("strategy").append(h("option", { value: name }, name)));
  known.examples.forEach((example, number) => $("example").append(h("option", { value: number }, example.name)));
  if (TABS.includes(address.get("tab"))) choose(address.get("tab"));
  listen();
  const held = location.hash.startsWith("#w=") ? await unpack(location.hash.slice(3)).catch(() => null) : known.start;
  if (held && typeof held === "object") {
    uploadNotes = Array.isArray(held.notes) ? held.notes : [];
    begin(held);
  } else {
    if (location.hash.startsWith("#w=")) toast("The link cannot be read: copy it again, whole. Here is an example instead.");
    $("example").value = "0";
    beginExample(0);
  }
}

start();
