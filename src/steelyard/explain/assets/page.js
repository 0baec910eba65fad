"use strict";
(() => {
  const { axisOf, button, byId, children, data, element, ends, fixed, isList, make, option, percent, put, signed, t, textOf } = controls;
  const { attributes, classes, model, order } = data;
  const values = attributes.map(() => null), nothing = [...values];
  const parts = scoring.leaves(model).map((leaf, k) => ({ leaf, name: data.parts[k] || t("the model") }));
  const two = classes.length === 2, many = classes.length > 6;
  const isInteraction = (j) => attributes[j].kind === "interaction";
  const columns = order.filter((j) => !isInteraction(j));
  // Columns that are averaged over while they are unknown: such models begin with the base rates.
  const isAveraged = (leaf, j) => Boolean(leaf.marginal) && leaf.marginal.value_odds[j] === 0;
  const ratesOf = (leaf) => marginal.withRatio(leaf.marginal, scoring.baseOf(leaf.marginal.plain).map(Math.exp));
  const isAveraging = columns.some((j) => isAveraged(model, j)), rates = isAveraging ? ratesOf(model) : data.rates;
  const state = { pinned: null, locked: new Set(), isAll: false, isEvery: false, isUnfolded: false, shown: 0, probabilities: [], compared: null, evidence: [] };
  const set = (j, value) => { values[j] = value; update(); };

  // -------------------------------------------------------------------- units of people

  const units = { steps: t("percentage points"), odds: t("odds"), log: t("log-odds") };
  for (const [key, text] of Object.entries(units)) byId("unit").append(option(key, text));
  // A file may have no storage of its own: then the choice lasts as long as the page.
  try { byId("unit").value = localStorage.getItem("steelyard-unit") || "steps"; } catch { /* as it is */ }
  if (!byId("unit").value) byId("unit").value = "steps";
  const unit = () => byId("unit").value;
  const isShare = () => unit() === "steps";
  // Nobody reads odds of more than a thousand.
  const factor = (x) => (x < 2 ? fixed(x, 2) : x < 10 ? fixed(x, 1) : x < 1000 ? fixed(Number(x.toPrecision(2)), 0) : "1000+");
  const odds = (amount) => (amount < 0 ? `1 : ${factor(Math.exp(-amount))}` : `${factor(Math.exp(amount))} : 1`);
  // Evidence in the unit that is chosen; from is the probability before, to that after.
  function say(amount, from, to) {
    if (isShare() && from !== undefined) return Math.abs(to - from) < 5e-4 ? "—" : `${signed(100 * (to - from), 1)}\u00a0%`;
    return unit() === "log" ? signed(amount) : `${amount < 0 ? "÷" : "×"} ${factor(Math.exp(Math.abs(amount)))}`;
  }

  // ------------------------------------------------------------------ the attributes

  // Interactions have nothing to set: each follows the first of its columns.
  function inOrder() {
    const rest = new Set(order.filter(isInteraction)), placed = [];
    for (const j of columns) {
      placed.push(j);
      for (const k of rest) if (attributes[k].sides.some((side) => side.column === j)) { placed.push(k); rest.delete(k); }
    }
    return [...placed, ...rest];
  }
  // Long names break after underscores and points.
  const broken = (text) => text.split(/(?<=[_.])/).flatMap((part, k) => (k ? [element("wbr"), part] : [part]));
  // Interactions are folded under the first of their columns.
  const placed = inOrder(), interactionsOf = new Map();
  placed.reduce((column, j) => {
    if (isInteraction(j)) interactionsOf.set(column, [...(interactionsOf.get(column) || []), j]);
    return isInteraction(j) ? column : j;
  }, null);
  const rows = placed.map((j) => {
    const own = attributes[j], made = make[own.kind](own, j, values, set, attributes);
    const number = element("output", { className: "number", id: `evidence-${j}`, "aria-label": t("evidence of {name}", { name: own.title }) });
    // Only the answer is announced; every evidence at once would be noise.
    number.setAttribute("aria-live", "off");
    const name = element("button", { type: "button", className: "name", id: `name-${j}`, title: own.description || own.name }, ...broken(own.title));
    name.setAttribute("aria-expanded", "false");
    const mark = element("span", { className: "mark" }), detail = element("div", { className: "detail", id: `detail-${j}`, hidden: true });
    const clear = button("×", () => {
      if (own.date) controls.setParts(own, NaN, values, attributes);
      set(j, null);
    }, { className: "clear", id: `clear-${j}`, ariaLabel: t("{name}: set to unknown", { name: own.title }) });
    if (isInteraction(j)) clear.hidden = true;
    const field = element("div", { id: `attribute-${j}`, role: "group", "aria-labelledby": `name-${j}` },
      element("span", { className: "title" }, name, mark), ...made.controls, clear, number, detail);
    const row = { j, ...made, number, field, mark, detail, clear, name, reason: reasonOf(own.title) };
    name.addEventListener("click", () => {
      detail.hidden = !detail.hidden;
      name.setAttribute("aria-expanded", String(!detail.hidden));
      field.classList.toggle("open", !detail.hidden);
      for (const k of interactionsOf.get(j) || []) byId(`attribute-${k}`).hidden = detail.hidden && !state.isUnfolded;
      showDetail(row);
    });
    field.hidden = isInteraction(j);
    return row;
  });
  const groups = [...new Set(rows.map(({ j }) => attributes[j].group || ""))];
  const inGroups = groups.length < 2 ? [["", rows]] : groups.map((name) => [name, rows.filter(({ j }) => (attributes[j].group || "") === name)]);
  for (const [name, own] of inGroups) {
    if (name) byId("attributes").append(element("h3", { textContent: name }));
    byId("attributes").append(...own.map((row) => row.field));
  }
  byId("unfold").hidden = !interactionsOf.size;
  byId("find").hidden = attributes.length < 9;
  byId("hint").hidden = data.ordered;

  // A line of the reasons: what it is, a bar on the common axis, a number at its end.
  function reasonOf(name) {
    const value = element("span", {}), bar = element("span", {}), number = element("span", { className: "number" });
    const line = element("li", {}, element("span", { className: "what" }, element("b", { textContent: name }), value),
      element("span", { className: "scale" }, bar, number));
    return { line, value, bar, number };
  }
  const [base, unknown, rest, averaged] = [0, 1, 2, 3].map(() => reasonOf(""));
  for (const { line } of [base, unknown, rest, averaged]) line.className = "base";
  averaged.line.title = t("Averaging over their possible values pulls the answer towards the base rate.");

  const shapeOf = ({ shape: [kind, of] }) => (of === undefined ? t(kind) : `${t(kind)} ${t("for {name}", { name: of })}`);
  // What an attribute says all along, with axes: in shares how the answer would go.
  function showDetail({ j, detail }) {
    if (detail.hidden) return;
    const own = attributes[j], about = impliedBy(j);
    const said = saidOf(j);
    if (isInteraction(j)) {
      detail.replaceChildren(...about, charts.map(own, said.table, attributes, values, (y) => say(y), (cells) => {
        for (const [k, value] of cells) values[k] = value;
        update();
      }));
      return;
    }
    if (own.description) about.push(element("p", { className: "hint", textContent: own.description }));
    if (own.shape) about.push(element("p", { className: "hint", textContent: t("{shape}, by constraint", { shape: shapeOf(own) }) }));
    if (own.opposed) about.push(element("p", { className: "hint", textContent: [t("Once other columns are known, this curve runs against the class rates of the column alone."),
      ...(own.opposed.length ? [t("Other columns say the same: {names}.", { names: own.opposed.join(", ") })] : []),
      t("Dashed: the column alone.")].join(" ") }));
    for (const text of own.edited || []) about.push(element("p", { className: "hint", textContent: `${t("edited")}: ${text}` }));
    const along = scoring.along(model, values, j), chance = (x) => along.posterior(x)[state.shown], alone = own.opposed ? aloneOf(j) : [];
    const picture = !isList(own)
      ? charts.curve(own, isShare() ? { points: said.points, amounts: said.points.map(chance), alone, isShare: true } : { ...said, alone },
        values[j], (y) => (isShare() ? percent(y) : say(y)), (x) => set(j, x), unit(), isShare() || typeof editing === "undefined" ? null : (x, y) => editing.drag(j, x, y))
      : charts.list(own, own.values.map((value, k) => (isShare() ? chance(value) : said.all[k])), values[j],
        (y) => (isShare() ? percent(y) : say(y)), (value) => set(j, value), isShare());
    detail.replaceChildren(...about, picture, ...(typeof editing === "undefined" ? [] : [editing.panel(j)]));
  }

  // What plain naive Bayes would say of the values of a column.
  function aloneOf(j) {
    const { leaf, first, second } = state.compared, plain = { ...leaf.marginal.plain, scale: 1 };
    const terms = plain.terms.filter(({ column }) => column === j), base = scoring.baseOf(plain);
    if (!isShare()) return possible(j, terms, plain, first, second, (row) => row).amounts;
    return along(attributes[j]).map((x) => marginal.withRatio(leaf.marginal, scoring.softmax(plus(base, [amountsOf(terms, j, x, plain)])))[state.shown]);
  }

  // Which part of what a known column adds is what it says of the unknown ones.
  function impliedBy(j) {
    const { leaf, first, second } = state.compared;
    if (!scoring.isPartial(leaf, values) || scoring.meanScores(leaf, values).at.open[j]) return [];
    const itself = evidenceFor(scoring.ownContributions(leaf, values)[j], leaf, first, second), implied = state.evidence[j] - itself;
    return [element("p", { className: "hint implied", textContent: t("{own} directly, {implied} through the unknown columns.", { own: say(itself), implied: say(implied) }) })];
  }
  // What an attribute adds all along: while columns are unknown, with what it says of these. Edits
  // are made to what it adds itself.
  function saidOf(j) {
    const { leaf, first, second } = state.compared, terms = leaf.terms.filter((term) => scoring.attributeOf(term) === j);
    return possible(j, terms, leaf, first, second, typeof editing === "undefined" ? scoring.totalOf(leaf, values, j) : null);
  }

  // ----------------------------------------------------------------- classes and parts

  const asked = data.target === null ? t("class") : data.target;
  if (!two) byId("shown").append(option("best", t("the most probable class")));
  classes.forEach((name, c) => { byId("shown").append(option(c, name)); byId("wished").append(option(c, name)); });
  byId("shown").value = data.positive === null ? (two ? "1" : "best") : String(data.positive);
  if (!two) byId("side").append(option("win", t("to win")));
  byId("side").append(option("under", t("to be under")), option("over", t("to be over")));

  parts.forEach((part, k) => byId("part").append(option(k, part.name)));
  byId("part-choice").hidden = byId("target-choice").hidden = parts.length === 1;
  byId("against-choice").hidden = two;

  function fillClasses() {
    const own = parts[Number(byId("part").value)].leaf.classes;
    const [target, against] = [byId("target"), byId("against")];
    target.replaceChildren();
    against.replaceChildren();
    if (own.length > 2) {
      target.append(option("best", t("the most probable class")));
      against.append(option("next", t("the runner-up")), option("mean", t("the mean of the others")));
    }
    own.forEach((c, k) => { target.append(option(k, classes[c])); against.append(option(k, classes[c])); });
    if (own.length === 2) {
      const first = own.indexOf(data.positive) === 0 ? 0 : 1;
      [target.value, against.value] = [String(first), String(1 - first)];
    }
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
  if (two) byId("all").className = "quiet";

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
    const span = own.high - own.low, { at } = axisOf(own), points = Array.from({ length: 41 }, (_, k) => at(k / 40));
    for (const cut of own.cuts) points.push(cut, cut + 1e-9 * span);
    return points.filter((x) => x >= own.low && x <= own.high).sort((x, y) => x - y);
  }

  // What the terms of one column add to each class, for a cell of it.
  function amountsOf(terms, j, cell, leaf) {
    const cells = [], told = leaf.base.map(() => 0);
    cells[j] = cell;
    for (const term of terms) (scoring.amounts(term, cells) || []).forEach((amount, c) => { told[c] += amount; });
    return told;
  }

  // All that an attribute can say: a table of its values or groups, a curve along its numbers;
  // relative to the average row if it is not told how amounts become contributions.
  function possible(j, terms, leaf, first, second, total = null) {
    const own = attributes[j], mean = scoring.meanOf(leaf, j);
    const evidence = (row) => evidenceFor(total ? total(row) : row.map((amount, c) => amount - mean[c]), leaf, first, second);
    if (own.kind === "interaction") {
      const table = terms.length ? terms[0].rows.flat().map(evidence) : own.labels.map(() => 0);
      return { table, all: table };
    }
    const ofCell = (cell) => evidence(amountsOf(terms, j, cell, leaf));
    if (isList(own)) return { all: (own.flag || isAveraged(leaf, j) ? own.values : [...own.values, null]).map(ofCell) };
    const points = along(own), amounts = points.map(ofCell);
    return { points, amounts, all: amounts };
  }

  // That changes with the classes that are compared, and with which columns are unknown. Curves
  // may come a moment after the answer.
  let compared = null, painted = null, scales = null, toPaint = [];
  const largest = (amounts, least) => amounts.reduce((a, b) => Math.max(a, Number.isFinite(b) ? Math.abs(b) : 0), least);
  function compare(leaf, first, second, open) {
    const key = [byId("part").value, first, second].join(), pattern = `${key} ${open.map(Number).join("")}`;
    if (pattern === painted) return;
    const isAtOnce = painted === null, paints = rows.filter((row) => row.paint).map((row) => () => row.paint({ ...saidOf(row.j), limit: scales.limit }));
    if (key !== compared) scales = null;
    toPaint = [...(scales === null ? [() => scale(leaf, first, second)] : []), ...paints];
    [compared, painted] = [key, pattern];
    if (isAtOnce) { for (const task of toPaint) task(); toPaint = []; }
  }
  // How much interactions can say: the darkest tile of all maps.
  function scale(leaf, first, second) {
    const terms = leaf.terms.filter(({ kind }) => kind === "interaction");
    scales = { limit: largest(terms.flatMap((term) => possible(scoring.attributeOf(term), [term], leaf, first, second).table), 1e-9) };
  }

  function drawReason({ bar, number }, amount, far, text, title) {
    const part = 50 * Math.max(-1, Math.min(1, amount / far));
    bar.className = amount < 0 ? "negative" : "";
    bar.style.insetInlineStart = `${Math.min(50, 50 + part)}%`;
    bar.style.width = `${Math.abs(part)}%`;
    number.style.insetInlineStart = amount < 0 ? "auto" : `calc(${50 + part}% + .4em)`;
    number.style.insetInlineEnd = amount < 0 ? `calc(${50 - part}% + .4em)` : "auto";
    number.textContent = text;
    number.title = title;
  }

  // What is compared: a class of a part against another, or against the mean of the others.
  function chosen(probabilities, shown) {
    const { leaf } = parts[Number(byId("part").value)];
    const own = leaf.classes.map((c) => probabilities[c]);
    const value = byId("target").value;
    let first = value === "best" ? own.indexOf(Math.max(...own)) : Number(value);
    if (parts.length === 1) first = leaf.classes.indexOf(shown);
    const rest = own.map((p, k) => (k === first ? -1 : p)), against = byId("against").value;
    let second = against === "mean" ? null : against === "next" ? rest.indexOf(Math.max(...rest)) : Number(against);
    if (leaf.classes.length === 2) second = 1 - first; else if (second === first) second = null;
    return { leaf, first, second };
  }

  // Lines of the reasons that fit beside the answer; the smaller ones are one line.
  const MOST_PHONE = 10, LINE = 27;
  let lines = null;
  const room = () => (state.isAll || matchMedia("print").matches ? Infinity : lines ?? (lines = measured()));
  function measured() {
    if (innerWidth < 900) return MOST_PHONE;
    const others = ["answer", "next", "all"].reduce((sum, id) => sum + (byId(id).className === "quiet" ? 0 : byId(id).offsetHeight + 12), 0);
    return Math.max(6, Math.floor((innerHeight - others - 190) / LINE));
  }

  // What attributes add to the scores of a row, and the scores that this begins and ends with.
  // It begins with the mean over the training rows; if some columns are averaged over, with the
  // base rates, and what the average itself adds is left over.
  function sumOf(leaf, cells) {
    const told = scoring.contributions(leaf, cells, attributes.length);
    if (scoring.isPartial(leaf, cells)) {
      const scores = (p) => p.map((x) => Math.log(x) / leaf.scale);
      return { told, isPartial: true, open: scoring.meanScores(leaf, cells).at.open, start: scores(ratesOf(leaf)), end: scores(scoring.posterior(leaf, cells)) };
    }
    const start = scoring.baseOf(leaf).map((score, c) => attributes.reduce((sum, _, j) => sum + scoring.meanOf(leaf, j)[c], score));
    return { told, isPartial: false, open: told.map(() => false), start, end: plus(start, told) };
  }
  const plus = (scores, rows, sign = 1) => scores.map((score, c) => rows.reduce((sum, row) => sum + sign * row[c], score));

  function explain(probabilities, shown) {
    const { leaf, first, second } = state.compared = chosen(probabilities, shown);
    const evidence = (row) => evidenceFor(row, leaf, first, second);
    const { told, isPartial, open, start: scores, end: whole } = sumOf(leaf, values);
    const amounts = state.evidence = told.map(evidence);
    compare(leaf, first, second, open);
    const chance = (sums) => scoring.softmax(sums.map((s) => s * leaf.scale))[first], p = chance(whole);
    const isOpen = (j, cells = values) => (isInteraction(j) ? attributes[j].sides.some((side) => cells[side.column] === null) : cells[j] === null);
    for (const row of rows) {
      const amount = amounts[row.j], isUnknown = isOpen(row.j);
      const now = isInteraction(row.j) ? attributes[row.j].sides.map((side) => values[side.column]).join() : values[row.j];
      if (row.last !== now) row.show();
      row.last = now;
      put(row.number, "textContent", open[row.j] ? "" : Math.abs(amount) < 0.005 ? "—" : isShare() ? say(amount, chance(plus(whole, [told[row.j]], -1)), p) : say(amount));
      row.number.dataset.evidence = String(amount);
      put(row.number, "title", open[row.j] ? "" : `${signed(amount)} ${t("log-odds")}`);
      put(row.field, "className", `${isUnknown ? "unknown" : amount < 0 ? "negative" : "positive"}${row.detail.hidden ? "" : " open"}`);
      put(row.clear.style, "visibility", isUnknown ? "hidden" : "visible");
      showDetail(row);
    }
    const before = state.pinned !== null && byId("difference").checked ? sumOf(leaf, state.pinned) : null;
    const lines = before ? differences(told, before.told, evidence) : ofCase(told, amounts, (j) => isOpen(j) && !open[j]);
    const start = before ? before.end : scores, nOpen = columns.filter((j) => open[j]).length;
    const left = plus(whole, [start, ...(before ? told.map((row, j) => row.map((x, c) => x - before.told[j][c])) : told)], -1);
    averaged.value.textContent = before ? t("unknown columns") : nOpen === 1 ? t("1 unknown column") : t("{n} unknown columns", { n: nOpen });
    lines.last = Math.abs(evidence(left)) > 1e-9 ? [{ reason: averaged, of: left }] : [];
    const rate = isPartial ? ratesOf(leaf)[first] : data.rates === null ? null : data.rates[leaf.classes[first]];
    base.value.textContent = before ? t("Pinned case") : leaf.centre.length && !isPartial ? t("Average row") : rate === null ? t("Prior") : t("Base rate {rate}", { rate: percent(rate) });
    drawLines(lines, start, evidence, chance, leaf);
    const other = second === null ? t("the mean of the others") : classes[leaf.classes[second]];
    const [against, speaksFor] = byId("sides").children;
    const [back, on] = document.documentElement.dir === "rtl" ? ["→", "←"] : ["←", "→"];
    against.textContent = `${back} ${t("against {name}", { name: classes[leaf.classes[first]] })}`;
    speaksFor.textContent = `${t("for {name}", { name: classes[leaf.classes[first]] })} ${on}`;
    byId("sum").textContent = t(leaf.classes.length > 2 ? "Total {sum} for {name} against {other}; among all classes {percent}." : "Total {sum} for {name} against {other}: {percent}.",
      { sum: unit() === "log" ? say(evidence(whole)) : `${t("odds")} ${odds(evidence(whole))}`, name: classes[leaf.classes[first]], other, percent: percent(p) });
  }

  const cellsOf = (j) => (attributes[j].sides || [{ column: j }]).map(({ column }) => textOf(attributes[column], values[column])).join(", ");

  // The known values by falling size; cells that count though they are empty are one line.
  function ofCase(told, amounts, isOpen) {
    const said = rows.filter((row) => Math.abs(amounts[row.j]) > 1e-12), open = said.filter((row) => isOpen(row.j));
    const empty = open.filter((row) => !isInteraction(row.j)).map((row) => attributes[row.j].title), n = empty.length;
    // Of a model that averages over unknown values only cells that were often missing in training count.
    unknown.value.textContent = isAveraging ? t("{names} missing, as in training", { names: empty.join(", ") }) : n === 1 ? t("1 unknown value") : t("{n} unknown values", { n });
    const sum = (c) => open.reduce((total, row) => total + told[row.j][c], 0);
    const made = said.filter((row) => !isOpen(row.j)).map((row) => {
      row.reason.value.textContent = ` = ${cellsOf(row.j)}`;
      return { reason: row.reason, of: told[row.j], amount: amounts[row.j] };
    });
    return { fixed: open.length ? [{ reason: unknown, of: told[0].map((_, c) => sum(c)) }] : [], made };
  }

  // What differs from the case that is pinned.
  function differences(told, before, evidence) {
    const made = rows.map((row) => {
      const of = told[row.j].map((amount, c) => amount - before[row.j][c]), own = attributes[row.j];
      row.reason.value.textContent = isInteraction(row.j) ? ` = ${cellsOf(row.j)}` : `: ${textOf(own, state.pinned[row.j])} → ${textOf(own, values[row.j])}`;
      return { reason: row.reason, of, amount: evidence(of) };
    });
    return { fixed: [], made: made.filter(({ amount }) => Math.abs(amount) > 1e-12) };
  }

  function drawLines({ fixed: head, made, last }, start, evidence, chance, leaf) {
    made.sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount));
    const most = Math.max(1, room() - head.length - last.length - 1), hidden = made.length > most ? made.slice(most) : [];
    const total = (lines) => leaf.base.map((_, c) => lines.reduce((sum, { of }) => sum + of[c], 0));
    const lines = [...head, ...(hidden.length ? made.slice(0, most) : made), ...(hidden.length ? [{ reason: rest, of: total(hidden) }] : []), ...last];
    // Of many classes a step towards a class may be one away from the runner-up: beside
    // percentages bars are about all other classes.
    const isOfAll = isShare() && leaf.classes.length > 2, logit = (x) => Math.log(Math.max(x, 1e-12) / Math.max(1 - x, 1e-12));
    let scores = start, p = chance(scores);
    const first = p, steps = lines.map(({ reason, of }) => {
      const before = p;
      scores = scores.map((score, c) => score + of[c]);
      p = chance(scores);
      return { reason, p: before, next: p, amount: isOfAll ? logit(p) - logit(before) : evidence(of) };
    });
    const begin = isOfAll ? logit(first) : evidence(start);
    // The axis is made for the reasons; what they begin with and the rest may end at its edge.
    const isReason = new Set(made.slice(0, most).map(({ reason }) => reason)), own = steps.filter(({ reason }) => isReason.has(reason));
    const top = own.length ? largest(own.map(({ amount }) => amount), 0.15) : Infinity;
    const far = Math.min(1e6, 2 * top, largest([begin, ...steps.map(({ amount }) => amount)], 0.3)) * 1.02;
    drawReason(base, begin, far, isShare() ? percent(first) : say(begin), percent(first));
    for (const { reason, p: before, next, amount } of steps) {
      drawReason(reason, amount, far, isShare() ? `→ ${percent(next)}` : say(amount), `${percent(before)} → ${percent(next)}, ${t("log-odds")} ${signed(amount)}`);
    }
    rest.value.textContent = t("and {n} smaller", { n: hidden.length });
    children(byId("reasons"), [base.line, ...lines.map(({ reason }) => reason.line)]);
    byId("more").hidden = !hidden.length && !state.isAll;
    byId("more").textContent = state.isAll ? t("Show fewer") : t("Show all {n}", { n: made.length });
  }

  // ----------------------------------------------------------------------- the answer

  const FEW = 5;
  function showClasses(probabilities, best) {
    posteriorRows.forEach(({ row, bar, text }, c) => {
      bar.style.width = `${100 * probabilities[c]}%`;
      put(text, "textContent", percent(probabilities[c]));
      text.dataset.probability = String(probabilities[c]);
      put(row, "className", c === best ? "best" : "");
    });
    if (!many) return;
    const wanted = byId("find-class").value.toLowerCase();
    const sorted = classes.map((_, c) => c).sort((a, b) => probabilities[b] - probabilities[a] || a - b);
    const found = sorted.filter((c) => classes[c].toLowerCase().includes(wanted)), isCut = !state.isEvery && !wanted;
    posteriorRows.forEach(({ row }, c) => { row.hidden = !found.includes(c); row.classList.toggle("more", isCut && sorted.indexOf(c) >= FEW); });
    children(byId("posterior").tBodies[0], sorted.map((c) => posteriorRows[c].row));
    byId("no-class").textContent = found.length ? "" : t("No matching class.");
    byId("every").hidden = Boolean(wanted);
    byId("every").textContent = state.isEvery ? t("Show fewer") : t("Show all {n}", { n: classes.length });
  }

  function showAnswer(probabilities, shown) {
    const p = probabilities[shown], known = columns.filter((j) => values[j] !== null).length;
    byId("ask").textContent = byId("shown").value === "best" ? t("Which {target} is it?", { target: asked }) : t("How probable is {target} =", { target: asked });
    byId("name").textContent = byId("name").title = classes[shown];
    byId("percent").textContent = percent(p);
    byId("fill").style.width = `${100 * p}%`;
    byId("rate").hidden = rates === null;
    if (rates !== null) byId("rate").style.insetInlineStart = `${100 * rates[shown]}%`;
    const start = rates === null ? "" : t("Base rate {rate} (dotted).", { rate: percent(rates[shown]) });
    const was = state.pinned === null ? null : scoring.posterior(model, state.pinned)[shown];
    byId("was").hidden = was === null;
    if (was !== null) byId("was").style.insetInlineStart = `${100 * was}%`;
    const pinned = was === null ? "" : t("Pinned case {was}: now {change}.", { was: percent(was), change: `${signed(100 * (p - was), 1)}\u00a0%` });
    const used = informed(), counted = { n: known, m: columns.length, share: percent(used, 0) };
    byId("from").textContent = [t(known > 0 && used < 0.5 ? "{n} of {m} values known, {share} of what the model uses." : "{n} of {m} values known.", counted), start, pinned].join(" ");
    return `${classes[shown]}: ${percent(p)}, ${known === 1 ? t("from 1 known value.") : t("from {n} known values.", { n: known })}`;
  }

  // The share of the variance of the scores that the known values explain. Importances of columns
  // would not do: they do not add up where columns say the same. This share is 0 with nothing
  // known, 1 with all, and never falls when one more value is known.
  const informed = () => (scoring.isPartial(model, values) ? 1 - scoring.meanScores(model, values).at.left : 1);

  // What takes longer: the range, what to ask next, where the answer flips.
  let drawing;
  function showRange(shown) {
    if (drawing === undefined) drawing = spread.prepared(data);
    const found = drawing === null ? null : spread.range(drawing, values, shown);
    // Nearly every row is of another class than a rare one: the middle of its answers is no news.
    const isHidden = found === null || (found[1] < state.probabilities[shown] && columns.every((j) => values[j] === null));
    byId("range").hidden = isHidden;
    byId("could").textContent = "";
    if (isHidden) return;
    byId("range").style.insetInlineStart = `${100 * found[0]}%`;
    byId("range").style.width = `${100 * (found[1] - found[0])}%`;
    byId("range").dataset.ends = JSON.stringify(found);
    byId("could").textContent = t("Once everything is known: {ends} in 80 % of cases (pale).", { ends: ends(...found) });
  }

  function showNext(shown) {
    const found = drawing ? spread.expected(drawing, values, shown).filter(({ j, change }) => columns.includes(j) && change > 5e-4) : [];
    for (const { j, mark, field } of rows) {
      const at = found.length > 0 && found[0].j === j;
      const notes = [at && t("ask next"), attributes[j].shape && shapeOf(attributes[j]), attributes[j].edited && t("edited"), interactionsOf.has(j) && (interactionsOf.get(j).length === 1 ? t("+ 1 interaction") : t("+ {n} interactions", { n: interactionsOf.get(j).length }))];
      mark.textContent = notes.filter(Boolean).join(", ");
      mark.className = at ? "mark asked" : "mark";
      field.dataset.next = String(at);
    }
    const link = ({ j, change }, place) => [place ? ", " : "", button(attributes[j].title, () => {
      byId(`attribute-${j}`).scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
      byId(`value-${j}`).focus({ preventScroll: true });
    }, { className: "link" }), " ", element("span", { className: "whole", textContent: t("(moves it by ± {percent})", { percent: percent(change) }) })];
    byId("asking").replaceChildren(...(found.length ? [`${t("Most informative next question:")} `, ...found.slice(0, 3).flatMap(link)]
      : [columns.every((j) => values[j] !== null) ? t("Everything is known.") : t("No further question would change the answer much.")]));
  }

  const showFlips = (row) => row.flip(spread.flips(model, values, attributes[row.j], row.j, along(attributes[row.j])), classes);

  // ------------------------------------------------------------ what would have to change

  let isTouched = false;
  function fillWish() {
    if (isTouched) return;
    const p = state.probabilities[state.shown];
    byId("wished").value = String(two ? state.shown : classes.map((_, c) => c).filter((c) => c !== state.shown).reduce((a, b) => (state.probabilities[b] > state.probabilities[a] ? b : a)));
    byId("side").value = two ? (p > 0.5 ? "under" : "over") : "win";
    byId("level").value = "50";
    byId("wish-share").hidden = byId("side").value === "win";
  }

  function goal() {
    const target = Number(byId("wished").value), side = byId("side").value, level = Number(byId("level").value) / 100;
    if (side === "win") return { target, logit: null };
    if (two && level === 0.5) return { target: side === "under" ? 1 - target : target, logit: null };
    return { target, logit: Math.log(level / (1 - level)), below: side === "under" };
  }

  function showChanges() {
    const level = Number(byId("level").value);
    if (byId("side").value !== "win" && !(level > 0 && level < 100)) return;
    const found = changes.find(data, values, goal(), state.locked), c = Number(byId("wished").value);
    const lock = (j, isLocked) => () => { if (isLocked) state.locked.add(j); else state.locked.delete(j); showChanges(); };
    const items = found.made.map(({ j, cell }) => element("li", {}, element("b", { textContent: attributes[j].title }),
      `: ${textOf(attributes[j], values[j])} → ${attributes[j].tries || attributes[j].kind === "category" ? textOf(attributes[j], cell) : attributes[j].labels[scoring.intervalOf(attributes[j].edges, cell)]} `,
      button(t("keep as it is"), lock(j, true), { className: "link" })));
    const kept = [...state.locked].map((j) => button(`${attributes[j].title} ×`, lock(j, false), { className: "chip", title: t("may change again") }));
    const isThere = found.found && !found.made.length;
    const head = isThere ? t("Already so.") : found.found ? t("{name} would be {percent}:", { name: classes[c], percent: percent(found.after[c]) })
      : t("No allowed change is enough; {percent} at most.", { percent: percent(found.after[c]) });
    const apply = button(t("Set these values"), () => { found.made.forEach(({ j, cell }) => { values[j] = cell; }); update(); });
    byId("changes").replaceChildren(element("p", { textContent: head }), ...(found.found && items.length ? [element("ul", {}, ...items), apply] : []),
      ...(kept.length ? [element("p", {}, `${t("Kept")}: `, ...kept)] : []));
  }

  // ------------------------------------------------------------------------ all together

  // One after the other, with a pause for the browser after each frame's time.
  const FRAME = 12;
  let waiting = 0;
  function inTurn(tasks) {
    const end = performance.now() + FRAME;
    while (tasks.length && performance.now() < end) tasks.shift()();
    if (tasks.length) waiting = setTimeout(() => inTurn(tasks), 0);
  }
  function update() {
    const probabilities = state.probabilities = scoring.posterior(model, values);
    const best = probabilities.indexOf(Math.max(...probabilities));
    const shown = state.shown = byId("shown").value === "best" ? best : Number(byId("shown").value);
    showClasses(probabilities, best);
    const text = showAnswer(probabilities, shown);
    explain(probabilities, shown);
    fillWish();
    for (const id of ["known", "asking", "gauge"]) byId(id).classList.add("stale");
    // A moving slider would otherwise be read out, and drawn for, at every pixel.
    clearTimeout(waiting);
    waiting = setTimeout(() => inTurn([
      ...toPaint.map((task) => () => { task(); toPaint = toPaint.filter((other) => other !== task); }),
      () => showRange(shown),
      () => sureness.show(values, shown),
      () => { if (byId("changes").hasChildNodes()) showChanges(); },
      () => showNext(shown),
      () => {
        for (const id of ["known", "asking", "gauge"]) byId(id).classList.remove("stale");
        byId("summary").textContent = text;
        cases.writeLink(values, state.pinned);
      },
      ...rows.filter((row) => row.flip).map((row) => () => showFlips(row)),
    ]), 200);
  }

  const redraw = () => { compared = painted = null; drawing = undefined; update(); };
  function setAll(found) {
    found.forEach((value, j) => { values[j] = value; });
    update();
  }
  function pin(found) {
    state.pinned = found;
    byId("pin").textContent = found === null ? t("Pin this case") : t("Unpin");
    byId("pin").setAttribute("aria-pressed", String(found !== null));
    byId("difference-choice").hidden = found === null;
    update();
  }

  function filter() {
    const wanted = byId("find").value.toLowerCase();
    let n = 0;
    for (const { j, field } of rows) {
      field.hidden = (isInteraction(j) && !wanted && !state.isUnfolded) || !`${attributes[j].title} ${attributes[j].name} ${attributes[j].group || ""}`.toLowerCase().includes(wanted);
      n += Number(!field.hidden);
    }
    for (const heading of document.querySelectorAll("#attributes h3")) heading.hidden = Boolean(wanted);
    byId("no-match").textContent = n ? "" : t("No match.");
  }
  byId("part").addEventListener("change", () => { fillClasses(); update(); });
  for (const id of ["shown", "target", "against", "difference"]) byId(id).addEventListener("change", update);
  byId("shown").addEventListener("change", () => { isTouched = false; update(); });
  byId("unit").addEventListener("change", () => {
    try { localStorage.setItem("steelyard-unit", unit()); } catch { /* not kept */ }
    update();
  });
  for (const id of ["wished", "side", "level"]) byId(id).addEventListener("input", () => {
    isTouched = true;
    byId("wish-share").hidden = byId("side").value === "win";
  });
  byId("wish").addEventListener("submit", (event) => { event.preventDefault(); showChanges(); });
  byId("reset").addEventListener("click", () => setAll(nothing));
  byId("more").addEventListener("click", () => { state.isAll = !state.isAll; update(); });
  byId("every").addEventListener("click", () => { state.isEvery = !state.isEvery; update(); });
  byId("pin").addEventListener("click", () => pin(state.pinned === null ? [...values] : null));
  byId("print").addEventListener("click", () => window.print());
  byId("attributes").addEventListener("submit", (event) => event.preventDefault());
  byId("find").addEventListener("input", filter);
  byId("unfold").addEventListener("click", () => {
    state.isUnfolded = !state.isUnfolded;
    byId("unfold").setAttribute("aria-pressed", String(state.isUnfolded));
    filter();
  });
  byId("find-class").addEventListener("input", update);
  window.addEventListener("resize", () => { lines = null; update(); });
  window.addEventListener("beforeprint", update);
  window.addEventListener("afterprint", update);
  fillClasses();
  cases.connect(values, setAll, pin);
  if (typeof editing !== "undefined") editing.connect(redraw, () => state.shown);
  cases.readLink();
  update();
})();
