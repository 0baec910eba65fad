"use strict";
// What predict_proba computes, from a plan as plain data. Cells of a row are in the order
// of the columns: text, numbers or booleans; null, undefined and NaN are missing.
const scoring = (() => {
  const MAX_DISTANCE = 1e100;
  const FLOOR = 1e-75;
  // In one file after the other script, or in Node beside it.
  const averages = typeof marginal === "undefined" ? require("./marginal.js") : marginal;

  // Complementary error function, to about 1e-14: a series of positive terms for small
  // arguments, a continued fraction for large ones.
  function erfc(x) {
    if (x < 0) return 2 - erfc(-x);
    if (x > 27) return 0;
    const square = x * x;
    if (x < 2) {
      let term = x, sum = x;
      for (let n = 1; term > sum * 1e-17; n++) {
        term *= (2 * square) / (2 * n + 1);
        sum += term;
      }
      return 1 - (2 / Math.sqrt(Math.PI)) * Math.exp(-square) * sum;
    }
    let fraction = 0;
    for (let n = 120; n > 0; n--) fraction = n / 2 / (x + fraction);
    return Math.exp(-square) / Math.sqrt(Math.PI) / (x + fraction);
  }

  // Halves go to the even neighbour, as in NumPy.
  function roundEven(x) {
    const below = Math.floor(x), rest = x - below;
    if (rest !== 0.5) return rest > 0.5 ? below + 1 : below;
    return below % 2 === 0 ? below : below + 1;
  }

  const isMissing = (cell) => cell === null || cell === undefined || Number.isNaN(cell);

  // Booleans and numbers are looked up alike: true is 1.
  const keyOf = (value) => (typeof value === "boolean" ? Number(value) : value);

  // The position of a cell among values; the map of each list of values is made once.
  const maps = new WeakMap();
  function placeOf(values, cell) {
    if (!maps.has(values)) {
      maps.set(values, new Map(values.map((value, k) => [keyOf(value), k])));
    }
    return maps.get(values).get(keyOf(cell));
  }

  // The number of edges below a number: intervals are closed on the right.
  function intervalOf(edges, x) {
    let low = 0, high = edges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (edges[middle] < x) low = middle + 1; else high = middle;
    }
    return low;
  }

  // The group of a cell of one side of an interaction, 0 for a value never seen.
  function groupOf(side, cell) {
    if (isMissing(cell)) return side.missing;
    if (side.values.length) {
      const k = placeOf(side.values, cell);
      return k === undefined ? 0 : side.groups[k];
    }
    return typeof cell === "string" ? 0 : side.groups[intervalOf(side.edges, Number(cell))] || 0;
  }

  function logInterval(distance, scale, step) {
    const near = (distance - 0.5 * step) * scale * Math.SQRT1_2;
    const far = (distance + 0.5 * step) * scale * Math.SQRT1_2;
    return Math.log(Math.max(0.5 * (erfc(near) - erfc(far)), FLOOR));
  }

  function densities(term, x) {
    const { form, mean, scale, constant, weight, depth, limit, step } = term;
    const at = form === "interval" ? roundEven(x / step) * step : x;
    let logs = mean.map((m, c) => {
      if (form === "linear") return Math.min(Math.max((at - m) * scale[c], -limit), limit);
      if (form === "interval") return logInterval(Math.abs(at - m), scale[c], step);
      const t = Math.min(Math.abs(at - m) * scale[c], MAX_DISTANCE);
      return constant[c] - 0.5 * t * t;
    });
    if (form === "relative") {
      const top = Math.max(...logs);
      logs = logs.map((log) => Math.max(log - top, -depth));
    }
    return logs.map((log, c) => weight[c] * log);
  }

  // The contributions of a term to the classes, null if they are 0.
  function amounts(term, cells) {
    if (term.kind === "interaction") {
      const [a, b] = term.sides.map((side) => groupOf(side, cells[side.column]));
      return term.rows[a][b];
    }
    let cell = cells[term.column];
    if (term.kind === "density") {
      if (isMissing(cell)) cell = term.fill;
      return cell === null || typeof cell === "string" ? null : densities(term, Number(cell));
    }
    if (isMissing(cell)) return term.missing;
    if (term.kind === "lookup") {
      const k = placeOf(term.values, cell);
      return k === undefined ? null : term.rows[k];
    }
    return typeof cell === "string" ? null : term.rows[intervalOf(term.edges, Number(cell))];
  }

  const attributeOf = (term) => (term.kind === "interaction" ? term.attribute : term.column);

  // Mean contributions of an attribute over the training rows.
  const meanOf = (leaf, j) => leaf.centre[j] || new Array(leaf.base.length).fill(0);

  // Numbers by class whose channels these are; nothing adds 0.
  const byClass = (rows, leaf) => rows.map((row) => {
    if (row === null) return leaf.base.map(() => 0);
    return row.length === 1 ? [-0.5 * row[0], 0.5 * row[0]] : row;
  });

  // Contributions of each attribute, column or interaction, to the classes of a sum, less their means.
  // In a row with cells that are averaged over they have what a cell says of the missing ones;
  // own contributions are without that.
  function contributions(leaf, cells, nAttributes) {
    if (isPartial(leaf, cells)) return byClass(conditioned(leaf, cells).channels, leaf);
    const rows = Array.from({ length: nAttributes }, (_, j) => meanOf(leaf, j).map((mean) => 0 - mean));
    for (const term of leaf.terms) {
      const row = rows[attributeOf(term)];
      (amounts(term, cells) || []).forEach((amount, c) => { row[c] += amount; });
    }
    return rows;
  }

  const ownContributions = (leaf, cells) => byClass(conditioned(leaf, cells).own, leaf);

  // Once an attribute is known: what it adds with what it says of the columns that are averaged
  // over then, as a function of what its terms add; null if there are no such columns.
  function totalOf(leaf, cells, j) {
    const { marginal: moments } = leaf, own = moments && (j < moments.value_odds.length ? [j] : moments.sides[j - moments.value_odds.length]);
    const missing = moments ? missingCells(leaf, cells).map((is, k) => is && !own.includes(k)) : [];
    if (!missing.some((is, k) => is && moments.value_odds[k] === 0)) return null;
    const at = averages.given(moments, missing);
    return (row) => byClass([averages.totalOf(moments, at, j, row)], leaf)[0];
  }

  // A class that is impossible has null in JSON.
  const baseOf = (leaf) => leaf.base.map((b) => (b === null ? -Infinity : b));

  // Scores with some terms added to them, in place.
  function added(scores, terms, cells) {
    for (const term of terms) {
      const row = amounts(term, cells);
      if (row) for (let c = 0; c < scores.length; c++) scores[c] += row[c];
    }
    return scores;
  }
  const scoresOf = (leaf, cells) => added(baseOf(leaf), leaf.terms, cells);

  function softmax(scores) {
    const top = Math.max(...scores);
    const powers = scores.map((s) => Math.exp(s - top));
    const total = powers.reduce((a, b) => a + b, 0);
    return powers.map((p) => p / total);
  }

  // Of the best, the first in order.
  function firstBest(numbers, order) {
    return order.reduce((best, c) => (numbers[c] > numbers[best] ? c : best), order[0]);
  }

  const winner = (node, cells) => firstBest(
    node.kind === "sum" && !isPartial(node, cells) ? scoresOf(node, cells) : posterior(node, cells), node.order);

  // Which cells of a sum with moments are missing, or categories never seen, by column.
  const readers = new WeakMap();
  function missingCells({ marginal: moments }, cells) {
    if (!readers.has(moments)) readers.set(moments, new Map(moments.plain.terms.map((term) => [term.column, term])));
    const terms = readers.get(moments);
    return moments.value_odds.map((_, j) => {
      const cell = cells[j], term = terms.get(j);
      if (isMissing(cell)) return moments.by_missing[j];
      if (term && term.kind === "lookup") return placeOf(term.values, cell) === undefined;
      return typeof cell === "string";
    });
  }
  const isPartial = (node, cells) => Boolean(node.marginal) &&
    missingCells(node, cells).some((is, j) => is && node.marginal.value_odds[j] === 0);

  // What some terms add to the classes, by attribute; null for attributes that others have.
  function amountsBy(node, terms, cells, isOwn = () => true) {
    const rows = node.marginal.means.map((_, j) => (isOwn(j) ? new Array(node.base.length).fill(0) : null));
    for (const term of terms) {
      const row = rows[attributeOf(term)];
      (amounts(term, cells) || []).forEach((amount, c) => { row[c] += amount; });
    }
    return rows;
  }

  // Of a row with cells that are averaged over: what follows from the others, what these add by
  // channel, and which part of it they add themselves.
  function conditioned(node, cells) {
    const moments = node.marginal, at = averages.given(moments, missingCells(node, cells)), by = amountsBy(node, node.terms, cells);
    return { at, channels: averages.channelsOf(moments, at, by), own: by.map((row, j) => (at.open[j] ? null : averages.addedOf(moments, j, row))) };
  }
  function meanScores(node, cells) {
    const { at, channels } = conditioned(node, cells);
    return { at, mean: averages.sumOf(at.start, channels) };
  }
  function partialPosterior(node, cells) {
    const { at, mean } = meanScores(node, cells);
    return averages.proba(node.marginal, at, mean, scoresOf(node.marginal.plain, cells), node.scale);
  }

  // The same as a function of the cells that differ in column j alone: only its own terms are added up again.
  function partialAlong(node, cells, j) {
    const moments = node.marginal, { plain } = moments, n = moments.value_odds.length;
    const isOwn = (k) => k === j || (k >= n && moments.sides[k - n].includes(j));
    const own = node.terms.filter((term) => isOwn(attributeOf(term)));
    const others = amountsBy(node, node.terms.filter((term) => !own.includes(term)), cells, (k) => !isOwn(k));
    const plainScores = added(baseOf(plain), plain.terms.filter((term) => term.column !== j), cells);
    const plainOwn = plain.terms.filter((term) => term.column === j), means = new Map();
    return (now) => {
      const at = averages.given(moments, missingCells(node, now));
      if (!means.has(at)) means.set(at, averages.sumOf(at.start, averages.channelsOf(moments, at, others)));
      const mean = averages.sumOf(means.get(at), averages.channelsOf(moments, at, amountsBy(node, own, now, isOwn)));
      return averages.proba(moments, at, mean, added([...plainScores], plainOwn, now), node.scale);
    };
  }

  function voted(node, cells) {
    if (node.form === "elkan") {
      const total = node.parts.reduce(
        (sum, part, t) => sum + node.votes[t] * (2 * posterior(part, cells)[1] - 1), 0);
      const second = 1 / (1 + Math.exp(Math.min(Math.max(-total, -700), 700)));
      return [1 - second, second];
    }
    const scores = new Array(node.classes.length).fill(0);
    node.parts.forEach((part, t) => { scores[winner(part, cells)] += node.votes[t]; });
    return softmax(scores);
  }

  // Posterior probabilities of the classes of a node, by functions of the scores of its sums and
  // of the answers of these to rows with cells that are averaged over.
  function posterior(node, cells, scores = scoresOf, partial = partialPosterior) {
    if (node.kind === "sum" && isPartial(node, cells)) return partial(node, cells);
    if (node.kind === "sum") return softmax(scores(node, cells).map((s) => s * node.scale));
    if (node.kind === "vote") return voted(node, cells);
    const out = new Array(node.classes.length).fill(0);
    node.parts.forEach((part, k) => {
      const [share, to] = node.kind === "mixture" ? [node.shares[k], out.map((_, c) => c)] : [1, node.pairs[k]];
      posterior(part, cells, scores, partial).forEach((p, c) => { out[to[c]] += share * p; });
    });
    return node.kind === "mixture" ? out : out.map((p) => p / node.parts.length);
  }

  // The most probable class, and contributions to its log-odds against the next; in a model
  // that is not one sum, what is lost with the cell.
  function reasons(model, cells, nAttributes) {
    const p = posterior(model, cells), [first, second] = p.map((_, c) => c).sort((a, b) => p[b] - p[a]);
    if (model.kind === "sum") {
      const rows = contributions(model, cells, nAttributes);
      return { first, amounts: rows.map((row) => model.scale * (row[first] - row[second])) };
    }
    // A vote may be unanimous; the smallest probability stands for none. Text with \0 was never seen.
    const log = (x) => Math.log(Math.max(x, 2.2250738585072014e-308)), odds = (q) => log(q[first]) - log(q[second]);
    const without = (j) => posterior(model, cells.map((cell, k) => (k === j ? "\0" : cell)));
    return { first, amounts: cells.map((_, j) => odds(p) - odds(without(j))) };
  }

  // The logs of the posterior but for a constant, and the posterior, as functions of the
  // cell of one column: only its own terms are added up again.
  function along(model, cells, j) {
    const reads = (term) => (term.kind === "interaction" ? term.sides.some((side) => side.column === j) : term.column === j);
    const byLeaf = new Map(leaves(model).map((leaf) => {
      const rest = leaf.terms.filter((term) => !reads(term));
      return [leaf, { terms: leaf.terms.filter(reads), scores: added(baseOf(leaf), rest, cells) }];
    }));
    const now = [...cells];
    const scores = (leaf) => added([...byLeaf.get(leaf).scores], byLeaf.get(leaf).terms, now);
    const partials = new Map(), partial = (leaf) => {
      if (!partials.has(leaf)) partials.set(leaf, partialAlong(leaf, cells, j));
      return partials.get(leaf)(now);
    };
    const at = (cell, read) => { now[j] = cell; return read(); };
    const logs = () => (model.kind === "sum" && !isPartial(model, now) ? scores(model).map((s) => s * model.scale) : posterior(model, now, scores, partial).map(Math.log));
    return { logs: (cell) => at(cell, logs), posterior: (cell) => at(cell, () => posterior(model, now, scores, partial)) };
  }

  // All sums in a tree of models, from left to right.
  const leaves = (node) => (node.kind === "sum" ? [node] : node.parts.flatMap(leaves));

  // Days since 1970 of ISO text and its parts, by the clock in whatever zone; null for other text.
  function dateOf(text) {
    const match = /^ *(\d{4})-(\d\d)-(\d\d)(?:[T ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,6})\d*)?)?)?(?:Z|[-+][01]\d(?::?[0-5]\d)?)? *$/.exec(text);
    const [year, month, day, hour, minute, second] = (match || []).slice(1, 7).map((digits) => Number(digits || 0));
    // The constructor takes the years 0 to 99 for those of 1900.
    const at = new Date(0);
    at.setUTCFullYear(year, month - 1, day);
    if (!match || !year || at.getUTCMonth() !== month - 1 || at.getUTCDate() !== day) return null;
    at.setUTCHours(hour, minute, second);
    const micros = Number(BigInt(at.getTime()) * 1000n + BigInt((match[7] || "").padEnd(6, "0")));
    return { day: micros / 86400000000, year, month, weekday: ((at.getUTCDay() + 6) % 7) + 1, hour };
  }

  // A row with the days and parts of dates that are text.
  function withDates(plan, row) {
    const whole = { ...row };
    for (const name of new Set(plan.columns.map((column) => column.date))) {
      if (!name || typeof row[name] !== "string") continue;
      const parts = dateOf(row[name]);
      if (!parts) throw new Error(`Column ${JSON.stringify(name)} takes dates such as 2024-01-31T14:30, got ${JSON.stringify(row[name])}.`);
      for (const column of plan.columns) {
        if (column.date === name) whole[column.name] = parts[column.part];
      }
    }
    return whole;
  }

  // Cells of a row that is an object, in the order of the columns.
  function cellsOf(plan, row) {
    if (!plan.names) plan.names = plan.columns.map((column) => column.name);
    const cells = new Array(plan.columns.length).fill(null);
    for (const [name, cell] of Object.entries(withDates(plan, row))) {
      const j = placeOf(plan.names, name);
      if (j === undefined) throw new Error(`The model has no column ${JSON.stringify(name)}.`);
      cells[j] = isMissing(cell) ? cell : asFitted(plan.columns[j], cell);
      if (!isMissing(cell)) checkCell(name, cells[j], plan.columns[j].cells);
    }
    return cells;
  }

  // The number or truth value that a text states, undefined if it is neither.
  function statedNumber(text) {
    const plain = text.trim();
    if (/^(true|false)$/i.test(plain)) return Number(plain.toLowerCase() === "true");
    const number = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain) ? Number(plain) : NaN;
    const isExact = Number.isFinite(number) && (!/^[-+]?\d+$/.test(plain) || Number.isSafeInteger(number));
    return isExact ? number : undefined;
  }

  // A number and its text are the same category: a cell as the model was fitted to it.
  function asFitted(column, cell) {
    const isText = typeof cell === "string";
    if (column.kind !== "category" || column.cells === "nothing" || isText === (column.cells === "text")) return cell;
    if (isText) return statedNumber(cell) ?? cell;
    if (!column.texts || !["number", "boolean"].includes(typeof cell)) return cell;
    if (!column.textOf) column.textOf = new Map(column.texts.map(([number, text]) => [Number(number), text]));
    // A text that is no category stands for a number never seen.
    return column.textOf.get(Number(cell)) ?? `\0${cell}`;
  }

  function checkCell(name, cell, kind) {
    const isText = typeof cell === "string", isNumber = ["number", "boolean"].includes(typeof cell);
    const fits = kind === "nothing" ? isText || isNumber : kind === "text" ? isText : isNumber;
    if (!fits) throw new Error(`Column ${JSON.stringify(name)} takes ${kind}, got a ${typeof cell}.`);
    if (isNumber && !Number.isFinite(Number(cell))) {
      throw new Error(`Column ${JSON.stringify(name)} takes finite numbers, got ${cell}.`);
    }
  }

  return { along, amounts, attributeOf, baseOf, cellsOf, contributions, dateOf, erfc, groupOf, intervalOf, isPartial, leaves, meanOf, meanScores, missingCells, ownContributions, posterior,
    reasons, roundEven, scoresOf, softmax, totalOf, winner };
})();
if (typeof module !== "undefined") module.exports = scoring;
