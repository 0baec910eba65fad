"use strict";
// How elements are made, how numbers are written, and how a value of each kind is set.
const controls = (() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("model").textContent);

  // Sentences by their English text; {names} in them are filled in.
  const t = (text, parts = {}) => (data.words[text] || text).replace(/\{(\w+)\}/g, (_, key) => parts[key] ?? "");

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
  // What is so already is left alone: the browser would lay it out again.
  const put = (made, key, value) => { if (made[key] !== value) made[key] = value; };
  const children = (made, list) => { if (made.childNodes.length !== list.length || list.some((own, k) => made.childNodes[k] !== own)) made.replaceChildren(...list); };
  const option = (value, text) => element("option", { value: String(value), textContent: text });
  const button = (text, onclick, more) => element("button", { type: "button", textContent: text, onclick, ...more });

  const mark = (() => { try { return (1.5).toLocaleString(data.lang)[1]; } catch { return "."; } })();
  const fixed = (x, digits) => x.toFixed(digits).replace(".", mark);
  const signed = (x, digits = 2) => (Number.isFinite(x) ? (x <= -0.5 * 10 ** -digits ? "−" : "+") + fixed(Math.abs(x), digits) : x > 0 ? "+∞" : "−∞");
  const percent = (p, digits = 1) => (p > 0 && p < 0.0005 ? `<\u00a0${fixed(0.1, 1)}` : p < 1 && p > 0.9995 ? `>\u00a0${fixed(99.9, 1)}` : fixed(100 * p, digits)) + "\u00a0%";
  // Two ends that read alike are one.
  const ends = (low, high) => (percent(low) === percent(high) ? percent(low) : t("{low} to {high}", { low: percent(low), high: percent(high) }));
  const short = (x) => String(Number(x.toPrecision(5))).replace(".", mark);
  const stretched = { preserveAspectRatio: "none", "aria-hidden": "true" };

  // Bars side by side over a width of 100, the highest as high as told.
  function bars(shares, height) {
    const most = Math.max(...shares, 1e-300), wide = 100 / shares.length;
    return shares.map((share, k) => {
      const tall = (height * share) / most;
      return drawn("rect", { x: (k + 0.06) * wide, width: 0.88 * wide, y: height - tall, height: tall });
    });
  }

  // Numbers as text and back: as they are, or days since 1970 as a date.
  const DAY = 86400000;
  function texts(own) {
    const withUnit = (text) => (own.unit ? `${text} ${own.unit}` : text);
    if (!own.date) return { type: "number", plain: short, text: (x) => withUnit(short(x)), full: String, read: Number };
    const hasClock = own.date.hour !== undefined;
    const full = (x) => new Date(Math.round(x * DAY)).toISOString().slice(0, hasClock ? 16 : 10);
    const read = (text) => scoring.dateOf(text)?.day ?? NaN;
    const text = (x) => full(x).replace("T", " ");
    return { type: hasClock ? "datetime-local" : "date", plain: text, text, full, read };
  }
  // Where a number is on its axis, from 0 to 1, and back: knots are equally far from each other.
  // Without them the axis is even.
  function axisOf({ low, high, knots = [low, high] }) {
    const n = knots.length - 1;
    const place = (x) => {
      const k = Math.min(n - 1, Math.max(0, scoring.intervalOf(knots, x) - 1));
      return Math.min(1, Math.max(0, (k + (x - knots[k]) / (knots[k + 1] - knots[k])) / n));
    };
    const at = (share) => {
      const k = Math.min(n - 1, Math.floor(share * n));
      return knots[k] + (share * n - k) * (knots[k + 1] - knots[k]);
    };
    return { place, at };
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
  const isTruth = ({ values }) => values.every((value) => typeof value === "boolean");
  const shownOf = (own) => own.shown || (isTruth(own) ? own.values.map((value) => (value ? t("yes") : t("no"))) : own.labels);
  // A column of zeros and ones is a question: it has two values to choose from, not a curve.
  for (const own of data.attributes.filter(({ flag }) => flag)) {
    const [no, yes] = [own.histogram[0], own.histogram[own.histogram.length - 1]];
    Object.assign(own, { values: [0, 1], shown: own.shown || [t("no"), t("yes")], shares: [no, yes].map((share) => share / (no + yes)) });
  }
  const isList = (own) => own.kind === "category" || Boolean(own.flag);
  // What a value is called.
  function textOf(own, value) {
    if (value === null) return t("unknown");
    return isList(own) ? shownOf(own)[own.values.indexOf(value)] ?? String(value) : texts(own).text(value);
  }

  // A list of values beside bars of their shares, the chosen one marked.
  function category(own, j, values, set) {
    const select = element("select", { id: `value-${j}`, "aria-labelledby": `name-${j}` });
    select.append(option("", t("unknown")));
    shownOf(own).forEach((label, k) => select.append(option(k, label)));
    select.addEventListener("change", () => set(j, select.value === "" ? null : own.values[Number(select.value)]));
    const shares = own.shares && own.shares.length <= 60 ? bars(own.shares, 12) : [];
    const strip = drawn("svg", { class: "shares", viewBox: "0 0 100 12", ...stretched }, ...shares);
    const show = () => {
      const at = values[j] === null ? -1 : own.values.indexOf(values[j]);
      select.value = at < 0 ? "" : String(at);
      shares.forEach((bar, k) => bar.classList.toggle("here", k === at));
      strip.setAttribute("data-note", at < 0 || !own.shares ? "" : t("{share} of the training rows", { share: percent(own.shares[at]) }));
      select.title = strip.dataset.note;
    };
    // The loudest of the shares' bars say for or against, as curves do.
    const paint = ({ all }) => shares.forEach((bar, k) => bar.setAttribute("data-side", all[k] < 0 ? "against" : "for"));
    return { controls: [select, strip], show, paint };
  }

  // On an axis by rank bars are about equal, and shown if one value has many of the rows.
  const barsOf = (own) => {
    const rows = (own.knots ? own.bars : own.histogram) || [];
    return own.knots && Math.max(0, ...rows) * rows.length < 5 ? [] : rows;
  };

  // The curve of a number, filled for and against, with the slider over all of it.
  function track(own, j, note) {
    const { place } = axisOf(own), { plain } = texts(own);
    const slider = element("input", { type: "range", id: `slider-${j}`, min: "0", max: "1",
      step: "any", "aria-label": t("{name}, slider", { name: own.title }) });
    const curve = drawn("svg", { class: "curve", viewBox: "0 0 100 40", ...stretched });
    const marks = element("span", { className: "flips", "aria-hidden": "true" });
    const across = (x) => 100 * place(x);
    const paint = (said) => curve.replaceChildren(...bars(barsOf(own), 40), ...curveOf(said, across, 40));
    const flip = (places, classes) => marks.replaceChildren(...places.map(({ x, from, to }) => {
      const made = element("i", { title: t("from {x}: {to}, below: {from}", { x: plain(x), to: classes[to], from: classes[from] }) });
      made.style.insetInlineStart = `${across(x)}%`;
      return made;
    }));
    const ends = element("div", { className: "ends" }, element("span", { textContent: plain(own.low) }), note,
      element("span", { textContent: plain(own.high) }));
    return { slider, paint, flip, whole: element("div", { className: "slide" }, curve, marks, slider, ends) };
  }

  // A line, and the areas between it and zero, on a height; axes begin and end where it does.
  function curveOf({ points, amounts, alone = [] }, across, height) {
    const [low, high] = endsOf([...amounts, ...alone]), up = (y) => height - 2 - ((height - 4) * (y - low)) / (high - low);
    const places = points.map((x, k) => [across(x).toFixed(2), amounts[k]]);
    const path = (of) => places.map(([x, y], k) => `${x},${up(of(y, k)).toFixed(2)}`).join(" ");
    const area = (name, of) => drawn("polygon", { class: name, points: `${path(of)} ${places[places.length - 1][0]},${up(0)} ${places[0][0]},${up(0)}` });
    const zero = up(0).toFixed(2), first = places[0][0], last = places[places.length - 1][0];
    return [area("for", (y) => Math.max(y, 0)), area("against", (y) => Math.min(y, 0)),
      drawn("line", { class: "level", x1: first, x2: last, y1: zero, y2: zero }), ...(alone.length ? [drawn("polyline", { class: "alone", points: path((_, k) => alone[k]) })] : []), drawn("polyline", { points: path((y) => y) })];
  }
  const endsOf = (amounts) => {
    const finite = amounts.filter(Number.isFinite), low = Math.min(0, ...finite);
    return [low, Math.max(1e-9 + low, 0, ...finite)];
  };

  function number(own, j, values, set, attributes) {
    if (own.flag) return category(own, j, values, set);
    const { place, at } = axisOf(own), span = own.high - own.low, middle = own.quartiles && own.quartiles.length ? own.quartiles[1] : own.low + span / 2;
    const rounded = (x, digits) => (own.whole ? Math.round(x) : Number(x.toPrecision(digits)));
    const { type, text, full, read } = texts(own);
    const box = element("input", { type, id: `value-${j}`, step: "any", placeholder: "?", "aria-label": t("{name}, number", { name: own.title }) });
    const note = element("span", { className: "interval" });
    const put = (x) => {
      if (own.date) setParts(own, x, values, attributes);
      set(j, Number.isFinite(x) ? x : null);
    };
    box.addEventListener("input", () => put(box.value === "" ? NaN : read(box.value)));
    const isFlat = own.edges && own.edges.length === 0;
    const { slider, paint, flip, whole } = track(own, j, note);
    const slide = () => put(rounded(at(Number(slider.value)), 4));
    slider.addEventListener("input", slide);
    // A click on the place where the handle of an unknown value is sets it, too.
    slider.addEventListener("click", () => { if (values[j] === null) slide(); });
    // An "any" step leaves the size of a step to the browser; a hundredth of the range is useful.
    slider.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
      const ends = { Home: own.low, End: own.high };
      if (!(event.key in steps) && !(event.key in ends)) return;
      event.preventDefault();
      const from = values[j] === null ? middle : values[j], way = Math.sign(steps[event.key]), next = rounded(at(Math.min(1, Math.max(0, place(from) + steps[event.key] / 100))), 6);
      put(event.key in ends ? ends[event.key] : own.whole && way * (next - from) < 1 ? from + way : next);
    });
    const show = () => {
      const x = values[j];
      slider.value = String(place(x === null ? middle : x));
      slider.setAttribute("aria-valuetext", x === null ? t("unknown") : text(x));
      if (document.activeElement !== box || (x === null) !== (box.value === "")) box.value = x === null ? "" : full(x);
      const isFar = x !== null && own.histogram && (x < own.low || x > own.high);
      note.classList.toggle("odd", Boolean(isFar));
      note.textContent = note.title = isFar ? t("outside the training range")
        : x !== null && own.labels ? own.labels[scoring.intervalOf(own.edges, x)] : "";
    };
    const unit = element("span", { className: "unit", textContent: own.unit || "" });
    const shown = [isFlat ? note : whole, element("span", { className: "box" }, box, unit)];
    return { controls: shown, show, paint: isFlat ? undefined : paint, flip: isFlat ? undefined : flip };
  }

  // An interaction has no control: a map shows what its two columns say together.
  function interaction(own, j, values, set, attributes) {
    const [a, b] = own.sides.map((side) => side.n_groups - 1);
    const code = (row, column) => row * (b + 1) + column;
    const empty = new Set(own.empty || []), cells = [];
    const map = drawn("svg", { class: "map", viewBox: `0 0 ${b} ${a}`, preserveAspectRatio: "none", role: "img",
      "aria-label": t("map of {name}", { name: own.title }) });
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
      text.textContent = text.title = own.labels[now];
    };
    const paint = ({ table, limit }) => cells.forEach(({ at, cell, title }) => {
      cell.setAttribute("class", table[at] < 0 ? "negative" : "");
      cell.setAttribute("fill-opacity", Math.min(1, 0.04 + Math.abs(table[at]) / limit));
      title.textContent = `${own.labels[at]}: ${signed(table[at])}${empty.has(at) ? `, ${t("no training rows")}` : ""}`;
    });
    return { controls: [map, element("span", { className: "legend" }, axes, text)], show, paint };
  }

  return { axisOf, bars, barsOf, button, byId, children, curveOf, data, drawn, element, ends, endsOf, fixed, isList, make: { category, number, interaction }, option, percent, put, setParts,
    short, shownOf, signed, t, textOf, texts };
})();
