"use strict";
// Where the answer could go when what is unknown becomes known. A model that averages over
// unknown values knows it: scores are then normal. For others rows are drawn as naive
// Bayes sees them: a class by its present probability, and its unknown values one by one,
// each as often as training rows have it, times what it says about the class.
const spread = (() => {
  const MOST_ROWS = 200, FEWEST_ROWS = 40, MOST_WORK = 2e6, MOST_BEFORE = 2e7;

  // Repeatable numbers between 0 and 1: the same values have the same range.
  function randoms(n) {
    let state = 1;
    return Array.from({ length: n }, () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state / 4294967296;
    });
  }

  const upTo = (amounts) => {
    let sum = 0;
    return amounts.map((amount) => (sum += amount));
  };
  const placeOf = (sums, share) => {
    const at = sums.findIndex((sum) => sum > share * sums[sums.length - 1]);
    return at < 0 ? sums.length - 1 : at;
  };

  // Values of an attribute and the shares of the training rows that have them, or null.
  function valuesOf(own) {
    if (own.kind === "category") return own.shares ? { values: own.values, shares: own.shares } : null;
    if (own.kind !== "number" || !own.histogram || !own.histogram.length) return null;
    const wide = (own.high - own.low) / own.histogram.length;
    const values = own.histogram.map((_, k) => own.low + (k + 0.5) * wide);
    return { values: own.whole ? values.map(Math.round) : values, shares: own.histogram };
  }

  // Whether a model averages over unknown values.
  const isAveraging = (model) => Boolean(model.marginal) && model.marginal.value_odds.includes(0);

  // Standard normal numbers, as many for each row.
  const EIGHT_TENTHS = 1.2815515655446004, MOST_MOVED = 50, STEPS = 24;
  let normals = null;
  function normalRows(n, size) {
    if (normals === null || normals[0].length !== size) {
      const numbers = randoms(2 * n * size);
      normals = Array.from({ length: n }, (_, row) => Float64Array.from({ length: size }, (__, k) => {
        const at = 2 * (row * size + k);
        return Math.sqrt(-2 * Math.log(1 - numbers[at])) * Math.cos(2 * Math.PI * numbers[at + 1]);
      }));
    }
    return normals;
  }

  // Ends of the middle eight tenths of the probability of a class, if scores are normal. The score of the class is moved until its probability has the
  // present answer as its mean: plain naive Bayes has a share in that.
  function rangeOfNormal(model, values, c) {
    const { at, mean } = scoring.meanScores(model, values), now = scoring.posterior(model, values)[c], two = mean.length === 1;
    const { points, log_ratio } = model.marginal, root = at.root.map((row) => row.map((x) => x * model.scale));
    const moved = (by) => mean.map((x, k) => x * model.scale + (two ? (c === 1 ? by : -by) : log_ratio[k] + (k === c ? by : 0)));
    const parts = two ? null : normalRows(MOST_ROWS, mean.length).map((z) => root.map((row) => row.reduce((sum, part, i) => sum + part * z[i], 0)));
    const answers = (scores) => parts.map((part) => scoring.softmax(scores.map((x, k) => x + part[k]))[c]);
    const meanOf = (scores) => (two ? marginal.expected(scores, root, points)[c] : answers(scores).reduce((a, b) => a + b, 0) / parts.length);
    let [low, high] = [-MOST_MOVED, MOST_MOVED];
    for (let step = 0; step < STEPS; step++) {
      const middle = (low + high) / 2;
      if (meanOf(moved(middle)) < now) low = middle; else high = middle;
    }
    const scores = moved(low);
    if (two) {
      const ends = [-1, 1].map((sign) => 1 / (1 + Math.exp(-scores[0] - sign * EIGHT_TENTHS * root[0][0])));
      return c === 1 ? ends : [1 - ends[1], 1 - ends[0]];
    }
    return middleOf(answers(scores).sort((x, y) => x - y));
  }
  const middleOf = (sorted) => [sorted[Math.floor(0.1 * sorted.length)], sorted[Math.ceil(0.9 * sorted.length) - 1]];

  // The expected changes of `expected`, in closed form.
  function expectedOfNormal(model, values, c) {
    const missing = scoring.missingCells(model, values), found = marginal.changes(model.marginal, missing, scoring.posterior(model, values), model.scale, c);
    return found.map((change, j) => ({ j, change })).filter(({ j }) => missing[j]).sort((a, b) => b.change - a.change);
  }

  const workOf = (model) => scoring.leaves(model).reduce((sum, leaf) => sum + (1 + leaf.terms.length) * leaf.base.length, 0);

  // What the functions below need. Of a model that averages over unknown values draws are made
  // if they are asked for: where empty cells count as in training, and others are known.
  function prepared(data) {
    if (!isAveraging(data.model)) return drawn(data);
    let made;
    const draws = (values) => {
      if (!data.order.some((j) => data.attributes[j].kind !== "interaction" && values[j] === null)) return null;
      return made === undefined ? (made = drawn(data)) : made;
    };
    return { model: data.model, draws };
  }

  // How values are drawn within each class, for all attributes; null if that takes too long.
  function drawn({ model, attributes }) {
    const work = workOf(model), n = Math.min(MOST_ROWS, Math.floor(MOST_WORK / work));
    const all = attributes.map(valuesOf), nValues = all.reduce((sum, found) => sum + (found ? found.values.length : 0), 0);
    if (n < FEWEST_ROWS || nValues * work > MOST_BEFORE) return null;
    const nothing = attributes.map(() => null), before = scoring.posterior(model, nothing);
    const columns = all.map((found, j) => {
      if (found === null) return null;
      const along = scoring.along(model, nothing, j), byValue = found.values.map(along.posterior);
      const byClass = before.map((p, c) => upTo(found.shares.map((share, v) => (p > 0 ? (share * byValue[v][c]) / p : share))));
      return { values: found.values, byClass, random: null };
    });
    const numbers = randoms(n * columns.length);
    columns.forEach((column, j) => { if (column) column.random = numbers.slice(n * j, n * (j + 1)); });
    return { model, columns, n };
  }

  const openOf = (columns, values) => columns.flatMap((column, j) => (column && values[j] === null ? [j] : []));

  // Ends of the middle eight tenths of the probability of a class, or null.
  function range(drawing, values, c) {
    const { model, draws } = drawing;
    if (draws) return scoring.isPartial(model, values) ? rangeOfNormal(model, values, c) : draws(values) && range(draws(values), values, c);
    const { columns, n } = drawing, open = openOf(columns, values);
    if (!open.length) return null;
    const sums = upTo(scoring.posterior(model, values));
    const found = Array.from({ length: n }, (_, row) => {
      const of = placeOf(sums, (row + 0.5) / n), cells = [...values];
      for (const j of open) cells[j] = columns[j].values[placeOf(columns[j].byClass[of], columns[j].random[row])];
      return scoring.posterior(model, cells)[c];
    }).sort((x, y) => x - y);
    return middleOf(found);
  }

  // By how much the probability of a class would change on average if one more value were
  // known, for each unknown one, the largest first.
  function expected(drawing, values, c) {
    const { model, draws } = drawing;
    if (draws) return scoring.isPartial(model, values) ? expectedOfNormal(model, values, c) : draws(values) ? expected(draws(values), values, c) : [];
    const { columns } = drawing, now = scoring.posterior(model, values);
    return openOf(columns, values).map((j) => {
      const { values: all, byClass } = columns[j], along = scoring.along(model, values, j);
      const change = all.reduce((sum, value, v) => {
        const chance = now.reduce((of, p, k) => {
          const sums = byClass[k], total = sums[sums.length - 1];
          return of + (total > 0 ? (p * (sums[v] - (v ? sums[v - 1] : 0))) / total : 0);
        }, 0);
        return chance > 0 ? sum + chance * Math.abs(along.posterior(value)[c] - now[c]) : sum;
      }, 0);
      return { j, change };
    }).sort((a, b) => b.change - a.change);
  }

  // Where along a number another class begins to win: at most three places.
  const MOST_FLIPS = 3;
  function flips(model, values, own, j, points) {
    const along = scoring.along(model, values, j);
    const best = (x) => { const logs = along.logs(x); return logs.indexOf(Math.max(...logs)); };
    const winners = points.map(best), places = winners.flatMap((winner, k) => (k && winner !== winners[k - 1] ? [k] : []));
    if (places.length > MOST_FLIPS) return [];
    return places.map((k) => {
      let [low, high, to] = [points[k - 1], points[k], winners[k]];
      for (let i = 0; i < 20; i++) {
        const middle = (low + high) / 2, winner = best(middle);
        if (winner === winners[k - 1]) low = middle; else [high, to] = [middle, winner];
      }
      return { x: high, from: winners[k - 1], to };
    });
  }

  return { expected, flips, prepared, range };
})();
if (typeof module !== "undefined") module.exports = spread;
