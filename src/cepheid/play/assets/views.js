// What the page of the workbench and the widget of a notebook both show: the events, the matches, their time line, and the automaton that one steps
// through. `table`, `found` and `machine` are the answers of `cepheid.play`: of `tables.shown_events`, `answers.matches_in` and `machine.machine_of`.

const DRAWN_MATCHES = 40;
const SVG = "http://www.w3.org/2000/svg";

// ---------------------------------------------------------------------------------------------------------- elements

export function h(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
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

export function after(delay, work) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, delay);
  };
}

function shorten(text, most) {
  return text.length > most ? `${text.slice(0, most - 2)}..` : text;
}

// scrollIntoView would move the page, too, which is what one reads.
export function intoView(box, element) {
  const inner = element.getBoundingClientRect();
  const outer = box.getBoundingClientRect();
  const head = 44;
  if (inner.top < outer.top + head) box.scrollTop -= outer.top + head - inner.top;
  else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom;
}

// ------------------------------------------------------------------------------------------------------------ tables

// The last column takes the room that is left, so that the others stand together.
function rest(name) {
  return h(name, { class: "rest", "aria-hidden": "true" });
}

// first: {head, cell(row)} of a column in front of the others, or null.
export function eventsTable(table, first) {
  const head = h(
    "tr",
    {},
    first && first.head,
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
      first && first.cell(row),
      h("td", { class: "number row-number" }, String(row)),
      h("td", { class: "marks" }),
      ...cells.map((cell, column) => h("td", { class: table.columns[column].number ? "number" : null }, cell)),
      rest("td"),
    ),
  );
  return h("table", { "aria-label": "Events" }, h("thead", {}, head), h("tbody", {}, ...rows));
}

// order: {column, down}, by which they are sorted, or null. sort: called with the next order when one asks for it.
export function matchesTable(found, order, sort) {
  const head = found.columns.map((column, place) => {
    const here = order && order.column === place;
    const next = { column: place, down: here ? !order.down : column.number };
    const button = h("button", { type: "button", onclick: () => sort(next) }, column.name);
    return h("th", { scope: "col", class: column.number ? "number" : null, "aria-sort": here ? (order.down ? "descending" : "ascending") : null }, button);
  });
  const rows = inOrder(found, order).map(({ match, number }, place) =>
    h("tr", { "data-match": number, tabindex: place ? "-1" : "0" }, ...match.cells.map((cell, column) => matchCell(cell, found.columns[column])), rest("td")),
  );
  return h("table", { "aria-label": "Matches" }, h("thead", {}, h("tr", {}, ...head, rest("th"))), h("tbody", {}, ...rows));
}

