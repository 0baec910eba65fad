"use strict";
// For the author: curves are changed as `steelyard edit` does it, with a file to sign.
const editing = (() => {
  const { button, byId, data, element, fixed, percent, signed, t } = controls;
  const { attributes, classes, model, steps } = data, two = classes.length === 2;
  const original = structuredClone({ base: model.base, terms: model.terms, centre: model.centre, marginal: model.marginal });
  let edits = [], redraw = null, target = () => 1;

  const evidenceOf = (row, c) => (row.length * row[c] - row.reduce((a, b) => a + b, 0)) / (row.length - 1);
  const termsOf = (j) => model.terms.filter((term) => scoring.attributeOf(term) === j);

  const zeros = () => model.base.map(() => 0);
  // What the terms of a column add up to, for a cell and at all its steps.
  const sumOf = (j, cell) => {
    const cells = [];
    cells[j] = cell;
    return termsOf(j).reduce((row, term) => (scoring.amounts(term, cells) || []).reduce((out, amount, c) => { out[c] += amount; return out; }, row), zeros());
  };
  const curveOf = (j) => (attributes[j].kind === "number" ? steps[j].middles : attributes[j].values).map((cell) => sumOf(j, cell));

  // Whether a column lost the shape that constraints give it, as `edited` sees it.
  function isBroken(j) {
    const [kind, target] = steps[j].must, sign = ["decreasing", "concave", "valley"].includes(kind) ? -1 : 1, rows = curveOf(j);
    const odds = rows.map((row) => row.filter((_, d) => d !== target).map((x) => sign * (row[target] - x)));
    let heights = odds.slice(1).map((row, k) => row.map((x, d) => x - odds[k][d]));
    const goesUp = (k) => heights[k].every((x) => x >= -1e-9), goesDown = (k) => heights[k].every((x) => x <= 1e-9);
    if (kind === "convex" || kind === "concave") {
      // Bends are at the finest cut points; others have no step.
      const { fine } = steps[j], edges = fine.filter((k) => k < steps[j].edges.length).map((k) => steps[j].edges[k]);
      if (heights.some((row, k) => !fine.includes(k) && row.some((x) => Math.abs(x) > 1e-9))) return true;
      heights = fine.map((k) => heights[k]);
      const ends = edges.length > 1 ? [2 * edges[0] - edges[1], ...edges, 2 * edges.at(-1) - edges.at(-2)] : [];
      const gaps = heights.map((_, k) => (ends.length ? (ends[k + 2] - ends[k]) / 2 : 1));
      return heights.slice(1).some((row, k) => row.some((x, d) => x - (heights[k][d] / gaps[k]) * gaps[k + 1] < -1e-9));
    }
    let turn = heights.findIndex((_, k) => !goesUp(k));
    if (turn < 0) turn = heights.length;
    return turn < heights.length && (!["peak", "valley"].includes(kind) || heights.some((_, k) => k >= turn && !goesDown(k)));
  }
  const broken = () => Object.keys(steps).map(Number).filter((j) => steps[j].must && isBroken(j));

  // One term of steps in place of all of a column.
  function inSteps(j) {
    const own = steps[j], isNumber = attributes[j].kind === "number", terms = termsOf(j);
    if (terms.length === 1 && terms[0].isSteps) return terms[0];
    const rows = curveOf(j), missing = own.missing === 0 ? zeros() : own.missing > rows.length ? sumOf(j, null) : rows[own.missing - 1];
    const made = { kind: isNumber ? "bins" : "lookup", column: j, edges: own.edges, values: attributes[j].values, rows, missing, isSteps: true };
    model.terms = [...model.terms.filter((term) => !terms.includes(term)), made];
    return made;
  }

  // The nearest curve that never falls, by pooling neighbours.
  function rising(amounts, weights) {
    const pools = [];
    amounts.forEach((amount, k) => {
      pools.push({ sum: amount * Math.max(weights[k], 1e-9), weight: Math.max(weights[k], 1e-9), n: 1 });
      while (pools.length > 1 && pools.at(-2).sum / pools.at(-2).weight >= pools.at(-1).sum / pools.at(-1).weight) {
        const last = pools.pop(), before = pools.at(-1);
        before.sum += last.sum; before.weight += last.weight; before.n += last.n;
      }
    });
    return pools.flatMap(({ sum, weight, n }) => Array(n).fill(sum / weight));
  }

  function changed(edit, old, weights, numbers) {
    if ("set" in edit) return old.map(() => edit.set);
    if (edit.flatten || edit.merge) {
      const total = weights.reduce((a, b) => a + b, 0), own = total > 0 ? weights : weights.map(() => 1);
      const mean = old.reduce((sum, x, k) => sum + x * own[k], 0) / own.reduce((a, b) => a + b, 0);
      return old.map(() => mean);
    }
    if (edit.interpolate) {
      const last = old.length - 1, wide = numbers[last] - numbers[0];
      return old.map((_, k) => (wide ? old[0] + ((old[last] - old[0]) * (numbers[k] - numbers[0])) / wide : old[0]));
    }
    const sign = edit.monotone === "increasing" ? 1 : -1;
    return rising(old.map((x) => sign * x), weights).map((x) => sign * x);
  }

  // Steps that an edit is about: bins whose middle is in its range, or its values.
  function placesOf(edit, j) {
    if (edit.values) return edit.values.map((value) => attributes[j].values.indexOf(value));
    const low = edit.from ?? -Infinity, high = edit.to ?? Infinity;
    return steps[j].middles.flatMap((x, k) => (x >= low && x <= high ? [k] : []));
  }

  // Rows with unknown cells are answered by the moments of contributions, which an edit changes.
  function apply(edit) {
    // Missing cells are a step as well, if they count in training.
    const j = placeOf(edit), stepsNow = () => (steps[j] ? [...curveOf(j), sumOf(j, null)] : undefined), before = stepsNow(), base = scoring.baseOf(model);
    applyToTerms(edit, j);
    if (!model.marginal) return;
    const weights = steps[j] && [...steps[j].weights, model.marginal.value_odds[j] === 0 ? 0 : steps[j].rows_missing];
    model.marginal = marginal.edited(model.marginal, j, { before, after: stepsNow(), weights, factor: edit.remove ? 0 : edit.scale ?? 1 },
      { before: base, after: scoring.baseOf(model) }, model.scale);
  }
  const placeOf = (edit) => attributes.findIndex((own) => own.name === (edit.column ?? edit.interaction.join(" × ")));

  function applyToTerms(edit, j) {
    if (edit.remove || "scale" in edit) {
      const factor = edit.remove ? 0 : edit.scale, times = (row) => row.map((x) => x * factor);
      for (const term of termsOf(j)) {
        if (term.kind === "density") term.weight = times(term.weight);
        else if (term.kind === "interaction") term.rows = term.rows.map((line) => line.map(times));
        else [term.rows, term.missing] = [term.rows.map(times), times(term.missing)];
      }
      const centre = scoring.meanOf(model, j);
      model.base = model.base.map((b, c) => (b === null ? b : b + (1 - factor) * centre[c]));
      if (model.centre.length) model.centre[j] = times(centre);
      return;
    }
    const c = edit.class === undefined ? 1 : classes.indexOf(edit.class), term = inSteps(j), mean = evidenceOf(scoring.meanOf(model, j), c);
    const places = placesOf(edit, j), old = places.map((k) => model.scale * (evidenceOf(term.rows[k], c) - mean));
    const fresh = changed(edit, old, places.map((k) => steps[j].weights[k]), places.map((k) => steps[j].middles[k]));
    places.forEach((k, i) => { term.rows[k] = term.rows[k].map((x, d) => (d === c ? x + (fresh[i] - old[i]) / model.scale : x)); });
    if (steps[j].missing > 0 && steps[j].missing <= term.rows.length) term.missing = term.rows[steps[j].missing - 1];
  }

  const brokenBefore = broken();
  function replay() {
    Object.assign(model, structuredClone(original));
    for (const edit of edits) {
      apply(edit);
      const [j] = broken().filter((k) => !brokenBefore.includes(k));
      if (j !== undefined) return j;
    }
    redraw();
    show();
    return undefined;
  }
  function add(...more) {
    const before = edits;
    edits = [...edits, ...more.map((edit) => (two || edit.remove || "scale" in edit ? edit : { ...edit, class: classes[target()] }))];
    const j = replay();
    if (j === undefined) return;
    edits = before;
    replay();
    effect.textContent = t("Refused: {name} would no longer be {shape}, as its constraint requires. steelyard edit --break-shapes allows such edits.", { name: attributes[j].title, shape: t(steps[j].must[0]) });
  }

  // ------------------------------------------------------------------------- its effect

  function quality() {
    const { cells, labels } = data.rows;
    const found = cells.map((row, i) => ({ p: scoring.posterior(model, row)[labels[i]], isRight: scoring.winner(model, row) === labels[i] }));
    return { accuracy: found.filter(({ isRight }) => isRight).length / cells.length,
      loss: found.reduce((sum, { p }) => sum - Math.log(Math.max(p, 1e-15)), 0) / cells.length };
  }
  const hasRows = data.rows && data.rows.labels;
  const first = hasRows ? quality() : null;

  const list = element("ol", { id: "edits" }), effect = element("p", { id: "effect", role: "status" });
  const reason = element("input", { id: "reason", type: "text", placeholder: t("why") }), author = element("input", { id: "author", type: "text", placeholder: t("your name") });
  reason.ariaLabel = t("why");
  author.ariaLabel = t("your name");
  const saved = () => edits.map((edit) => ({ ...edit, reason: [reason.value.trim(), author.value.trim() && `(${author.value.trim()})`].filter(Boolean).join(" ") }));
  const save = button(t("Save edits.json"), () => {
    if (!reason.value.trim() || !author.value.trim()) { effect.textContent = t("Give a reason and your name: both are stored with the model."); return; }
    cases.save("edits.json", JSON.stringify(saved(), null, 2), "application/json");
  }, { id: "save-edits" });
  const undo = button(t("Undo"), () => { edits = edits.slice(0, -1); replay(); }, { id: "undo" });
  const card = element("section", { id: "editing", className: "card" }, element("h2", { textContent: t("Edits"), id: "editing-title" }), list, effect,
    element("p", { className: "bar" }, undo, reason, author, save), element("p", { className: "hint", textContent: t("Then: steelyard edit model.json edits.json -o edited.json") }));
  card.setAttribute("aria-labelledby", "editing-title");

  const inWords = (edit) => {
    const [action] = ["set", "flatten", "interpolate", "monotone", "merge", "remove", "scale"].filter((key) => key in edit);
    const where = edit.values ? edit.values.join(", ") : "from" in edit || "to" in edit ? `${edit.from ?? "…"} – ${edit.to ?? "…"}` : "";
    const how = action === "set" ? ` ${signed(edit.set)}` : action === "monotone" ? ` ${t(edit.monotone)}` : action === "scale" ? ` ${edit.scale}` : "";
    return `${edit.column ?? edit.interaction.join(" × ")} ${where}: ${t(action)}${how}`;
  };
  function show() {
    list.replaceChildren(...edits.map((edit) => element("li", { textContent: inWords(edit) })));
    undo.disabled = save.disabled = !edits.length;
    if (!hasRows) { effect.textContent = t("Add labelled rows to the page to see how edits affect accuracy."); return; }
    const now = quality();
    effect.textContent = t("On {n} rows: accuracy {a} → {b}, log-loss {c} → {d}.", { n: data.rows.cells.length, a: percent(first.accuracy), b: percent(now.accuracy),
      c: fixed(first.loss, 4), d: fixed(now.loss, 4) });
  }

  // ------------------------------------------------------------------ tools of a column

  const chosen = new Map();
  function panel(j) {
    const own = attributes[j], column = { column: own.name };
    const remove = button(t("Remove"), () => add({ ...column, remove: true }));
    const half = button(t("Halve"), () => add({ ...column, scale: 0.5 }));
    if (!steps[j]) return element("p", { className: "bar tools" }, half, remove);
    if (!chosen.has(j)) chosen.set(j, { from: "", to: "", set: "0", values: [] });
    const kept = chosen.get(j);
    const field = (key, label) => {
      const input = element("input", { type: "number", step: "any", value: kept[key], placeholder: label, id: `edit-${key}-${j}` });
      input.ariaLabel = `${own.title}: ${label}`;
      input.addEventListener("input", () => { kept[key] = input.value; });
      return input;
    };
    const value = field("set", t("evidence")), setTo = (where) => button(t("Set"), () => add({ ...column, ...where(), set: Number(kept.set) }));
    if (own.kind === "category") {
      const boxes = controls.shownOf(own).map((label, k) => {
        const box = element("input", { type: "checkbox", checked: kept.values.includes(k) });
        box.addEventListener("change", () => { kept.values = box.checked ? [...kept.values, k] : kept.values.filter((x) => x !== k); });
        return element("label", {}, box, ` ${label}`);
      });
      const where = () => ({ values: (kept.values.length ? kept.values : own.values.map((_, k) => k)).map((k) => own.values[k]) });
      return element("div", { className: "tools" }, element("p", { className: "bar" }, ...boxes),
        element("p", { className: "bar" }, button(t("Join"), () => add({ ...column, ...where(), merge: true })), value, setTo(where), half, remove));
    }
    const where = () => Object.fromEntries(["from", "to"].filter((key) => kept[key] !== "").map((key) => [key, Number(kept[key])]));
    const make = (text, action) => button(text, () => add({ ...column, ...where(), ...action }));
    return element("p", { className: "bar tools" }, field("from", t("from")), field("to", t("to")), value, setTo(where), make(t("Flatten"), { flatten: true }),
      make(t("Straight line"), { interpolate: true }), button(t("Smooth"), () => smooth(j, where())), make(t("Rising"), { monotone: "increasing" }),
      make(t("Falling"), { monotone: "decreasing" }), half, remove);
  }

  // Each bin becomes the mean of its neighbours and itself, by their rows.
  function smooth(j, where) {
    const c = two ? 1 : target(), term = inSteps(j), mean = evidenceOf(scoring.meanOf(model, j), c);
    const old = term.rows.map((row) => model.scale * (evidenceOf(row, c) - mean)), { middles, weights } = steps[j];
    add(...placesOf(where, j).map((k) => {
      const near = [k - 1, k, k + 1].filter((i) => i in old), total = near.reduce((sum, i) => sum + weights[i] + 1e-9, 0);
      const set = near.reduce((sum, i) => sum + old[i] * (weights[i] + 1e-9), 0) / total;
      return { column: attributes[j].name, from: middles[k], to: middles[k], set: Number(set.toFixed(steps[j].must ? 15 : 6)) };
    }));
  }

  // A drag on the curve sets the range that is chosen, or the bin under it.
  function drag(j, x, amount) {
    if (!steps[j]) return;
    const { from, to } = chosen.get(j) || {}, { middles, edges } = steps[j];
    const bin = middles[scoring.intervalOf(edges, x)], isInside = from !== "" && to !== "" && x >= Number(from) && x <= Number(to);
    add({ column: attributes[j].name, ...(isInside ? { from: Number(from), to: Number(to) } : { from: bin, to: bin }), set: Number(amount.toFixed(2)) });
  }

  function connect(again, shown) {
    [redraw, target] = [again, shown];
    byId("result").prepend(card);
    show();
  }

  return { add, connect, drag, panel, saved };
})();
