"use strict";
// What predict_proba computes, from the model's own numbers. A value is a string for a
// category, a number for a numeric attribute, and null for unknown.
const scoring = (() => {
  const SQRT_HALF = Math.sqrt(0.5);
  const HALF_LOG_2_PI = 0.5 * Math.log(2 * Math.PI);
  const FARTHEST = 1e100;
  const FLOOR = 1e-75;

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

  // The code of a value: 0 for one never seen; intervals are closed on the right.
  function codeOf(attribute, value) {
    if (value === null || value === undefined) return attribute.missing;
    if (attribute.kind === "category") return attribute.values.indexOf(value) + 1;
    let low = 0, high = attribute.edges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (attribute.edges[middle] < value) low = middle + 1; else high = middle;
    }
    return low + 1;
  }

  // The code of a pair: the coarse codes of its two sides together.
  function pairCode(attribute, values) {
    const [a, b] = attribute.sides.map(
      (side) => side.groups[codeOf(side.attribute, values[side.column])]);
    return a * (Math.max(...attribute.sides[1].groups) + 1) + b;
  }

  function logDensity(term, x, c) {
    if (term.limit) {
      const t = (x - term.mean[c]) / term.deviation[c];
      return Math.min(Math.max(t, -term.limit), term.limit);
    }
    if (term.step === 0) {
      const t = Math.min(Math.abs(x - term.mean[c]) / term.deviation[c], FARTHEST);
      return -HALF_LOG_2_PI - Math.log(term.deviation[c]) - 0.5 * t * t;
    }
    const distance = Math.abs(x - term.mean[c]), half = 0.5 * term.step;
    const a = ((distance - half) / term.deviation[c]) * SQRT_HALF;
    const b = ((distance + half) / term.deviation[c]) * SQRT_HALF;
    const p = 0.5 * (erfc(a) - erfc(b));
    return Math.log(Math.max(p, FLOOR));
  }

  // Weighted log-densities; with a depth, relative to the largest and no lower than it;
  // with a limit, the standardised number in their place.
  function densities(term, x) {
    let logs = term.mean.map((_, c) => logDensity(term, x, c));
    if (term.depth) {
      const top = Math.max(...logs);
      logs = logs.map((log) => Math.max(log - top, -term.depth));
    }
    return logs.map((log, c) => term.factor[c] * log);
  }

  // What one attribute adds to each class of one sum: all views of it together.
  function contribution(attribute, term, value, n) {
    if (term.views) {
      const rows = term.views.map((own, k) => contribution(attribute.views[k], own, value, n));
      return rows[0].map((_, c) => rows.reduce((sum, row) => sum + row[c], 0));
    }
    if (term.table) return term.table[codeOf(attribute, value)];
    let x = value === null || value === undefined ? attribute.missing : value;
    if (x === null || x === undefined) return new Array(n).fill(0);
    if (term.step) x = roundEven(x / term.step) * term.step;
    return densities(term, x);
  }

  function contributions(attributes, leaf, values) {
    return leaf.terms.map((term, j) => (attributes[j].kind === "pair"
      ? term.table[pairCode(attributes[j], values)]
      : contribution(attributes[j], term, values[j], leaf.base.length)));
  }

  const baseOf = (leaf) => leaf.base.map((b) => (b === null ? -Infinity : b));

  function softmax(scores) {
    const top = Math.max(...scores);
    const powers = scores.map((s) => Math.exp(s - top));
    const total = powers.reduce((a, b) => a + b, 0);
    return powers.map((p) => p / total);
  }

  function scoresOf(attributes, leaf, values) {
    const scores = baseOf(leaf);
    for (const row of contributions(attributes, leaf, values)) {
      row.forEach((amount, c) => { scores[c] += amount; });
    }
    return scores;
  }

  // Posterior probabilities of a model's own classes.
  function posterior(attributes, node, values) {
    if (node.kind === "sum") {
      return softmax(scoresOf(attributes, node, values).map((s) => s * node.scale));
    }
    const out = new Array(node.classes.length).fill(0);
    for (const part of node.parts) {
      const own = posterior(attributes, part, values);
      own.forEach((p, c) => {
        out[node.classes.indexOf(part.classes[c])] += part.share * p;
      });
    }
    return out;
  }

  // Every sum in a tree of models, with a name for readers.
  function leaves(node, name) {
    if (node.kind === "sum") return [{ name: name || "the model", leaf: node }];
    return node.parts.flatMap((part) => {
      const share = node.kind === "mixture" ? ` (share ${part.share.toFixed(3)})` : "";
      const own = part.name + share;
      return leaves(part, name ? `${name}: ${own}` : own);
    });
  }

  return { contribution, contributions, posterior, scoresOf, leaves, codeOf, pairCode, baseOf, erfc };
})();
if (typeof module !== "undefined") module.exports = scoring;
