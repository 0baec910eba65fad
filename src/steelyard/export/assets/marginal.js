"use strict";
// Rows with missing cells: means over what these cells may be, as in marginal.py.
const marginal = (() => {
  const MAX_KEPT = 4e6;
  // Means of the eighths of a normal distribution, those above 0.
  const EIGHTHS = [0.1579763048, 0.491349357, 0.8953843401, 1.6468282414];
  const dot = (a, b) => { let sum = 0; for (let k = 0; k < a.length; k++) sum += a[k] * b[k]; return sum; };

  // The difference of two classes, or what differs from the mean of more.
  function contrast(values) {
    if (values.length === 2) return [values[1] - values[0]];
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    return values.map((x) => x - mean);
  }

  // The lower triangle whose product with its transpose is a matrix, by Cholesky.
  function triangle(matrix) {
    const n = matrix.length, lower = matrix.map((row) => Float64Array.from(row));
    for (let j = 0; j < n; j++) {
      for (let i = j; i < n; i++) {
        let x = lower[i][j];
        for (let k = 0; k < j; k++) x -= lower[i][k] * lower[j][k];
        lower[i][j] = i === j ? Math.sqrt(x) : x / lower[j][j];
      }
    }
    return lower;
  }

  // Solutions of a triangle, and of the matrix that it is of, for one right side.
  function forward(lower, right) {
    const x = Float64Array.from(right);
    for (let i = 0; i < x.length; i++) {
      for (let k = 0; k < i; k++) x[i] -= lower[i][k] * x[k];
      x[i] /= lower[i][i];
    }
    return x;
  }
  function solve(lower, right) {
    const x = forward(lower, right);
    for (let i = x.length - 1; i >= 0; i--) {
      for (let k = i + 1; k < x.length; k++) x[i] -= lower[k][i] * x[k];
      x[i] /= lower[i][i];
    }
    return x;
  }

  // A symmetric matrix with other eigenvalues, a function of those that it has, by Jacobi's rotations.
  const rootOf = (matrix) => spectral(matrix, (values) => values.map((x) => Math.sqrt(Math.max(x, 0))));
  const inverseOf = (matrix) => spectral(matrix, (values) => values.map((x) => (x > 1e-12 * Math.max(...values) ? 1 / x : 0)));
  function spectral(matrix, change) {
    const n = matrix.length;
    const a = matrix.map((row, i) => Float64Array.from(row, (x, j) => (x + matrix[j][i]) / 2));
    // Rows of vectors are eigenvectors.
    const vectors = a.map((_, i) => Float64Array.from(a, (__, j) => Number(i === j)));
    const turn = (x, y, c, s) => {
      for (let k = 0; k < n; k++) { const u = x[k], v = y[k]; x[k] = c * u - s * v; y[k] = s * u + c * v; }
    };
    for (let round = 0; round < 100; round++) {
      let rest = 0, all = 0;
      for (let i = 0; i < n; i++) { all += a[i][i] ** 2; for (let j = 0; j < i; j++) rest += a[i][j] ** 2; }
      // Answers are even in the root: an error of a variance counts, not that of its root.
      if (rest <= 1e-28 * all) break;
      for (let p = 0; p < n; p++) {
        for (let q = p + 1; q < n; q++) {
          if (a[p][q] === 0) continue;
          const angle = (a[q][q] - a[p][p]) / (2 * a[p][q]);
          const t = (angle < 0 ? -1 : 1) / (Math.abs(angle) + Math.hypot(angle, 1));
          const c = 1 / Math.hypot(t, 1), s = t * c;
          for (let k = 0; k < n; k++) { const u = a[k][p], v = a[k][q]; a[k][p] = c * u - s * v; a[k][q] = s * u + c * v; }
          turn(a[p], a[q], c, s);
          turn(vectors[p], vectors[q], c, s);
        }
      }
    }
    const out = a.map(() => new Array(n).fill(0));
    const values = change(a.map((row, k) => row[k]));
    vectors.forEach((v, k) => {
      for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) out[i][j] += values[k] * v[i] * v[j];
    });
    return out;
  }

  // Which attributes are not observed, by the missing cells of a row.
  function openOf(moments, missing) {
    const odds = moments.value_odds, averaged = odds.flatMap((x, j) => (x === 0 ? [j] : []));
    const share = averaged.filter((j) => missing[j]).length / averaged.length;
    const open = missing.map((is, j) => is && odds[j] !== null && odds[j] < share);
    return [...open, ...moments.sides.map((sides) => sides.some((j) => open[j]))];
  }

  // Sums over observed attributes of products of their loadings, in units of their noise.
  function information(moments, open) {
    const rank = moments.loadings[0][0].length, out = Array.from({ length: rank }, (_, a) => Float64Array.from({ length: rank }, (__, b) => Number(a === b)));
    moments.loadings.forEach((rows, j) => {
      if (open[j]) return;
      rows.forEach((row, c) => {
        for (let a = 0; a < rank; a++) {
          const x = row[a] / moments.noise[j][c];
          for (let b = 0; b < rank; b++) out[a][b] += x * row[b];
        }
      });
    });
    return out;
  }

  // What follows from the observed attributes; kept for each set of missing cells, up to some numbers.
  const kept = new WeakMap();
  function given(moments, missing) {
    if (!kept.has(moments)) kept.set(moments, new Map());
    const byPattern = kept.get(moments), key = missing.map(Number).join("");
    if (!byPattern.has(key)) {
      if (byPattern.size * moments.noise.length * moments.start.length ** 2 > MAX_KEPT) byPattern.clear();
      byPattern.set(key, condition(moments, missing));
    }
    return byPattern.get(key);
  }
  // The covariance of the sum of the open contributions, given the others.
  function covariance(moments, open) {
    const { loadings, noise, start } = moments;
    const total = start.map((_, c) => loadings[0][0].map((__, a) => loadings.reduce((sum, rows, j) => (open[j] ? sum + rows[c][a] : sum), 0)));
    const lower = triangle(information(moments, open)), solved = total.map((row) => solve(lower, row));
    const variance = total.map((row, c) => solved.map((column, k) => dot(row, column) + (c === k ? noise.reduce((sum, of, j) => (open[j] ? sum + of[c] : sum), 0) : 0)));
    return { lower, solved, total, variance };
  }
  function condition(moments, missing) {
    const { loadings, noise, start, shift } = moments, open = openOf(moments, missing);
    const { lower, solved, total, variance } = covariance(moments, open);
    const weights = loadings.map((rows, j) => (open[j] ? null : rows.map((row, c) => solved.map((column, k) => dot(row, column) / noise[j][c] + Number(c === k)))));
    const left = variance.reduce((sum, row, c) => sum + row[c], 0) / moments.variance;
    return { open, lower, total, variance, weights, left, start: start.map((x, c) => x + left * shift[c]), root: rootOf(variance), ...plainPart(moments, open, left) };
  }

  // The share of naive Bayes, all if a single column is observed, and the power of its evidence:
  // columns that say the same within classes count once.
  function plainPart({ value_odds: odds, in_plain: inPlain, plain_loadings: loadings, plain_noise: noise }, open, left) {
    const used = odds.flatMap((x, j) => (x === null ? [] : [j])), seen = used.filter((j) => !open[j]), plain = seen.filter((j) => inPlain[j]);
    const n = seen.length, share = n === 1 ? 1 : Math.min(Math.cbrt(((used.length - n) / Math.max(used.length - 1, 1)) * left), 1);
    const rest = plain.reduce((sum, j) => sum + noise[j], 0), sums = loadings[0].map((_, a) => plain.reduce((sum, j) => sum + loadings[j][a], 0));
    const together = dot(sums, sums) + rest, apart = plain.reduce((sum, j) => sum + dot(loadings[j], loadings[j]), rest);
    return { share: (share * plain.length) / Math.max(n, 1), power: Math.min(apart / Math.max(together, 1e-300), 1) };
  }

  // What attributes add by channel, with what they say of the missing ones; null for missing
  // attributes, and for those without amounts.
  const addedOf = (moments, j, amounts) => contrast(amounts).map((x, c) => x - moments.means[j][c]);
  function channelsOf(moments, at, amounts) {
    return at.weights.map((weights, j) => (weights === null || !amounts[j] ? null : totalOf(moments, at, j, amounts[j])));
  }
  function totalOf(moments, at, j, amounts) {
    const added = addedOf(moments, j, amounts);
    return at.start.map((_, k) => added.reduce((sum, x, c) => sum + x * at.weights[j][c][k], 0));
  }
  const sumOf = (start, channels) => start.map((x, k) => channels.reduce((sum, row) => (row === null ? sum : sum + row[k]), x));

  function expected(mean, root, points) {
    if (mean.length === 1) {
      const second = points.reduce((sum, [node, weight]) => sum + weight / (1 + Math.exp(-(mean[0] + root[0][0] * node))), 0);
      return [points.reduce((sum, [node, weight]) => sum + weight / (1 + Math.exp(mean[0] + root[0][0] * node)), 0), second];
    }
    const out = mean.map(() => 0), scores = new Float64Array(mean.length);
    for (const axis of root) {
      for (const [radius, weight] of points) {
        for (const signed of [radius, -radius]) {
          let top = -Infinity, total = 0;
          for (let c = 0; c < mean.length; c++) { scores[c] = mean[c] + signed * axis[c]; if (scores[c] > top) top = scores[c]; }
          for (let c = 0; c < mean.length; c++) { scores[c] = Math.exp(scores[c] - top); total += scores[c]; }
          for (let c = 0; c < mean.length; c++) out[c] += (weight * scores[c]) / total;
        }
      }
    }
    return out;
  }

  // Probabilities of classes that are more frequent than in training.
  function withRatio(moments, proba) {
    const out = proba.map((p, c) => p * Math.exp(moments.log_ratio[c])), total = out.reduce((a, b) => a + b, 0);
    return out.map((p) => p / total);
  }

  // The probabilities of the classes, given mean scores by channel and the scores of plain naive Bayes.
  function proba(moments, at, mean, plain, scale) {
    const root = at.root.map((row) => row.map((x) => scale * x)), { base } = moments.plain;
    const logs = plain.map((score, c) => (base[c] === null ? -Infinity : at.power * (score - base[c]) + base[c]));
    const top = Math.max(...logs), powers = logs.map((x) => Math.exp(x - top)), total = powers.reduce((a, b) => a + b, 0);
    const blended = expected(mean.map((x) => scale * x), root, moments.points).map((p, c) => ((1 - at.share) * Math.sqrt(p) + at.share * Math.sqrt(powers[c] / total)) ** 2);
    return withRatio(moments, blended);
  }

  // Expected absolute change of the probability p of a class once each missing column is known.
  function changes(moments, missing, posterior, scale, target) {
    const at = given(moments, missing), { open, lower, total, variance } = at, { loadings, noise, sides } = moments;
    const n = missing.length, p = posterior[target];
    // Log-odds of the class against the others, as a sum of channels.
    const odds = total.length === 1 ? [1] : posterior.map((q, k) => (Number(target === k) - q) / Math.max(1 - p, 1e-12));
    const direction = Float64Array.from(total[0], (_, a) => total.reduce((sum, row, c) => sum + odds[c] * row[a], 0));
    const solved = solve(lower, direction), before = odds.reduce((sum, x, c) => sum + x * dot(variance[c], odds), 0);
    return missing.map((_, j) => {
      if (!open[j]) return 0;
      const still = missing.map((__, k) => open[k] && k !== j);
      const fresh = [j, ...sides.flatMap((pair, k) => (open[n + k] && !pair.some((i) => still[i]) ? [n + k] : []))];
      const rows = fresh.flatMap((k) => loadings[k].map((row, c) => ({ row, c, noise: noise[k][c], half: forward(lower, row) })));
      const own = rows.map((a, i) => rows.map((b, k) => dot(a.half, b.half) + (i === k ? a.noise : 0)));
      const shared = rows.map(({ row, c, noise: own }) => dot(row, solved) + odds[c] * own);
      const explained = dot(shared, solve(triangle(own), shared)), rest = Math.max(before - explained, 0);
      return meanDistance(p, Math.max(scale ** 2 * explained, 0) / (1 + (Math.PI / 8) * scale ** 2 * rest));
    });
  }

  // Mean absolute change of a probability whose log-odds move by a normal amount, around a
  // mean that leaves the mean probability as it is.
  function meanDistance(p, variance) {
    const sure = Math.min(Math.max(p, 1e-12), 1 - 1e-12), odds = (Math.log(sure) - Math.log1p(-sure)) * Math.sqrt(1 + (Math.PI / 8) * variance);
    const change = (z) => Math.abs(1 / (1 + Math.exp(-odds - z * Math.sqrt(variance))) - sure);
    return EIGHTHS.reduce((sum, z) => sum + change(z) + change(-z), 0) / 8;
  }

  // Moments after the contributions of attribute j were changed: new ones are regressed on the old
  // ones, through which alone they depend on other attributes. Rows are by step, with their
  // training rows as weights; without steps contributions were multiplied by a factor.
  const EDITED_NOISE = 1e-3;
  function edited(moments, j, { before, after, weights, factor }, base, scale) {
    const least = (EDITED_NOISE * moments.noise.flat().reduce((a, b) => a + b, 0)) / moments.noise.flat().length, old = moments.loadings[j];
    const square = (row) => row.reduce((sum, x) => sum + x * x, 0), size = moments.start.length;
    let mean = moments.means[j].map((x) => x * factor), slope = null, variance = old.map((row, c) => factor ** 2 * (square(row) + moments.noise[j][c]));
    if (before) {
      const total = Math.max(weights.reduce((a, b) => a + b, 0), 1e-300), then = before.map((row) => addedOf(moments, j, row)), now = after.map(contrast);
      mean = mean.map((_, c) => now.reduce((sum, row, k) => sum + (weights[k] / total) * row[c], 0));
      const left = now.map((row) => row.map((x, c) => x - mean[c]));
      const product = (a, b) => mean.map((_, c) => mean.map((__, d) => a.reduce((sum, row, k) => sum + (weights[k] / total) * row[c] * b[k][d], 0)));
      const inverse = inverseOf(product(then, then)), shared = product(then, left);
      slope = inverse.map((row) => mean.map((_, d) => row.reduce((sum, x, c) => sum + x * shared[c][d], 0)));
      variance = product(left, left).map((row, c) => row[c]);
    }
    const made = old.map((row, c) => row.map((x, a) => (slope ? old.reduce((sum, of, d) => sum + slope[d][c] * of[a], 0) : factor * x)));
    const swapped = (rows, row) => rows.map((of, k) => (k === j ? row : of)), zero = (row) => row && row.map(() => 0);
    const terms = moments.plain.terms.map((term) => (term.column === j ? { ...term, rows: term.rows.map(zero), missing: zero(term.missing) } : term));
    const fresh = { ...moments, plain: { ...moments.plain, terms }, in_plain: moments.in_plain.map((is, k) => is && k !== j),
      plain_loadings: swapped(moments.plain_loadings, zero(moments.plain_loadings[j])), plain_noise: swapped(moments.plain_noise, 0), means: swapped(moments.means, mean), loadings: swapped(moments.loadings, made),
      noise: swapped(moments.noise, made.map((row, c) => Math.max(variance[c] - square(row), least))),
      start: moments.start.map((x, c) => x + mean[c] - moments.means[j][c] + contrast(base.after)[c] - contrast(base.before)[c]) };
    // The answer to a row without any cell stays the base rates.
    const open = [...moments.value_odds.map((x) => x !== null), ...moments.sides.map((pair) => pair.some((k) => moments.value_odds[k] !== null))];
    const nothing = covariance(fresh, open).variance, root = rootOf(nothing).map((row) => row.map((x) => x * scale)), rates = contrast(moments.plain.base);
    fresh.variance = nothing.reduce((sum, row, c) => sum + row[c], 0);
    fresh.shift = new Array(size).fill(0);
    for (let step = 0; step < 200; step++) {
      const p = expected(fresh.start.map((x, c) => scale * (x + fresh.shift[c])), root, moments.points), gaps = contrast(p.map(Math.log)).map((x, c) => (rates[c] - x) / scale);
      fresh.shift = fresh.shift.map((x, c) => x + gaps[c]);
      if (Math.max(...gaps.map(Math.abs)) < 1e-13) break;
    }
    return fresh;
  }

  return { addedOf, changes, channelsOf, edited, expected, given, proba, sumOf, totalOf, withRatio };
})();
if (typeof module !== "undefined") module.exports = marginal;
