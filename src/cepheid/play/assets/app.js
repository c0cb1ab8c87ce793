"use strict";
// The page of the workbench. What anything means is said by the server (`cepheid.play.api`): here it is asked for and shown.

const COLOURS = ["#3d7fc4", "#c46a1b", "#2e8b57", "#b0578d", "#8a7a1f", "#7a6fc9", "#c4504b", "#1f8a99"];
const DRAWN_MATCHES = 40;
const TYPING = 250; // ms without a key after which the server is asked
const SVG = "http://www.w3.org/2000/svg";

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

function after(delay, work) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, delay);
  };
}

// ---------------------------------------------------------------------------------------------------------- elements

function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  return filled(element, properties, children);
}

function s(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

function filled(element, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
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

// A warning as it prints: its first line, and the rest where one opens it.
function warning(text) {
  const lines = text.split("\n");
  const head = lines[0].replace(/^warning: /, "");
  const help = lines.filter((line) => line.startsWith("help: ")).map((line) => line.slice(6));
  return problem("warning", head, help);
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
  for (const lint of answer.lints) shown.push(warning(lint));
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
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, h("span", { class: "soft" }, "pick")),
    h("th", { scope: "col", class: "number" }, "row"),
    h("th", { scope: "col", "aria-label": "Variables" }),
    ...table.columns.map((column) =>
      h("th", { scope: "col", class: column.number ? "number" : null }, column.name, h("span", { class: "kind" }, column.type)),
    ),
    rest("th"),
  );
  const rows = table.rows.map((cells, row) =>
    h(
      "tr",
      { "data-row": row, tabindex: row ? "-1" : "0" },
      h("td", {}, pickBox(row)),
      h("td", { class: "number row-number" }, String(row)),
      h("td", { class: "marks" }),
      ...cells.map((cell, column) => h("td", { class: table.columns[column].number ? "number" : null }, cell)),
      rest("td"),
    ),
  );
  const box = $("events-table");
  if (!rows.length) {
    box.replaceChildren(h("p", { class: "empty" }, "No events yet. Choose an example, open a file, drop one here, or write them under Text."));
    return;
  }
  box.replaceChildren(h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows)));
  rowKeys(box.querySelector("tbody"), (tr) => lightEvent(Number(tr.dataset.row)));
}

// The last column takes the room that is left, so that the others stand together.
function rest(name) {
  return h(name, { class: "rest", "aria-hidden": "true" });
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

// One row of a table is in the order of Tab; arrows go on from it, and a row with the focus is lit as one under the pointer.
function rowKeys(body, light) {
  const row = (event) => event.target.closest("tr");
  body.addEventListener("mouseover", (event) => light(row(event)));
  body.addEventListener("mouseleave", darken);
  body.addEventListener("focusin", (event) => light(row(event)));
  body.addEventListener("focusout", darken);
  body.addEventListener("keydown", (event) => {
    const here = row(event);
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (step && here[step]) {
      event.preventDefault();
      here.tabIndex = -1;
      here[step].tabIndex = 0;
      here[step].focus();
    } else if (event.key === " " && event.target === here && here.querySelector("input")) {
      event.preventDefault();
      here.querySelector("input").click();
    }
  });
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

function colour(variable) {
  const place = variables().indexOf(variable);
  return place < 0 ? null : COLOURS[place % COLOURS.length];
}

function variables() {
  return found ? [...new Set(found.matches.flatMap((match) => match.marks.flatMap((mark) => mark.variables)))].sort() : [];
}

function sorted() {
  const numbered = found.matches.map((match, number) => ({ match, number }));
  if (!order) return numbered;
  const { column, down } = order;
  const number = found.columns[column].number;
  const value = ({ match }) => (typeof match.cells[column] === "string" ? match.cells[column] : (match.cells[column].rows[0] || { row: -1 }).row);
  const key = (entry) => (number ? Number(String(value(entry)).replaceAll(",", "")) : value(entry));
  const compare = (one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : one.number - other.number);
  return numbered.sort((one, other) => (down ? -compare(one, other) : compare(one, other)));
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
  const head = found.columns.map((column, place) => {
    const sorting = order && order.column === place ? (order.down ? "descending" : "ascending") : null;
    const sort = () => {
      order = { column: place, down: order && order.column === place ? !order.down : column.number };
      showMatches();
      $("matches-table").querySelectorAll("th button")[place].focus();
    };
    return h("th", { scope: "col", class: column.number ? "number" : null, "aria-sort": sorting }, h("button", { type: "button", onclick: sort }, column.name));
  });
  const rows = sorted().map(({ match, number }, place) =>
    h("tr", { "data-match": number, tabindex: place ? "-1" : "0" }, ...match.cells.map((cell, column) => matchCell(cell, found.columns[column])), rest("td")),
  );
  box.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, ...head, rest("th"))), h("tbody", {}, ...rows)));
  rowKeys(box.querySelector("tbody"), (tr) => lightMatch(Number(tr.dataset.match)));
}