function inOrder(found, order) {
  const numbered = found.matches.map((match, number) => ({ match, number }));
  if (!order) return numbered;
  const { column, down } = order;
  const number = found.columns[column].number;
  const value = ({ match }) => (typeof match.cells[column] === "string" ? match.cells[column] : (match.cells[column].rows[0] || { row: -1 }).row);
  const key = (entry) => (number ? Number(String(value(entry)).replaceAll(",", "")) : value(entry));
  const compare = (one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : one.number - other.number);
  return numbered.sort((one, other) => (down ? -compare(one, other) : compare(one, other)));
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

// One row of a table is in the order of Tab; arrows go on from it, and a row with the focus is lit as one under the pointer.
export function rowKeys(body, light, darken) {
  const row = (event) => event.target.closest("tr");
  body.addEventListener("mouseover", (event) => light(row(event)));
  body.addEventListener("mouseleave", darken);
  body.addEventListener("focusin", (event) => light(row(event)));
  body.addEventListener("focusout", darken);
  body.addEventListener("keydown", (event) => {
    const here = row(event);
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (!step) return;
    event.preventDefault();
    if (!here[step]) return;
    here.tabIndex = -1;
    here[step].tabIndex = 0;
    here[step].focus();
  });
}

// ---------------------------------------------------------------------------------------------------------- lighting

// The colour of each variable that the matches have, by its name, in the order of the pattern.
function coloursOf(found) {
  const names = new Set(found ? found.matches.flatMap((match) => match.marks.flatMap((mark) => mark.variables)) : []);
  return new Map(found ? Object.entries(found.colours).filter(([name]) => names.has(name)) : []);
}

// Lights a match with its events and an event with its matches, wherever below `root` they are drawn: what has `data-match` or `data-row`.
export class Lights {
  // events, matches: the boxes in which their tables scroll.
  constructor(root, events, matches) {
    Object.assign(this, { root, events, matches, found: null, colours: new Map(), kept: null });
  }

  show(found) {
    Object.assign(this, { found, colours: coloursOf(found), kept: null });
  }

  // The match that stays lit while nothing else is; null: none.
  keep(number) {
    this.kept = number;
    this.darken();
    this.showFirst(number);
  }

  // Moves no table: one may be about to point at another row of it.
  darken() {
    this.clear();
    if (this.kept !== null) this.lightMatch(this.kept);
  }

  clear() {
    this.root.querySelectorAll(".lit").forEach((element) => element.classList.remove("lit"));
    this.root.querySelectorAll("td.marks").forEach((cell) => cell.replaceChildren());
  }

  all(what, number) {
    return this.root.querySelectorAll(`[data-${what}="${number}"]`);
  }

  match(number) {
    this.clear();
    this.lightMatch(number);
    this.showFirst(number);
  }

  rowsOf(number) {
    const match = this.found && this.found.matches[number];
    return match ? match.marks.filter((mark) => mark.row !== null) : [];
  }

  lightMatch(number) {
    this.all("match", number).forEach((element) => element.classList.add("lit"));
    for (const mark of this.rowsOf(number)) {
      for (const element of this.all("row", mark.row)) {
        element.classList.add("lit");
        if (element.localName === "tr") element.querySelector("td.marks").append(...mark.variables.map((variable) => this.badge(variable)));
      }
    }
  }

  // Moves the table of events to the first one of a match.
  showFirst(number) {
    const shown = this.rowsOf(number).map((mark) => this.events.querySelector(`tr[data-row="${mark.row}"]`));
    const first = shown.find((tr) => tr !== null);
    if (first) intoView(this.events, first);
  }

  badge(variable) {
    const badge = h("span", { class: "badge" }, variable);
    badge.style.borderColor = this.colours.get(variable);
    return badge;
  }

  event(row) {
    this.clear();
    this.all("row", row).forEach((element) => element.classList.add("lit"));
    if (!this.found) return;
    let first = null;
    this.found.matches.forEach((match, number) => {
      if (!match.marks.some((mark) => mark.row === row)) return;
      for (const element of this.all("match", number)) {
        element.classList.add("lit");
        if (element.localName === "tr") first = first || element;
      }
    });
    if (first) intoView(this.matches, first);
  }
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
function ticks(clock, first, last, most) {
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

// The first matches over time, in the given width; what is pointed at is lit by `lights`.
export function timeline(table, found, width, lights) {
  const clock = table.clock;
  const at = (row) => (clock ? clock.steps[row] : row);
  const drawn = found.matches.slice(0, DRAWN_MATCHES).map((match, number) => ({ match, number })).filter(({ match }) => match.first !== null);
  if (!drawn.length) return [];
  const rows = drawn.flatMap(({ match }) => match.marks.map((mark) => mark.row)).filter((row) => row !== null);
  const first = Math.min(...rows.map(at));
  const last = Math.max(...rows.map(at));
  const names = drawn.map(({ match, number }) => shorten(match.name || `match ${number + 1}`, 20));
  const left = Math.min(Math.max(...names.map((name) => name.length)) * 6.6 + 12, width / 3);
  const right = width - 14;
  const x = (time) => (last > first ? left + 8 + ((right - left - 8) * (time - first)) / (last - first) : (left + right) / 2);
  const top = 30;
  const lane = 22;
  const height = top + lane * drawn.length + 6;
  const parts = [];
  for (const tick of ticks(clock, first, last, Math.max(2, Math.floor((right - left) / 90)))) {
    const place = x(tick.at);
    parts.push(s("path", { class: "grid", d: `M${place} ${top - 8}V${height - 4}` }));
    const edge = place > right - 24 ? "end" : place < left + 24 ? "start" : "middle";
    parts.push(s("text", { x: place, y: 12, "text-anchor": edge }, tick.text));
  }
  const inside = table.rows.length ? [...Array(Math.min(table.count, 5000)).keys()].filter((row) => at(row) >= first && at(row) <= last) : [];
  parts.push(s("path", { class: "tick", d: inside.map((row) => `M${x(at(row)).toFixed(1)} ${top - 12}v5`).join("") }));
  const look = { at, x, left, width, lane };
  drawn.forEach(({ match, number }, place) => parts.push(lineOf(table, match, number, names[place], top + lane * (place + 0.5), look, lights)));
  const said = `Time line of ${drawn.length} matches; the table below says the same`;
  const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": said }, ...parts);
  const legend = [...lights.colours].map(([name, colour]) => {
    const dot = h("i");
    dot.style.background = colour;
    return h("span", {}, dot, name);
  });
  const undrawn = found.matches.length - drawn.length;
  if (undrawn > 0) legend.push(h("span", {}, `the first ${drawn.length} of ${found.matches.length} listed matches are drawn`));
  return legend.length ? [h("div", { class: "legend" }, ...legend), picture] : [picture];
}

function lineOf(table, match, number, name, y, { at, x, left, width, lane }, lights) {
  const group = s("g", { class: "match", "data-match": number });
  group.append(
    s("rect", { class: "back", x: 0, y: y - lane / 2, width, height: lane, rx: 4 }),
    s("text", { class: "name", x: left - 6, y: y + 4, "text-anchor": "end" }, name),
    s("path", { class: "lane", d: `M${x(at(match.first))} ${y}H${x(at(match.last))}` }),
  );
  for (const mark of match.marks) {
    if (mark.row === null) continue;
    const look = { class: "event", "data-row": mark.row, fill: mark.variables.length ? lights.colours.get(mark.variables[0]) : "#6f7680" };
    const shape = mark.made
      ? s("rect", { x: x(at(mark.row)) - 5, y: y - 5, width: 10, height: 10, transform: `rotate(45 ${x(at(mark.row))} ${y})`, ...look })
      : s("circle", { cx: x(at(mark.row)), cy: y, r: 5, ...look });
    const cells = table.rows[mark.row] || [];
    const values = table.columns.map((column, place) => `${column.name}=${cells[place] ?? ""}`).join(", ");
    shape.append(s("title", {}, `${mark.variables.join(", ") || "event"}: row ${mark.row}${mark.made ? " (made by a definition)" : ""}\n${values}`));
    group.append(shape);
  }
  group.addEventListener("mouseenter", () => lights.match(number));
  group.addEventListener("mouseleave", () => lights.darken());
  return group;
}

// ------------------------------------------------------------------------------------------------- automaton and step

// The drawing of an automaton as an element; null: it is none.
export function drawingOf(svg) {
  // The policy of the page allows no style attributes; views.css says what they would.
  const parsed = new DOMParser().parseFromString(svg.replace(/\sstyle="[^"]*"/g, ""), "image/svg+xml");
  if (parsed.documentElement.localName !== "svg") return null;
  const picture = document.importNode(parsed.documentElement, true);
  // Wide drawings shrink a little, so that their words stay readable; past that one scrolls.
  picture.style.minWidth = `${Number(picture.getAttribute("width")) * 0.75}px`;
  return picture;
}

// What is drawn for each state: a circle, a counted item or a group; one of these may be several states. Of several drawings the last is that of the
// pattern.
function stateElements(drawing, machine) {
  const drawn = new Map();
  for (const element of drawing.querySelectorAll("[data-states]")) {
    for (const number of element.dataset.states.split(" ").map(Number)) {
      if (number < machine.states) drawn.set(number, element);
    }
  }
  return drawn;
}

// The step of which the first `place` events are read; null: none is.
export function stepAt(machine, place) {
  return place ? machine.steps[place - 1] : null;
}

// Marks the live states in a drawing, and the event that was read in the table of events that scrolls in `events`.
export function showStep(machine, place, drawing, events) {
  const step = stepAt(machine, place);
  const live = new Set(step ? step.states : []);
  const drawn = stateElements(drawing, machine);
  drawn.forEach((element) => element.classList.remove("live", "ends"));
  for (const number of [machine.initial, ...live]) {
    if (drawn.has(number)) drawn.get(number).classList.add(machine.finals.includes(number) && live.has(number) ? "ends" : "live");
  }
  tellRounds(machine, drawn, live);
  for (const tr of events.querySelectorAll("tr.current")) {
    tr.classList.remove("current");
    tr.removeAttribute("aria-current");
  }
  const tr = step && step.row !== null ? events.querySelector(`tr[data-row="${step.row}"]`) : null;
  if (tr) {
    tr.classList.add("current");
    tr.setAttribute("aria-current", "step");
    intoView(events, tr);
  }
}

// Adds to what a pointer on a state in a group shows the rounds that are live.
function tellRounds(machine, drawn, live) {
  for (const element of new Set(drawn.values())) {
    const tip = element.querySelector(":scope > title");
    tip.dataset.plain ??= tip.textContent;
    const rounds = [...live].filter((number) => drawn.get(number) === element && machine.rounds[number]).map((number) => machine.rounds[number]);
    tip.textContent = rounds.length ? `${tip.dataset.plain}; live: ${[...new Set(rounds)].join(", ")}` : tip.dataset.plain;
  }
}

// What there is to say after the first `place` events, as nodes and texts.
export function stepWords(machine, place, table) {
  const step = stepAt(machine, place);
  if (machine.refused) return [machine.refused];
  if (!step) return ["Before the first event: a match can begin. Move the slider, or press an arrow key on it."];
  const inner = step.states.filter((number) => !machine.finals.includes(number));
  const of = machine.partitioned ? " of its partition" : "";
  const named = inner.map((number) => (machine.rounds[number] ? `${number} (${machine.rounds[number]})` : String(number)));
  const where = inner.length ? `partial matches${of} wait in ${inner.length > 1 ? "states" : "state"} ${named.join(", ")}` : `no partial match${of} waits`;
  const event = step.made ? `an event ${step.made} that a definition makes` : `row ${step.row}${eventText(table, step.row)}`;
  const said = `After ${event}: ${where}${step.ends ? "; " : "."}`;
  return step.ends ? [said, h("strong", {}, step.sure ? "a match ends here." : "a match may end here.")] : [said];
}

function eventText(table, row) {
  if (!table || !table.rows[row]) return "";
  const cells = table.columns.map((column, place) => [column.name, table.rows[row][place]]);
  return ` (${shorten(cells.map(([name, value]) => (name === table.type ? value : `${name}=${value}`)).join(" "), 70)})`;
}
