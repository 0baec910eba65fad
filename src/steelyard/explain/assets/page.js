"use strict";
(() => {
  const data = JSON.parse(document.getElementById("model").textContent);
  const { attributes, classes, model, order } = data;
  const values = attributes.map(() => null);
  const parts = scoring.leaves(model).map((leaf, k) => ({ leaf, name: data.parts[k] }));
  const byId = (id) => document.getElementById(id);
  const rows = [];

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
  const { namespaceURI } = byId("drawing");
  function drawn(tag, attributes, ...children) {
    const made = document.createElementNS(namespaceURI, tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    made.append(...children);
    return made;
  }
  const option = (value, text) => element("option", { value: String(value), textContent: text });
  const signed = (x) => (Number.isFinite(x) ? (x <= -0.005 ? "−" : "+") + Math.abs(x).toFixed(2) : x > 0 ? "+∞" : "−∞");
  const percent = (p) => (p > 0 && p < 0.0005 ? "< 0.1 %" : p < 1 && p > 0.9995 ? "> 99.9 %" : (100 * p).toFixed(1) + " %");
  const short = (x) => String(Number(x.toPrecision(5)));

  // ------------------------------------------------------------------ the attributes

  function listControl(j, title) {
    const select = element("select", { id: `value-${j}`, "aria-labelledby": title });
    select.append(option("", "unknown"));
    attributes[j].labels.forEach((label, k) => select.append(option(k, label)));
    select.addEventListener("change", () => {
      values[j] = select.value === "" ? null : attributes[j].values[Number(select.value)];
      update();
    });
    return { controls: [select], show: () => {
      select.value = values[j] === null ? "" : String(attributes[j].values.indexOf(values[j]));
    } };
  }

  function numberControl(j, title) {
    const own = attributes[j], span = own.high - own.low;
    const unknown = element("input", { type: "checkbox", id: `unknown-${j}` });
    const slider = element("input", { type: "range", id: `slider-${j}`, min: String(own.low), max: String(own.high),
      step: "any", "aria-label": `${own.name}, slider` });
    const number = element("input", { type: "number", id: `value-${j}`, step: "any", "aria-label": `${own.name}, number` });
    const interval = element("span", { className: "interval" });
    const set = (x) => { values[j] = Number.isFinite(x) ? x : null; update(); };
    slider.addEventListener("input", () => set(Number(Number(slider.value).toPrecision(6))));
    // An "any" step leaves the size of a step to the browser; a hundredth of the range is useful.
    slider.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      const from = values[j] === null ? own.low + span / 2 : values[j];
      set(Number((from + (steps[event.key] * span) / 100).toPrecision(6)));
    });
    number.addEventListener("input", () => set(number.value === "" ? NaN : Number(number.value)));
    unknown.addEventListener("change", () => set(unknown.checked ? NaN : Number((own.low + span / 2).toPrecision(4))));
    const show = () => {
      const x = values[j];
      unknown.checked = x === null;
      slider.value = String(x === null ? own.low + span / 2 : x);
      slider.setAttribute("aria-valuetext", x === null ? "unknown" : short(x));
      if (document.activeElement !== number || (x === null) !== (number.value === "")) {
        number.value = x === null ? "" : String(x);
      }
      interval.textContent = x === null || !own.labels ? "" : `in ${own.labels[scoring.intervalOf(own.edges, x)]}`;
    };
    const label = element("label", {}, unknown, " unknown");
    if (own.edges && own.edges.length === 0) return { controls: [label, number, interval], show };
    const curve = drawn("svg", { class: "curve", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" });
    const here = drawn("line", { class: "here", y1: 0, y2: 24 });
    const across = (x) => Math.max(0, Math.min(100, (100 * (x - own.low)) / span));
    const paint = ({ points, amounts }) => {
      const low = Math.min(0, ...amounts), high = Math.max(1e-9 + low, ...amounts);
      const up = (y) => 23 - (22 * (y - low)) / (high - low);
      const path = points.map((x, k) => `${across(x).toFixed(2)},${up(amounts[k]).toFixed(2)}`).join(" ");
      curve.replaceChildren(drawn("line", { class: "level", x1: 0, x2: 100, y1: up(0), y2: up(0) }),
        drawn("polyline", { points: path }), here);
    };
    const showAll = () => {
      show();
      here.setAttribute("visibility", values[j] === null ? "hidden" : "visible");
      for (const end of ["x1", "x2"]) here.setAttribute(end, across(values[j] === null ? own.low : values[j]));
    };
    const slide = element("div", { className: "slide" }, slider, curve);
    return { controls: [slide, number, label, interval], show: showAll, paint };
  }

  // Evidence as a colour: none is nearly white.
  function colour(amount, limit) {
    const share = Math.max(-1, Math.min(1, amount / limit)), full = share < 0 ? [181, 71, 47] : [42, 127, 98];
    const mixed = full.map((part) => Math.round(246 + (part - 246) * Math.abs(share)));
    return `rgb(${mixed.join(",")})`;
  }

  // A pair has no control: a map shows what its two columns say together.
  function pairControl(j) {
    const own = attributes[j], [a, b] = own.sides.map((side) => side.n_groups - 1);
    const code = (row, column) => row * (b + 1) + column;
    const empty = new Set(own.empty || []), cells = [];
    const map = drawn("svg", { class: "map", viewBox: `0 0 ${b} ${a}`, preserveAspectRatio: "none", role: "img",
      "aria-label": `map of ${own.name}`, style: `height:${Math.min(8, Math.max(2.5, 0.8 * a))}rem` });
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
    const names = own.sides.map((side) => attributes[side.column].name);
    const axes = element("span", { className: "axes", textContent: `↑ ${names[0]}   → ${names[1]}` });
    const show = () => {
      const [row, column] = own.sides.map((side) => scoring.groupOf(side, values[side.column]));
      const now = code(row, column);
      here.setAttribute("visibility", row && column ? "visible" : "hidden");
      here.setAttribute("x", Math.max(0, column - 1));
      here.setAttribute("y", Math.max(0, a - row));
      map.dataset.code = String(now);
      text.textContent = own.labels[now];
    };
    const paint = ({ table, limit }) => cells.forEach(({ at, cell, title }) => {
      cell.setAttribute("fill", colour(table[at], limit));
      title.textContent = `${own.labels[at]}: ${signed(table[at])}${empty.has(at) ? ", no training rows" : ""}`;
    });
    return { controls: [map, axes, text], show, paint };
  }

  for (const j of order) {
    const own = attributes[j], title = `name-${j}`;
    const { controls, show, paint } = own.kind === "pair" ? pairControl(j)
      : own.kind === "category" ? listControl(j, title) : numberControl(j, title);
    const scale = element("div", { className: "scale", "aria-hidden": "true" });
    const number = element("output", { className: "number", id: `evidence-${j}`, "aria-label": `evidence of ${own.name}` });
    // Only the posterior is announced; every evidence at once would be noise.
    number.setAttribute("aria-live", "off");
    const field = element("fieldset", { id: `attribute-${j}` },
      element("legend", { id: title, textContent: own.name }),
      element("div", { className: "control" }, ...controls), scale, number);
    byId("attributes").append(field);
    rows.push({ j, show, paint, scale, number, field });
  }

  // ----------------------------------------------------------------- the whole picture

  parts.forEach((part, k) => byId("part").append(option(k, part.name)));
  byId("part-choice").hidden = parts.length === 1;

  function fillClasses() {
    const own = parts[Number(byId("part").value)].leaf.classes;
    const [target, against] = [byId("target"), byId("against")];
    target.replaceChildren();
    against.replaceChildren();
    if (own.length > 2) {
      target.append(option("best", "the most probable class"));
      against.append(option("mean", "the mean of the others"));
    }
    own.forEach((c, k) => { target.append(option(k, classes[c])); against.append(option(k, classes[c])); });
    if (own.length === 2) { target.value = "1"; against.value = "0"; }
  }

  const posteriorRows = classes.map((name, c) => {
    const bar = element("span", {}), text = element("td", { id: `probability-${c}` });
    const row = element("tr", {}, element("th", { scope: "row", textContent: name }),
      element("td", {}, element("div", { className: "bar", "aria-hidden": "true" }, bar)), text);
    byId("posterior").tBodies[0].append(row);
    return { row, bar, text };
  });

  // Evidence from contributions to all classes: for one against another, or the mean.
  function evidenceFor(contribution, leaf, first, second) {
    if (second !== null) return leaf.scale * (contribution[first] - contribution[second]);
    const total = contribution.reduce((a, b) => a + b, 0);
    const k = contribution.length;
    return (leaf.scale * (k * contribution[first] - total)) / (k - 1);
  }

  // Numbers along the slider, and both sides of every jump.
  function along(own) {
    const span = own.high - own.low, points = Array.from({ length: 41 }, (_, k) => own.low + (k * span) / 40);
    for (const cut of own.cuts) points.push(cut, cut + 1e-9 * span);
    return points.filter((x) => x >= own.low && x <= own.high).sort((x, y) => x - y);
  }

  // What one column adds to each class, for a cell of it.
  function contribution(leaf, j, cell) {
    const cells = [];
    cells[j] = cell;
    const own = { ...leaf, terms: leaf.terms.filter((term) => term.kind !== "pair" && term.column === j) };
    return scoring.contributions(own, cells, j + 1)[j];
  }

  // All that an attribute can say: a table of its values or groups, a curve along its numbers.
  function possible(j, leaf, first, second) {
    const own = attributes[j], terms = leaf.terms.filter((term) => scoring.attributeOf(term) === j);
    const evidence = (row) => evidenceFor(row, leaf, first, second);
    if (own.kind === "pair") {
      const table = terms.length ? terms[0].rows.flat().map(evidence) : own.labels.map(() => 0);
      return { table, all: table, dots: table, bounded: true };
    }
    if (own.kind === "category") {
      const all = [...own.values, null].map((value) => evidence(contribution(leaf, j, value)));
      return { all, dots: all, bounded: true };
    }
    const points = along(own), amounts = points.map((x) => evidence(contribution(leaf, j, x)));
    const inBins = terms.every((term) => term.kind === "bins");
    const dots = inBins ? terms.flatMap((term) => term.rows.map(evidence)) : [];
    return { points, amounts, all: amounts, dots, bounded: inBins || terms.length > 1 };
  }

  // That changes with the classes that are compared, not with the values.
  let compared = null, sayings = [];
  function compare(leaf, first, second) {
    const key = [byId("part").value, first, second].join();
    if (key === compared) return;
    compared = key;
    sayings = attributes.map((_, j) => possible(j, leaf, first, second));
    const inMaps = sayings.filter((_, j) => attributes[j].kind === "pair").flatMap((saying) => saying.table.map(Math.abs));
    const limit = inMaps.reduce((a, b) => Math.max(a, Number.isFinite(b) ? b : 0), 1e-9);
    for (const row of rows) if (row.paint) row.paint({ ...sayings[row.j], limit });
  }

  function drawScale(row, amount, all, far, dots) {
    const place = (x) => 50 + 48 * Math.max(-1, Math.min(1, x / far));
    const low = place(Math.min(0, ...all)), high = place(Math.max(0, ...all)), at = place(amount);
    const pieces = [element("span", { className: "band", style: `left:${low}%;width:${high - low}%` })];
    dots.forEach((x) => pieces.push(element("span", { className: "dot", style: `left:${place(x)}%` })));
    pieces.push(element("span", { className: amount < 0 ? "amount negative" : "amount",
      style: `left:${Math.min(50, at)}%;width:${Math.abs(at - 50)}%` }));
    pieces.push(element("span", { className: "zero", style: "left:50%" }));
    row.scale.replaceChildren(...pieces);
  }

  let announcing = 0;
  function update() {
    const probabilities = scoring.posterior(model, values);
    const best = probabilities.indexOf(Math.max(...probabilities));
    posteriorRows.forEach(({ row, bar, text }, c) => {
      bar.style.width = `${100 * probabilities[c]}%`;
      text.textContent = percent(probabilities[c]);
      text.dataset.probability = String(probabilities[c]);
      row.className = c === best ? "best" : "";
    });
    const known = values.filter((value) => value !== null).length;
    // A moving slider would otherwise be read out at every pixel.
    clearTimeout(announcing);
    announcing = setTimeout(() => {
      byId("summary").textContent = `${classes[best]}: ${percent(probabilities[best])}, from ${known} known ${known === 1 ? "value" : "values"}.`;
    }, 250);

    const { leaf } = parts[Number(byId("part").value)];
    const own = leaf.classes.map((c) => probabilities[c]);
    const chosen = byId("target").value;
    const first = chosen === "best" ? own.indexOf(Math.max(...own)) : Number(chosen);
    let second = byId("against").value === "mean" ? null : Number(byId("against").value);
    if (second === first) second = leaf.classes.length === 2 ? 1 - first : null;
    const amounts = scoring.contributions(leaf, values, attributes.length).map((row) => evidenceFor(row, leaf, first, second));
    compare(leaf, first, second);
    const reach = sayings.flatMap((saying) => (saying.bounded ? saying.all : []))
      .reduce((a, b) => Math.max(a, Math.abs(b)), Math.max(1e-9, ...amounts.map(Math.abs)));
    const far = Math.min(reach, 1e6);
    for (const row of rows) {
      row.show();
      row.number.textContent = signed(amounts[row.j]);
      row.number.dataset.evidence = String(amounts[row.j]);
      const { all, dots } = sayings[row.j];
      drawScale(row, amounts[row.j], all, far, dots.length <= 30 ? dots : []);
    }
    const prior = evidenceFor(scoring.baseOf(leaf), leaf, first, second);
    const total = amounts.reduce((a, b) => a + b, prior);
    const other = second === null ? "the mean of the others" : classes[leaf.classes[second]];
    const rate = data.rates === null ? null : data.rates[leaf.classes[first]];
    const start = rate === null ? "Prior" : `Base rate ${percent(rate)}:`;
    byId("sum").textContent = `${start} ${signed(prior)}, all attributes ${signed(total - prior)}; log-odds of ` +
      `${classes[leaf.classes[first]]} against ${other}: ${signed(total)}.`;
  }

  byId("part").addEventListener("change", () => { fillClasses(); update(); });
  byId("target").addEventListener("change", update);
  byId("against").addEventListener("change", update);
  byId("reset").addEventListener("click", () => { values.fill(null); update(); });
  byId("attributes").addEventListener("submit", (event) => event.preventDefault());
  byId("find").addEventListener("input", () => {
    const words = byId("find").value.toLowerCase();
    for (const row of rows) row.field.hidden = !attributes[row.j].name.toLowerCase().includes(words);
  });
  fillClasses();
  update();
})();