function matchCell(cell, column) {
  if (typeof cell === "string") return h("td", { class: column.number ? "number" : null }, cell);
  const most = 6;
  const shown = cell.rows.length > most ? [...cell.rows.slice(0, most - 1), null, cell.rows[cell.rows.length - 1]] : cell.rows;
  const chips = shown.map((event) => {
    if (!event) return h("span", { class: "values" }, ".. ");
    const title = event.made ? `made by a definition, with row ${event.row}` : `row ${event.row}`;
    return h("span", { class: event.made ? "chip made" : "chip", title }, String(event.row));
  });
  return h("td", {}, ...chips, cell.text ? h("span", { class: "values" }, cell.text) : null);
}

// ---------------------------------------------------------------------------------------------------------- lighting

function darken() {
  document.querySelectorAll(".lit").forEach((element) => element.classList.remove("lit"));
  document.querySelectorAll("td.marks").forEach((cell) => cell.replaceChildren());
}

function eventRow(row) {
  return $("events-table").querySelector(`tr[data-row="${row}"]`);
}

function matchElements(number) {
  return document.querySelectorAll(`[data-match="${number}"]`);
}

function lightMatch(number) {
  darken();
  if (!found || !found.matches[number]) return;
  matchElements(number).forEach((element) => element.classList.add("lit"));
  let first = null;
  for (const mark of found.matches[number].marks) {
    const tr = mark.row === null ? null : eventRow(mark.row);
    if (!tr) continue;
    first = first || tr;
    tr.classList.add("lit");
    for (const variable of mark.variables) {
      const badge = h("span", { class: "badge" }, variable);
      badge.style.background = colour(variable);
      tr.querySelector("td.marks").append(badge);
    }
  }
  if (first) intoView($("events-table"), first);
}

function lightEvent(row) {
  darken();
  if (!found) return;
  eventRow(row).classList.add("lit");
  let first = true;
  found.matches.forEach((match, number) => {
    if (!match.marks.some((mark) => mark.row === row)) return;
    matchElements(number).forEach((element) => element.classList.add("lit"));
    const tr = $("matches-table").querySelector(`tr[data-match="${number}"]`);
    if (first && tr) intoView($("pane-matches"), tr);
    first = false;
  });
}

// scrollIntoView would move the page, too, which is what one reads.
function intoView(box, element) {
  const inner = element.getBoundingClientRect();
  const outer = box.getBoundingClientRect();
  const head = 44;
  if (inner.top < outer.top + head) box.scrollTop -= outer.top + head - inner.top;
  else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom;
}

// --------------------------------------------------------------------------------------------------------- time line

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const ROUND = [
  ...STEPS,
  ...[1, 2, 5, 10, 15, 30].map((second) => second * 1e3),
  ...[1, 2, 5, 10, 15, 30].map((minute) => minute * 6e4),
  ...[1, 2, 3, 6, 12].map((hour) => hour * 36e5),
  ...[1, 2, 7, 14, 30, 90, 365].map((day) => day * 864e5),
];

// Ticks on round times, or round numbers: {at, text}.
function ticks(first, last, most) {
  const clock = table.clock;
  const unit = clock && clock.unit;
  const length = (last - first) * (unit || 1) || 1;
  const wanted = length / most;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = (unit && ROUND.find((each) => each >= wanted)) || [1, 2, 5, 10].map((each) => each * power).find((each) => each >= wanted);
  const origin = clock ? clock.origin : 0;
  const whole = unit || power >= 1 ? step : Math.max(step, 1);
  const shown = [];
  const start = origin + first * (unit || 1);
  // Counted: where times are large, a step may be less than what a number tells apart.
  for (let number = 0; number <= 2 * most + 2; number += 1) {
    const at = Math.ceil(start / whole) * whole + number * whole;
    if (at > start + length * 1.0001) break;
    shown.push({ at: (at - origin) / (unit || 1), text: unit ? timeText(at, whole) : String(Math.round(at * 1e6) / 1e6) });
  }
  return shown;
}

