// The widget of a notebook. It stands behind views.js in one module, and draws by it; what is shown comes from `cepheid.notebook.exploring.shown`.

// How notebooks mark a dark page, on its root or its body; null: they do not say.
function markedDark(element) {
  const { jpThemeLight, vscodeThemeKind, theme } = element.dataset;
  if (jpThemeLight) return jpThemeLight === "false"; // Jupyter
  if (vscodeThemeKind) return ["vscode-dark", "vscode-high-contrast"].includes(vscodeThemeKind); // VS Code
  if (element.classList.contains("dark") || theme === "dark" || element.getAttribute("theme") === "dark") return true; // marimo; Colab
  if (element.classList.contains("light") || theme === "light") return false;
  return null;
}

// Sets the theme of an element to that of its notebook, and follows it.
function followTheme(element, signal) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const set = () => {
    const dark = markedDark(document.body) ?? markedDark(document.documentElement) ?? system.matches;
    element.dataset.theme = dark ? "dark" : "light";
  };
  const observer = new MutationObserver(set);
  for (const each of [document.body, document.documentElement]) observer.observe(each, { attributes: true });
  system.addEventListener("change", set, { signal });
  signal.addEventListener("abort", () => observer.disconnect());
  set();
}

const OURS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown", "Enter", " ", "Escape"]);

function heading(text, count) {
  return h("div", { class: "heading" }, text, h("span", { class: "count" }, ` ${count}`));
}

function render({ model, el }) {
  const { table, found, machine, notes } = model.get("_shown");
  const ending = new AbortController();
  const count = machine.steps.length;
  let order = null;

  // ------------------------------------------------------------------------------------------------------- elements
  const line = h("div", { class: "timeline" });
  const back = h("button", { type: "button", "aria-label": "One event back", onclick: () => step(-1) }, "\u25C0");
  const on = h("button", { type: "button", "aria-label": "One event on", onclick: () => step(1) }, "\u25B6");
  const slider = h("input", { type: "range", min: 0, max: count, value: 0, "aria-label": "Events read", oninput: () => put("position", Number(slider.value)) });
  const number = h("span", { class: "number" });
  const words = h("p", { class: "step-text", "aria-live": "polite" });
  const drawing = h("div", { class: "drawing" });
  const events = h("div", { class: "scroll" });
  const matches = h("div", { class: "scroll" });
  const root = h(
    "div",
    // JupyterLab leaves keys alone below an element with this attribute; other notebooks where they go no further.
    { class: "cepheid cepheid-widget", role: "group", "aria-label": "Matches of a query", "data-lm-suppress-shortcuts": "true" },
    notes.length ? h("div", { class: "notes" }, ...notes.map((note) => h("div", { class: "problem" }, note))) : null,
    line,
    h("div", { class: "stepper", role: "group", "aria-label": "Step through the events" }, back, slider, on, number),
    words,
    drawing,
    machine.note ? h("p", { class: "step-note" }, machine.note) : null,
    h(
      "div",
      { class: "tables" },
      h("div", { role: "group", "aria-label": "Events" }, heading("Events", table.count.toLocaleString("en")), events),
      h("div", { role: "group", "aria-label": "Matches" }, heading("Matches", found.count), matches),
    ),
  );
  const lights = new Lights(root, events, matches);
  lights.show(found);

  // ----------------------------------------------------------------------------------------------------- what changes
  function put(name, value) {
    model.set(name, value);
    model.save_changes();
  }

  function step(change) {
    put("position", Math.min(Math.max(model.get("position") + change, 0), count));
  }

  function showPosition() {
    const position = model.get("position");
    slider.value = String(position);
    slider.disabled = back.disabled = on.disabled = !count;
    number.textContent = `${position} / ${count}`;
    const said = stepWords(machine, position, table);
    slider.setAttribute("aria-valuetext", said.map((each) => each.textContent ?? each).join(""));
    words.replaceChildren(...said);
    showStep(machine, position, drawing, events);
  }

  function showChosen() {
    const chosen = model.get("match");
    for (const tr of matches.querySelectorAll("tr.chosen")) {
      tr.classList.remove("chosen");
      tr.removeAttribute("aria-current");
    }
    const tr = chosen === null ? null : matches.querySelector(`tr[data-match="${chosen}"]`);
    if (tr) {
      tr.classList.add("chosen");
      tr.setAttribute("aria-current", "true");
      intoView(matches, tr);
    }
    lights.keep(chosen);
  }

  function choose(match) {
    put("match", model.get("match") === match ? null : match);
  }

  function stepTo(row) {
    const place = machine.steps.findIndex((each) => each.row === row);
    if (place >= 0) put("position", place + 1);
  }

  // -------------------------------------------------------------------------------------------------------- drawing
  // A click, Enter or Space on a row takes it.
  function takes(body, name, take) {
    const of = (event) => event.target.closest(`[data-${name}]`);
    body.addEventListener("click", (event) => of(event) && take(Number(of(event).dataset[name])));
    body.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      take(Number(of(event).dataset[name]));
    });
  }

  function showMatches() {
    if (!found.matches.length) {
      matches.replaceChildren(h("p", { class: "empty" }, table.count ? "No match in these events." : "There are no events."));
      return;
    }
    const sort = (next) => {
      order = next;
      showMatches();
      showChosen();
      matches.querySelectorAll("th button")[next.column].focus();
    };
    matches.replaceChildren(matchesTable(found, order, sort));
    const body = matches.querySelector("tbody");
    rowKeys(body, (tr) => lights.match(Number(tr.dataset.match)), () => lights.darken());
    takes(body, "match", choose);
  }

  function showEvents() {
    if (!table.rows.length) {
      events.replaceChildren(h("p", { class: "empty" }, "There are no events."));
      return;
    }
    events.replaceChildren(eventsTable(table, null));
    const body = events.querySelector("tbody");
    rowKeys(body, (tr) => lights.event(Number(tr.dataset.row)), () => lights.darken());
    takes(body, "row", stepTo);
  }

  // A notebook may put the element on its page after this: nothing has a place before.
  let width = 0;
  function resize() {
    const next = Math.max(root.clientWidth - 26, 240);
    if (!root.clientWidth || next === width) return;
    const first = !width;
    width = next;
    line.replaceChildren(...timeline(table, found, width, lights));
    if (first) showPosition();
    if (first) showChosen();
    else lights.darken();
  }

  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") put("match", null);
    if (OURS.has(event.key)) event.stopPropagation();
  });
  line.addEventListener("click", (event) => {
    const match = event.target.closest("[data-match]");
    if (match) choose(Number(match.dataset.match));
  });
  const picture = machine.svg ? drawingOf(machine.svg) : null;
  if (picture) drawing.append(picture);
  showEvents();
  showMatches();
  el.replaceChildren(root);
  followTheme(root, ending.signal);
  const soon = after(50, resize);
  const resized = new ResizeObserver(() => (width ? soon() : resize()));
  resized.observe(root);
  resize();
  model.on("change:position", showPosition);
  model.on("change:match", showChosen);
  return () => {
    ending.abort();
    resized.disconnect();
    model.off("change:position", showPosition);
    model.off("change:match", showChosen);
  };
}

export default { render };
