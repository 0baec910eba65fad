"use strict";
// How elements are made, and how a value of each kind of attribute is set.
const controls = (() => {
  const byId = (id) => document.getElementById(id);

  // Text goes in as text, never as markup: names may hold anything.
  function element(tag, properties, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(properties || {})) {
      if (key in made) made[key] = value; else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }
  // Drawings are made of elements like one that the page has, with attributes alone.
  function drawn(tag, attributes, ...children) {
    const made = document.createElementNS(byId("drawing").namespaceURI, tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    made.append(...children);
    return made;
  }
  const option = (value, text) => element("option", { value: String(value), textContent: text });
  const signed = (x) => (Number.isFinite(x) ? (x <= -0.005 ? "−" : "+") + Math.abs(x).toFixed(2) : x > 0 ? "+∞" : "−∞");
  const percent = (p) => (p > 0 && p < 0.0005 ? "< 0.1\u00a0%" : p < 1 && p > 0.9995 ? "> 99.9\u00a0%" : (100 * p).toFixed(1) + "\u00a0%");
  const short = (x) => String(Number(x.toPrecision(5)));
  const stretched = { preserveAspectRatio: "none", "aria-hidden": "true" };

  // Bars side by side over a width of 100, the highest as high as told.
  function bars(shares, height) {
    const most = Math.max(...shares, 1e-300), wide = 100 / shares.length;
    return shares.map((share, k) => {
      const tall = (height * share) / most;
      return drawn("rect", { x: (k + 0.06) * wide, width: 0.88 * wide, y: height - tall, height: tall });
    });
  }

  // A list of values, above bars of their shares.
  function category(own, j, values, update) {
    const select = element("select", { id: `value-${j}`, "aria-labelledby": `name-${j}` });
    select.append(option("", "unknown"));
    own.labels.forEach((label, k) => select.append(option(k, label)));
    select.addEventListener("change", () => {
      values[j] = select.value === "" ? null : own.values[Number(select.value)];
      update();
    });
    const shares = own.shares && own.shares.length <= 60 ? bars(own.shares, 12) : [];
    const strip = drawn("svg", { class: "shares", viewBox: "0 0 100 12", ...stretched }, ...shares);
    const note = element("span", { className: "interval" });
    const show = () => {
      const at = values[j] === null ? -1 : own.values.indexOf(values[j]);
      select.value = at < 0 ? "" : String(at);
      shares.forEach((bar, k) => bar.classList.toggle("here", k === at));
      note.textContent = at < 0 || !own.shares ? "" : `${percent(own.shares[at])} of the training rows`;
    };
    return { controls: [select, ...(shares.length ? [strip] : []), note], show, text: (x) => own.labels[own.values.indexOf(x)] };
  }

  // Numbers as text and back: as they are, or days since 1970 as a date.
  const DAY = 86400000;
  function texts(own) {
    if (!own.date) return { type: "number", text: short, full: String, read: Number };
    const hasClock = own.date.hour !== undefined;
    const full = (x) => new Date(Math.round(x * DAY)).toISOString().slice(0, hasClock ? 16 : 10);
    const read = (text) => Date.parse(hasClock ? `${text}Z` : text) / DAY;
    return { type: hasClock ? "datetime-local" : "date", text: (x) => full(x).replace("T", " "), full, read };
  }
  // What the parts of a date are, as columns of their own; a value never seen is unknown.
  function setParts(own, x, values, attributes) {
    const at = new Date(Math.round(x * DAY));
    const parts = { year: at.getUTCFullYear(), month: at.getUTCMonth() + 1, weekday: ((at.getUTCDay() + 6) % 7) + 1, hour: at.getUTCHours() };
    for (const [part, k] of Object.entries(own.date)) {
      const isKnown = Number.isFinite(x) && (attributes[k].kind === "number" || attributes[k].values.includes(parts[part]));
      values[k] = isKnown ? parts[part] : null;
    }
  }

  // The slider of a number, below the training rows and what the model says along them.
  function track(own, j, note) {
    const span = own.high - own.low;
    const slider = element("input", { type: "range", id: `slider-${j}`, min: String(own.low), max: String(own.high),
      step: "any", "aria-label": `${own.title}, slider` });
    const curve = drawn("svg", { class: "curve", viewBox: "0 0 100 40", ...stretched });
    const here = drawn("line", { class: "here", y1: 0, y2: 40 });
    const across = (x) => Math.max(0, Math.min(100, (100 * (x - own.low)) / span));
    const paint = ({ points, amounts }) => {
      const low = Math.min(0, ...amounts), high = Math.max(1e-9 + low, ...amounts);
      const up = (y) => 38 - (36 * (y - low)) / (high - low);
      const path = points.map((x, k) => `${across(x).toFixed(2)},${up(amounts[k]).toFixed(2)}`).join(" ");
      curve.replaceChildren(...bars(own.histogram || [], 40), drawn("line", { class: "level", x1: 0, x2: 100, y1: up(0), y2: up(0) }),
        drawn("polyline", { points: path }), here);
    };
    const mark = (x) => {
      here.setAttribute("visibility", x === null ? "hidden" : "visible");
      for (const end of ["x1", "x2"]) here.setAttribute(end, across(x === null ? own.low : x));
    };
    const { text } = texts(own);
    const ends = element("div", { className: "ends" }, element("span", { textContent: text(own.low) }), note,
      element("span", { textContent: text(own.high) }));
    return { slider, mark, paint, whole: element("div", { className: "slide" }, curve, slider, ends) };
  }

  function number(own, j, values, update, attributes) {
    const span = own.high - own.low, middle = own.quartiles && own.quartiles.length ? own.quartiles[1] : own.low + span / 2;
    const rounded = (x, digits) => (own.whole ? Math.round(x) : Number(x.toPrecision(digits)));
    const unknown = element("input", { type: "checkbox", id: `unknown-${j}` });
    const { type, text, full, read } = texts(own);
    const box = element("input", { type, id: `value-${j}`, step: "any", placeholder: "unknown", "aria-label": `${own.title}, number` });
    const note = element("span", { className: "interval" });
    const set = (x) => {
      values[j] = Number.isFinite(x) ? x : null;
      if (own.date) setParts(own, x, values, attributes);
      update();
    };
    box.addEventListener("input", () => set(box.value === "" ? NaN : read(box.value)));
    unknown.addEventListener("change", () => set(unknown.checked ? NaN : rounded(middle, 4)));
    const isFlat = own.edges && own.edges.length === 0;
    const { slider, mark, paint, whole } = track(own, j, note);
    slider.addEventListener("input", () => set(rounded(Number(slider.value), 6)));
    // An "any" step leaves the size of a step to the browser; a hundredth of the range is useful.
    slider.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
      const ends = { Home: own.low, End: own.high };
      if (!(event.key in steps) && !(event.key in ends)) return;
      event.preventDefault();
      const from = values[j] === null ? middle : values[j], step = own.whole ? Math.max(1, Math.round(span / 100)) : span / 100;
      set(event.key in ends ? ends[event.key] : rounded(from + steps[event.key] * step, 6));
    });
    const show = () => {
      const x = values[j];
      unknown.checked = x === null;
      slider.value = String(x === null ? middle : x);
      slider.setAttribute("aria-valuetext", x === null ? "unknown" : text(x));
      if (document.activeElement !== box || (x === null) !== (box.value === "")) box.value = x === null ? "" : full(x);
      mark(x);
      const isFar = x !== null && own.histogram && (x < own.low || x > own.high);
      note.classList.toggle("odd", Boolean(isFar));
      note.textContent = note.title = isFar ? "beyond all training rows"
        : x !== null && own.labels ? own.labels[scoring.intervalOf(own.edges, x)] : "";
    };
    const label = element("label", {}, unknown, " unknown");
    const shown = isFlat ? [box, label, note] : [whole, box, label];
    return { controls: shown, show, paint: isFlat ? undefined : paint, text };
  }

  // A pair has no control: a map shows what its two columns say together.
  function pair(own, j, values, attributes) {
    const [a, b] = own.sides.map((side) => side.n_groups - 1);
    const code = (row, column) => row * (b + 1) + column;
    const empty = new Set(own.empty || []), cells = [];
    const map = drawn("svg", { class: "map", viewBox: `0 0 ${b} ${a}`, preserveAspectRatio: "none", role: "img",
      "aria-label": `map of ${own.title}` });
    map.style.height = `${Math.min(8, Math.max(2.5, 0.8 * a))}rem`;
    for (let row = 1; row <= a; row++) {
      for (let column = 1; column <= b; column++) {
        const title = drawn("title", {}), at = code(row, column);
        const cell = drawn("rect", { x: column - 1, y: a - row, width: 1, height: 1, "data-code": at }, title);
        cells.push({ at, cell, title });
        map.append(cell);
        if (empty.has(at)) map.append(drawn("path", { class: "empty", d: `M${column - 1} ${a - row + 1}l1 -1` }));
      }
    }
    const here = drawn("rect", { class: "here", width: 1, height: 1 });
    map.append(here);
    const text = element("span", { className: "interval", id: `value-${j}` });
    const names = own.sides.map((side) => attributes[side.column].title);
    const axes = element("span", { className: "axes", textContent: `↑ ${names[0]}   → ${names[1]}` });
    const groups = () => own.sides.map((side) => scoring.groupOf(side, values[side.column]));
    const show = () => {
      const [row, column] = groups(), now = code(row, column);
      here.setAttribute("visibility", row && column ? "visible" : "hidden");
      here.setAttribute("x", Math.max(0, column - 1));
      here.setAttribute("y", Math.max(0, a - row));
      map.dataset.code = String(now);
      text.textContent = own.labels[now];
    };
    const paint = ({ table, limit }) => cells.forEach(({ at, cell, title }) => {
      cell.setAttribute("class", table[at] < 0 ? "negative" : "");
      cell.setAttribute("fill-opacity", Math.min(1, 0.04 + Math.abs(table[at]) / limit));
      title.textContent = `${own.labels[at]}: ${signed(table[at])}${empty.has(at) ? ", no training rows" : ""}`;
    });
    return { controls: [map, axes, text], show, paint, text: () => own.labels[code(...groups())] };
  }

  return { byId, category, element, number, option, pair, percent, short, signed };
})();