function timeText(milliseconds, step) {
  const date = new Date(milliseconds);
  if (Number.isNaN(date.getTime())) return "";
  const text = date.toISOString();
  if (step >= 864e5) return text.slice(0, 10);
  if (step >= 6e4) return text.slice(11, 16);
  return step >= 1e3 ? text.slice(11, 19) : text.slice(11, 23);
}

function showTimeline() {
  const box = $("timeline");
  box.replaceChildren();
  if (!found || !found.matches.length || !table) return;
  const clock = table.clock;
  const at = (row) => (clock ? clock.steps[row] : row);
  const drawn = found.matches.slice(0, DRAWN_MATCHES).map((match, number) => ({ match, number })).filter(({ match }) => match.first !== null);
  if (!drawn.length) return;
  const rows = drawn.flatMap(({ match }) => match.marks.map((mark) => mark.row)).filter((row) => row !== null);
  const first = Math.min(...rows.map(at));
  const last = Math.max(...rows.map(at));
  const names = drawn.map(({ match, number }) => shorten(match.name || `match ${number + 1}`, 20));
  const width = Math.max(box.clientWidth - 24, 240);
  const left = Math.min(Math.max(...names.map((name) => name.length)) * 6.6 + 12, width / 3);
  const right = width - 14;
  const x = (time) => (last > first ? left + 8 + ((right - left - 8) * (time - first)) / (last - first) : (left + right) / 2);
  const top = 30;
  const lane = 22;
  const height = top + lane * drawn.length + 6;
  const parts = [];
  for (const tick of ticks(first, last, Math.max(2, Math.floor((right - left) / 90)))) {
    const place = x(tick.at);
    parts.push(s("path", { class: "grid", d: `M${place} ${top - 8}V${height - 4}` }));
    const edge = place > right - 24 ? "end" : place < left + 24 ? "start" : "middle";
    parts.push(s("text", { x: place, y: 12, "text-anchor": edge }, tick.text));
  }
  const inside = table.rows.length ? [...Array(Math.min(table.count, 5000)).keys()].filter((row) => at(row) >= first && at(row) <= last) : [];
  parts.push(s("path", { class: "tick", d: inside.map((row) => `M${x(at(row)).toFixed(1)} ${top - 12}v5`).join("") }));
  drawn.forEach(({ match, number }, place) => parts.push(lineOf(match, number, names[place], top + lane * (place + 0.5), { at, x, left, width, lane })));
  const said = `Time line of ${drawn.length} matches; the table below says the same`;
  const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": said }, ...parts);
  const legend = variables().map((name) => {
    const dot = h("i");
    dot.style.background = colour(name);
    return h("span", {}, dot, name);
  });
  const rest = found.matches.length - drawn.length;
  if (rest > 0) legend.push(h("span", {}, `the first ${drawn.length} of ${found.matches.length} listed matches are drawn`));
  if (legend.length) box.append(h("div", { class: "legend" }, ...legend));
  box.append(picture);
}

function lineOf(match, number, name, y, { at, x, left, width, lane }) {
  const group = s("g", { class: "match", "data-match": number });
  group.append(
    s("rect", { class: "back", x: 0, y: y - lane / 2, width, height: lane, rx: 4 }),
    s("text", { class: "name", x: left - 6, y: y + 4, "text-anchor": "end" }, name),
    s("path", { class: "lane", d: `M${x(at(match.first))} ${y}H${x(at(match.last))}` }),
  );
  for (const mark of match.marks) {
    if (mark.row === null) continue;
    const fill = mark.variables.length ? colour(mark.variables[0]) : "#6f7680";
    const shape = mark.made
      ? s("rect", { x: x(at(mark.row)) - 5, y: y - 5, width: 10, height: 10, fill, transform: `rotate(45 ${x(at(mark.row))} ${y})` })
      : s("circle", { cx: x(at(mark.row)), cy: y, r: 5, fill });
    const cells = table.rows[mark.row] || [];
    const values = table.columns.map((column, place) => `${column.name}=${cells[place] ?? ""}`).join(", ");
    shape.append(s("title", {}, `${mark.variables.join(", ") || "event"}: row ${mark.row}${mark.made ? " (made by a definition)" : ""}\n${values}`));
    group.append(shape);
  }
  group.addEventListener("mouseenter", () => lightMatch(number));
  group.addEventListener("mouseleave", darken);
  return group;
}

