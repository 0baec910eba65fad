"use strict";
// Rows with missing cells: means over what these cells may be, as in partial_rows.py.
const marginal = (() => {
  const MAX_PATTERNS = 10000;
  const dot = (a, b) => { let sum = 0; for (let k = 0; k < a.length; k++) sum += a[k] * b[k]; return sum; };

  // The difference of two classes, or what differs from the mean of more.
  function contrast(values) {
    if (values.length === 2) return [values[1] - values[0]];
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    return values.map((x) => x - mean);
  }

  // Cholesky, and solutions for the rows of the right side.
  function solve(matrix, right) {
    const n = matrix.length, lower = matrix.map((row) => Float64Array.from(row));
    for (let j = 0; j < n; j++) {
      for (let i = j; i < n; i++) {
        let x = lower[i][j];
        for (let k = 0; k < j; k++) x -= lower[i][k] * lower[j][k];
        lower[i][j] = i === j ? Math.sqrt(x) : x / lower[j][j];
      }
    }
    return right.map((row) => {
      const x = Float64Array.from(row);
      for (let i = 0; i < n; i++) {
        for (let k = 0; k < i; k++) x[i] -= lower[i][k] * x[k];
        x[i] /= lower[i][i];
      }
      for (let i = n - 1; i >= 0; i--) {
        for (let k = i + 1; k < n; k++) x[i] -= lower[k][i] * x[k];
        x[i] /= lower[i][i];
      }
      return x;
    });
  }

  // The symmetric square root of a positive semi-definite matrix, by Jacobi's rotations.
  function rootOf(matrix) {
    const n = matrix.length;
    if (n === 1) return [[Math.sqrt(Math.max(matrix[0][0], 0))]];
    const a = matrix.map((row, i) => row.map((x, j) => (x + matrix[j][i]) / 2));
    const vectors = a.map((_, i) => a.map((__, j) => Number(i === j)));
    for (let round = 0; round < 100; round++) {
      let rest = 0, all = 0;
      for (let i = 0; i < n; i++) { all += a[i][i] ** 2; for (let j = 0; j < i; j++) rest += a[i][j] ** 2; }
      if (rest <= 1e-34 * all) break;
      for (let p = 0; p < n; p++) {
        for (let q = p + 1; q < n; q++) {
          if (a[p][q] === 0) continue;
          const angle = (a[q][q] - a[p][p]) / (2 * a[p][q]);
          const t = (angle < 0 ? -1 : 1) / (Math.abs(angle) + Math.hypot(angle, 1));
          const c = 1 / Math.hypot(t, 1), s = t * c;
          for (const row of [...a, ...vectors]) [row[p], row[q]] = [c * row[p] - s * row[q], s * row[p] + c * row[q]];
          for (let k = 0; k < n; k++) [a[p][k], a[q][k]] = [c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]];
        }
      }
    }
    const roots = a.map((row, k) => Math.sqrt(Math.max(row[k], 0)));
    return vectors.map((v) => vectors.map((w) => v.reduce((sum, x, k) => sum + x * roots[k] * w[k], 0)));
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

  // What follows from the observed attributes; kept for each set of missing cells.
  const kept = new WeakMap();
  function given(moments, missing) {
    if (!kept.has(moments)) kept.set(moments, new Map());
    const byPattern = kept.get(moments), key = missing.map(Number).join("");
    if (!byPattern.has(key)) {
      if (byPattern.size >= MAX_PATTERNS) byPattern.clear();
      byPattern.set(key, condition(moments, missing));
    }
    return byPattern.get(key);
  }
  function condition(moments, missing) {
    const { loadings, noise, start, shift } = moments, open = openOf(moments, missing), channels = start.length;
    const total = start.map((_, c) => loadings[0][0].map((__, a) => loadings.reduce((sum, rows, j) => (open[j] ? sum + rows[c][a] : sum), 0)));
    const inner = information(moments, open), solved = solve(inner, total);
    const variance = total.map((row, c) => solved.map((column, k) => dot(row, column) + (c === k ? noise.reduce((sum, of, j) => (open[j] ? sum + of[c] : sum), 0) : 0)));
    const weights = loadings.map((rows, j) => (open[j] ? null : rows.map((row, c) => solved.map((column, k) => dot(row, column) / noise[j][c] + Number(c === k)))));
    const left = variance.reduce((sum, row, c) => sum + row[c], 0) / moments.variance, u = missing.filter((_, j) => open[j]).length / missing.length;
    return { open, inner, total, variance, weights, start: start.map((x, c) => x + left * shift[c]), root: rootOf(variance), share: (u ** 2 + u ** 4) / 2, channels };
  }

  // What each attribute adds by channel, with what it says of the missing ones; null if missing.
  function channelsOf(moments, at, amounts) {
    return at.weights.map((weights, j) => {
      if (weights === null) return null;
      const added = contrast(amounts[j]).map((x, c) => x - moments.means[j][c]);
      return at.start.map((_, k) => added.reduce((sum, x, c) => sum + x * weights[c][k], 0));
    });
  }

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

  // Mean scores by channel, and the probabilities of the classes.
  function proba(moments, at, channels, plain, scale) {
    const mean = at.start.map((x, k) => scale * channels.reduce((sum, row) => (row === null ? sum : sum + row[k]), x));
    const root = at.root.map((row) => row.map((x) => scale * x));
    return expected(mean, root, moments.points).map((p, c) => (1 - at.share) * p + at.share * plain[c]);
  }

  // Expected absolute change of each probability once a missing column is known.
  function changes(moments, missing, posterior, scale) {
    const { open, inner, total, variance, channels } = given(moments, missing), { loadings, noise, sides } = moments;
    const n = missing.length, two = channels === 1, size = posterior.length;
    const odds = two ? [[1]] : posterior.map((p, c) => posterior.map((q, k) => (Number(c === k) - q) / Math.max(1 - p, 1e-12)));
    const square = (v, matrix) => v.reduce((sum, x, a) => sum + x * dot(matrix[a], v), 0);
    return missing.map((_, j) => {
      if (!open[j]) return new Array(size).fill(0);
      const still = missing.map((__, k) => open[k] && k !== j);
      const known = [j, ...sides.flatMap((pair, k) => (open[n + k] && !pair.some((i) => still[i]) ? [n + k] : []))];
      const rows = known.flatMap((k) => loadings[k].map((row, c) => ({ row, c, noise: noise[k][c] })));
      const spread = solve(inner, rows.map(({ row }) => row));
      const own = rows.map((a, i) => rows.map((b, k) => dot(a.row, spread[k]) + (i === k ? a.noise : 0)));
      const shared = total.map((of, c) => rows.map((a, i) => dot(of, spread[i]) + (a.c === c ? a.noise : 0)));
      const solved = solve(own, shared);
      const explained = shared.map((row) => solved.map((column) => dot(row, column)));
      const left = variance.map((row, a) => row.map((x, b) => x - explained[a][b]));
      return posterior.map((p, c) => {
        const v = two ? odds[0] : odds[c], moved = scale ** 2 * square(v, explained), rest = Math.max(scale ** 2 * square(v, left), 0);
        return Math.sqrt(Math.max((2 / Math.PI) * moved, 0) / (1 + (Math.PI / 8) * rest)) * p * (1 - p);
      });
    });
  }

  return { changes, channelsOf, contrast, given, proba };
})();
