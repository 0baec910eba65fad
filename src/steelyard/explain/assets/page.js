"use strict";
(() => {
  const { byId, element, option, percent, signed } = controls;
  const data = JSON.parse(byId("model").textContent);
  const { attributes, classes, model, order } = data;
  const values = attributes.map(() => null);
  const parts = scoring.leaves(model).map((leaf, k) => ({ leaf, name: data.parts[k] }));
  const two = classes.length === 2, many = classes.length > 6;
  const columns = order.filter((j) => attributes[j].kind !== "pair").length;

  // ------------------------------------------------------------------ the attributes

  function controlOf(own, j) {
    if (own.kind === "pair") return controls.pair(own, j, values, attributes);
    return (own.kind === "category" ? controls.category : controls.number)(own, j, values, update, attributes);
  }

  // Pairs have nothing to set: they come after the columns.
  const isPair = (j) => attributes[j].kind === "pair";
  const rows = [...order.filter((j) => !isPair(j)), ...order.filter(isPair)].map((j) => {
    const own = attributes[j], made = controlOf(own, j);
    const number = element("output", { className: "number", id: `evidence-${j}`, "aria-label": `evidence of ${own.title}` });
    // Only the answer is announced; every evidence at once would be noise.
    number.setAttribute("aria-live", "off");
    const field = element("fieldset", { id: `attribute-${j}` }, element("legend", { id: `name-${j}`, textContent: own.title, title: own.name }),
      number, element("div", { className: "control" }, ...made.controls));
    return { j, ...made, number, field, reason: reasonOf(own.title) };
  });
  byId("attributes").append(...rows.map((row) => row.field));
  byId("find").hidden = attributes.length < 9;

  // A line of the reasons: what it is, a bar on the common axis, a number.
  function reasonOf(name) {
    const value = element("span", {}), bar = element("span", {}), number = element("span", { className: "number" });
    const line = element("li", {}, element("span", { className: "what" }, element("b", { textContent: name }), value),
      element("span", { className: "scale", "aria-hidden": "true" }, bar), number);
    return { line, value, bar, number };
  }
  const base = reasonOf(""), unknown = reasonOf("");
  base.line.className = unknown.line.className = "base";

  // ----------------------------------------------------------------- classes and parts

  const asked = data.target === null ? "class" : data.target;
  if (!two) byId("shown").append(option("best", "the most probable class"));
  classes.forEach((name, c) => byId("shown").append(option(c, name)));
  byId("shown").value = two ? "1" : "best";

  parts.forEach((part, k) => byId("part").append(option(k, part.name)));
  byId("part-choice").hidden = byId("target-choice").hidden = parts.length === 1;
  byId("against-choice").hidden = two;
  // Only the sum for one of two classes is the logit of its probability.
  byId("adding").textContent = `Bars are evidence in log-odds. They add up${two && parts.length === 1 ? ", and their sum gives the probability." : "."}`;

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
    const row = element("tr", {}, element("th", { scope: "row", textContent: name, title: name }),
      element("td", {}, element("div", { className: "track", "aria-hidden": "true" }, bar)), text);
    byId("posterior").tBodies[0].append(row);
    return { row, bar, text };
  });
  byId("find-class").hidden = classes.length < 9;
  // Of two classes the answer says all; the table is there for those who hear the page.
  if (two) { byId("all").className = "quiet"; byId("classes").tabIndex = -1; }

  // -------------------------------------------------------------------- evidence

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

  // What the terms of one column add to each class of the average row, for a cell of it.
  function contribution(terms, j, cell, leaf) {
    const cells = [], told = scoring.meanOf(leaf, j).map((mean) => 0 - mean);
    cells[j] = cell;
    for (const term of terms) (scoring.amounts(term, cells) || []).forEach((amount, c) => { told[c] += amount; });
    return told;
  }

  // All that an attribute can say: a table of its values or groups, a curve along its numbers.
  function possible(j, terms, leaf, first, second) {
    const own = attributes[j], evidence = (row) => evidenceFor(row, leaf, first, second);
    if (own.kind === "pair") {
      const mean = evidence(scoring.meanOf(leaf, j));
      const table = terms.length ? terms[0].rows.flat().map((row) => evidence(row) - mean) : own.labels.map(() => 0);
      return { table, all: table };
    }
    const ofCell = (cell) => evidence(contribution(terms, j, cell, leaf));
    if (own.kind === "category") return { all: [...own.values, null].map(ofCell) };
    const points = along(own), amounts = points.map(ofCell);
    return { points, amounts, all: amounts };
  }

  // That changes with the classes that are compared, not with the values.
  let compared = null, reach = 1;
  const largest = (amounts, least) => amounts.reduce((a, b) => Math.max(a, Number.isFinite(b) ? Math.abs(b) : 0), least);
  function compare(leaf, first, second) {
    const key = [byId("part").value, first, second].join();
    if (key === compared) return;
    compared = key;
    const terms = attributes.map(() => []);
    for (const term of leaf.terms) terms[scoring.attributeOf(term)].push(term);
    const sayings = attributes.map((_, j) => possible(j, terms[j], leaf, first, second));
    const limit = largest(sayings.flatMap((saying) => saying.table || []), 1e-9);
    for (const row of rows) if (row.paint) row.paint({ ...sayings[row.j], limit });
    // The axis holds all that most attributes can say; a density far out says more.
    const reaches = sayings.map((saying) => largest(saying.all, 0)).sort((a, b) => a - b);
    reach = Math.max(1e-9, Math.min(reaches[reaches.length - 1] || 0, 3 * (reaches[reaches.length >> 1] || 0) || Infinity));
  }

  function drawAxis(far) {
    const raw = far / 2.5, unit = 10 ** Math.floor(Math.log10(raw));
    const step = unit * [1, 2, 5, 10].find((m) => m * unit >= raw), pieces = [];
    // Labels at the very ends would be cut off.
    for (let x = -Math.floor((0.95 * far) / step) * step; x <= 0.95 * far; x += step) {
      const left = `left:${50 + (50 * x) / far}%`, at = Math.abs(x) < step / 2 ? 0 : Number(x.toPrecision(6));
      pieces.push(element("i", { style: left }));
      pieces.push(element("span", { style: left, textContent: at === 0 ? "0" : (at < 0 ? "−" : "+") + Math.abs(at) }));
    }
    byId("axis").replaceChildren(...pieces);
  }

  function drawReason({ bar, number }, amount, far) {
    const share = 50 * Math.max(-1, Math.min(1, amount / far));
    bar.className = amount < 0 ? "negative" : "";
    bar.style.left = `${Math.min(50, 50 + share)}%`;
    bar.style.width = `${Math.abs(share)}%`;
    number.textContent = signed(amount);
  }

  // What is compared: a class of a part against another, or against the mean of the others.
  function chosen(probabilities, shown) {
    const { leaf } = parts[Number(byId("part").value)];
    const own = leaf.classes.map((c) => probabilities[c]);
    const value = byId("target").value;
    let first = value === "best" ? own.indexOf(Math.max(...own)) : Number(value);
    if (parts.length === 1) first = leaf.classes.indexOf(shown);
    let second = byId("against").value === "mean" ? null : Number(byId("against").value);
    if (leaf.classes.length === 2) second = 1 - first; else if (second === first) second = null;
    return { leaf, first, second };
  }

  function explain(probabilities, shown) {
    const { leaf, first, second } = chosen(probabilities, shown);
    const told = scoring.contributions(leaf, values, attributes.length);
    const amounts = told.map((row) => evidenceFor(row, leaf, first, second));
    compare(leaf, first, second);
    // The sum begins with the mean over the training rows.
    const means = attributes.map((_, j) => scoring.meanOf(leaf, j));
    const prior = means.reduce((sum, mean) => sum + evidenceFor(mean, leaf, first, second),
      evidenceFor(scoring.baseOf(leaf), leaf, first, second));
    const isOpen = (j) => (isPair(j) ? told[j].every((amount, c) => amount === 0 - means[j][c]) : values[j] === null);
    const far = Math.min(1e6, largest([prior, ...amounts], reach)) * 1.05;
    drawAxis(far);
    for (const row of rows) {
      const amount = amounts[row.j], isUnknown = isOpen(row.j);
      row.show();
      row.number.textContent = amount === 0 ? "—" : signed(amount);
      row.number.dataset.evidence = String(amount);
      row.field.className = isUnknown ? "unknown" : amount < 0 ? "negative" : "";
      if (!isUnknown) row.reason.value.textContent = `${isPair(row.j) ? ": " : " = "}${row.text(values[row.j])}`;
      drawReason(row.reason, amount, far);
    }
    const rate = data.rates === null ? null : data.rates[leaf.classes[first]];
    base.value.textContent = leaf.centre.length ? "Average row" : rate === null ? "Prior" : `Base rate ${percent(rate)}`;
    drawReason(base, prior, far);
    const said = rows.filter((row) => Math.abs(amounts[row.j]) > 1e-12);
    const shownRows = said.filter((row) => !isOpen(row.j)).sort((a, b) => Math.abs(amounts[b.j]) - Math.abs(amounts[a.j]));
    // What is not known is one line: that nothing is said counts as well.
    const open = said.filter((row) => isOpen(row.j)), nOpen = open.filter((row) => !isPair(row.j)).length;
    unknown.value.textContent = `${nOpen} ${nOpen === 1 ? "value" : "values"} not known`;
    drawReason(unknown, open.reduce((sum, row) => sum + amounts[row.j], 0), far);
    byId("reasons").replaceChildren(base.line, ...(open.length ? [unknown.line] : []), ...shownRows.map((row) => row.reason.line));
    const total = amounts.reduce((a, b) => a + b, prior);
    const other = second === null ? "the mean of the others" : classes[leaf.classes[second]];
    byId("sum").textContent = `Together ${signed(total)}: the log-odds of ${classes[leaf.classes[first]]} against ${other}.`;
  }

  // ----------------------------------------------------------------------- the answer

  function showClasses(probabilities, best) {
    posteriorRows.forEach(({ row, bar, text }, c) => {
      bar.style.width = `${100 * probabilities[c]}%`;
      text.textContent = percent(probabilities[c]);
      text.dataset.probability = String(probabilities[c]);
      row.className = c === best ? "best" : "";
    });
    if (!many) return;
    const sorted = classes.map((_, c) => c).sort((a, b) => probabilities[b] - probabilities[a] || a - b);
    byId("posterior").tBodies[0].replaceChildren(...sorted.map((c) => posteriorRows[c].row));
  }

  function showAnswer(probabilities, shown) {
    const p = probabilities[shown], known = values.filter((value) => value !== null).length;
    byId("ask").textContent = byId("shown").value === "best" ? `Which ${asked} is it?` : `How probable is ${asked} =`;
    byId("name").textContent = byId("name").title = classes[shown];
    byId("percent").textContent = percent(p);
    byId("fill").style.width = `${100 * p}%`;
    byId("rate").hidden = data.rates === null;
    if (data.rates !== null) byId("rate").style.left = `${100 * data.rates[shown]}%`;
    const start = data.rates === null ? "" : ` Base rate ${percent(data.rates[shown])} (dotted).`;
    byId("from").textContent = `${known} of ${columns} values known.${start}`;
    return `${classes[shown]}: ${percent(p)}, from ${known} known ${known === 1 ? "value" : "values"}.`;
  }

  let drawing;
  function showRange(shown) {
    if (drawing === undefined) drawing = spread.prepared(data);
    const found = drawing === null ? null : spread.range(drawing, values, shown);
    byId("range").hidden = found === null;
    byId("could").textContent = "";
    if (found === null) return;
    byId("range").style.left = `${100 * found[0]}%`;
    byId("range").style.width = `${100 * (found[1] - found[0])}%`;
    byId("range").dataset.ends = JSON.stringify(found);
    byId("could").textContent = `With all values known: ${percent(found[0])} to ${percent(found[1])} in 8 of 10 cases.`;
  }

  let waiting = 0;
  function update() {
    const probabilities = scoring.posterior(model, values);
    const best = probabilities.indexOf(Math.max(...probabilities));
    const shown = byId("shown").value === "best" ? best : Number(byId("shown").value);
    showClasses(probabilities, best);
    const text = showAnswer(probabilities, shown);
    explain(probabilities, shown);
    // A moving slider would otherwise be read out, and drawn for, at every pixel.
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      showRange(shown);
      byId("summary").textContent = text;
      writeLink();
    }, 200);
  }

  // ------------------------------------------------------------------------- the link

  // Values are in the address after the #, by name: a link to them can be kept.
  let written = null;
  function writeLink() {
    const link = new URLSearchParams();
    attributes.forEach((own, j) => {
      if (values[j] === null) return;
      link.append(own.name, own.kind === "category" ? own.labels[own.values.indexOf(values[j])] : String(values[j]));
    });
    written = link.size ? `#${link}` : "";
    if (location.hash !== written) history.replaceState(null, "", written || location.pathname + location.search);
  }

  function readLink() {
    if (location.hash === written) return;
    const link = new URLSearchParams(location.hash.slice(1));
    attributes.forEach((own, j) => {
      if (own.kind === "pair") return;
      const text = link.get(own.name), at = own.kind === "category" ? own.labels.indexOf(text) : -1;
      const x = text === null || text.trim() === "" ? NaN : Number(text);
      values[j] = own.kind === "category" ? (at < 0 ? null : own.values[at]) : Number.isFinite(x) ? x : null;
    });
    update();
  }

  async function copyLink() {
    writeLink();
    try {
      await navigator.clipboard.writeText(location.href);
      byId("copied").textContent = "Copied.";
    } catch {
      byId("copied").textContent = "The address of this page is the link.";
    }
  }

  // ----------------------------------------------------------------------------------

  function filter(words, names, elements) {
    const wanted = words.toLowerCase();
    elements.forEach((found, k) => { found.hidden = !names[k].toLowerCase().includes(wanted); });
  }
  byId("part").addEventListener("change", () => { fillClasses(); update(); });
  for (const id of ["shown", "target", "against"]) byId(id).addEventListener("change", update);
  byId("reset").addEventListener("click", () => { values.fill(null); update(); });
  byId("copy").addEventListener("click", copyLink);
  byId("print").addEventListener("click", () => window.print());
  byId("attributes").addEventListener("submit", (event) => event.preventDefault());
  byId("find").addEventListener("input", () =>
    filter(byId("find").value, rows.map((row) => `${attributes[row.j].title} ${attributes[row.j].name}`), rows.map((row) => row.field)));
  byId("find-class").addEventListener("input", () =>
    filter(byId("find-class").value, classes, posteriorRows.map(({ row }) => row)));
  window.addEventListener("hashchange", readLink);
  fillClasses();
  readLink();
  update();
})();