function shorten(text, most) {
  return text.length > most ? `${text.slice(0, most - 2)}..` : text;
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
  // The policy of the page allows no style attributes; app.css says what they would.
  const parsed = new DOMParser().parseFromString(machine.svg.replace(/\sstyle="[^"]*"/g, ""), "image/svg+xml");
  if (parsed.documentElement.localName === "svg") {
    const picture = document.importNode(parsed.documentElement, true);
    // Wide drawings shrink a little, so that their words stay readable; past that one scrolls.
    picture.style.minWidth = `${Number(picture.getAttribute("width")) * 0.75}px`;
    $("drawing").append(picture);
  }
  $("step").max = String(machine.steps.length);
  $("step").value = String(Math.min(Number(address.get("step") || $("step").value), machine.steps.length));
  $("step-note").textContent = machine.note;
  showStep();
});

// What is drawn for each state: a circle, or a counted item, which is several. Of several drawings the last is that of the pattern.
function stateElements() {
  const drawn = new Map();
  for (const element of $("drawing").querySelectorAll("[data-states]")) {
    for (const number of element.dataset.states.split(" ").map(Number)) {
      if (number < machine.states) drawn.set(number, element);
    }
  }
  return drawn;
}

function showStep() {
  if (!machine) return;
  const place = Number($("step").value);
  const step = place ? machine.steps[place - 1] : null;
  $("step-number").textContent = `${place} / ${machine.steps.length}`;
  const live = new Set(step ? step.states : []);
  const drawn = stateElements();
  drawn.forEach((element) => element.classList.remove("live", "ends"));
  for (const number of [machine.initial, ...live]) {
    if (drawn.has(number)) drawn.get(number).classList.add(machine.finals.includes(number) && live.has(number) ? "ends" : "live");
  }
  document.querySelectorAll("tr.current").forEach((tr) => tr.classList.remove("current"));
  const tr = step && step.row !== null ? eventRow(step.row) : null;
  if (tr) {
    tr.classList.add("current");
    intoView($("events-table"), tr);
  }
  const says = [];
  if (machine.refused) says.push(machine.refused);
  else if (!step) says.push("Before the first event: a match can begin. Move the slider, or press an arrow key on it.");
  else {
    const inner = step.states.filter((number) => !machine.finals.includes(number));
    const of = machine.partitioned ? " of its partition" : "";
    const where = inner.length ? `partial matches${of} wait in ${inner.length > 1 ? "states" : "state"} ${inner.join(", ")}` : `no partial match${of} waits`;
    const event = step.made ? `an event ${step.made} that a definition makes` : `row ${step.row}${eventText(step.row)}`;
    says.push(`After ${event}: ${where}${step.ends ? "; " : "."}`);
    if (step.ends) says.push(h("strong", {}, machine.note ? "a match may end here." : "a match ends here."));
  }
  $("step-text").replaceChildren(...says);
}

function eventText(row) {
  if (!table || !table.rows[row]) return "";
  const cells = table.columns.map((column, place) => [column.name, table.rows[row][place]]);
  return ` (${shorten(cells.map(([name, value]) => (name === table.type ? value : `${name}=${value}`)).join(" "), 70)})`;
}

function stepBy(change) {
  $("step").value = String(Number($("step").value) + change);
  showStep();
}

// ------------------------------------------------------------------------------------------------- explanation, code

const OPEN = ["plan", "lints", "evaluation"];

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
  const names = { evaluation: "How it is evaluated, and what that costs", lints: "Warnings", plan: "What it means" };
  $("pane-explain").replaceChildren(
    ...sections.map(([title, text]) =>
      h("details", { open: OPEN.includes(title) }, h("summary", {}, names[title] || title), title === "evaluation" ? terms(text) : h("pre", {}, text)),
    ),
  );
});

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
  $("step").addEventListener("input", showStep);
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
