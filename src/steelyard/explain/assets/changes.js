"use strict";
// What would have to change: the search of Python's `counterfactual`, step by step.
const changes = (() => {
  const unique = (numbers) => [...new Set(numbers)].sort((a, b) => a - b);
  const shortened = (x) => Number(x.toPrecision(6));
  function rounded(x, digits) {
    const unit = 10 ** Math.abs(digits);
    return digits < 0 ? scoring.roundEven(x / unit) * unit : scoring.roundEven(x * unit) / unit;
  }

  // A number in each interval between edges, short to write where it stays there.
  function typical(edges) {
    if (!edges.length) return [0];
    const last = edges.length - 1, gap = (last ? (edges[last] - edges[0]) / last : 0) || Math.max(Math.abs(edges[0]), 1);
    const bounds = [edges[0] - gap, ...edges, edges[last] + gap];
    return bounds.slice(1).map((bound, k) => {
      const middle = bounds[k] + (bound - bounds[k]) / 2, short = shortened(middle);
      return Number.isFinite(short) && scoring.intervalOf(edges, short) === k ? short : middle;
    });
  }

  // The numbers that a column may hold: between its ends, in steps of its digits.
  const decimals = (x) => x.toFixed(9).replace(/0+$/, "").split(".")[1].length;
  function stepsOf(own, value) {
    if (!own.tries.range) return null;
    const [low, high] = own.tries.range, points = unique([low, ...(own.quartiles || []), high]), n = points.length;
    const now = value === null ? (points[(n - 1) >> 1] + points[n >> 1]) / 2 : shortened(value);
    const finest = Math.ceil(3 - Math.log10(high - low || 1));
    const digits = Math.max(...[low, high, ...(value === null ? [] : [now])].map(decimals));
    return { low, high, now, finest, digits: digits < 5 ? digits : Math.max(finest, 0) };
  }
  const within = (steps, numbers, digits) =>
    unique(numbers.map((x) => rounded(x, digits))).filter((x) => x >= steps.low && x <= steps.high);

  // The number nearest to the present one that is enough, in coarse steps, then in finer ones.
  function nearest(steps, isEnough) {
    let best = null, { low, high } = steps;
    for (let digits = Math.min(steps.digits, steps.finest); digits <= steps.digits; digits++) {
      const step = 10 ** -digits, first = Math.floor(low / step), numbers = [];
      for (let k = first; k <= Math.ceil(high / step); k++) numbers.push(k * step);
      const enough = within(steps, numbers, digits).filter(isEnough);
      if (!enough.length) break;
      best = enough.reduce((a, b) => (Math.abs(b - steps.now) < Math.abs(a - steps.now) ? b : a));
      [low, high] = [best, best + Math.sign(steps.now - best) * step].sort((a, b) => a - b);
    }
    return best;
  }

  function numbersOf(own, steps) {
    const [low, high, step] = own.tries.grid || [];
    const tried = !own.tries.grid ? typical(own.cuts) : Array.from({ length: 61 }, (_, k) => {
      const x = k === 60 ? high : low + k * ((high - low) / 60);
      return step ? scoring.roundEven(x / step) * step : x;
    });
    return steps ? unique([...within(steps, tried, steps.digits), steps.low, steps.high]) : unique(tried);
  }

  // Every single change of one column.
  function candidatesOf(own, j, value, steps) {
    if (own.tries) {
      return numbersOf(own, steps).map((cell) => ({ j, cell, distance: steps ? Math.abs(cell - steps.now) : 0 }));
    }
    const cells = own.kind === "category" ? own.values : typical(own.edges);
    const place = own.kind === "category" ? own.values.indexOf(value) : value === null ? -1 : scoring.intervalOf(own.edges, value);
    const now = value === null ? own.missing - 1 : place, isOrdered = own.kind !== "category" && now >= 0;
    return cells.map((cell, k) => ({ j, cell, distance: isOrdered ? Math.abs(k - now) : 0, k })).filter(({ k }) => k !== now);
  }

  // How far a goal is exceeded, in log-odds: a class wins, or passes a probability.
  function marginOf(goal) {
    return (logs) => {
      const others = logs.filter((_, c) => c !== goal.target), top = Math.max(...others);
      if (goal.logit === null) {
        const gap = logs[goal.target] - top;
        return Number.isNaN(gap) ? -Infinity : gap;
      }
      const odds = logs[goal.target] - top - Math.log(others.reduce((sum, log) => sum + Math.exp(log - top), 0));
      return goal.below ? goal.logit - odds : odds - goal.logit;
    };
  }

  function search(model, values, goal, candidates, steps) {
    const margin = marginOf(goal), columns = [...candidates.keys()];
    const cellsWith = (made) => { const cells = [...values]; for (const { j, cell } of made) cells[j] = cell; return cells; };
    const marginWith = (made) => {
      const cells = cellsWith(made), j = made.length ? made[0].j : columns[0] ?? 0;
      return margin(scoring.along(model, cells, j).logs(cells[j]));
    };
    let made = [], now = marginWith(made);
    while (!(now > 0)) {
      let best = null, most = now;
      const cells = cellsWith(made);
      for (const j of columns.filter((own) => made.every((change) => change.j !== own))) {
        const along = scoring.along(model, cells, j);
        for (const change of candidates.get(j)) {
          const found = margin(along.logs(change.cell));
          if (found > now && found >= most) [best, most] = [change, found];
        }
      }
      if (best === null) return { ...goal, found: false, made, margin: now };
      [made, now] = [[...made, best], most];
    }
    // Later changes may have made earlier ones needless.
    for (const change of [...made]) {
      const fewer = made.filter((other) => other !== change);
      if (marginWith(fewer) > 0) made = fewer;
    }
    for (let k = made.length - 1; k >= 0; k--) {
      const { j } = made[k], along = scoring.along(model, cellsWith(made.filter((_, i) => i !== k)), j);
      const at = (cell) => margin(along.logs(cell));
      const enough = candidates.get(j).map((change) => ({ ...change, margin: at(change.cell) })).filter((change) => change.margin > 0);
      let chosen = enough.reduce((a, b) => (b.distance < a.distance || (b.distance === a.distance && b.margin < a.margin) ? b : a));
      const closer = steps.get(j) ? nearest(steps.get(j), (x) => at(x) > 0) : null;
      if (closer !== null && Math.abs(closer - steps.get(j).now) < chosen.distance) chosen = { j, cell: closer };
      made = made.map((change, i) => (i === k ? chosen : change));
    }
    return { ...goal, found: true, made };
  }

  // The fewest changes after which a class wins, or its probability is over or under one.
  function find({ model, attributes, order }, values, goal, fixed) {
    const free = order.filter((j) => attributes[j].kind !== "interaction" && !fixed.has(j)).sort((a, b) => a - b);
    const steps = new Map(free.map((j) => [j, attributes[j].tries ? stepsOf(attributes[j], values[j]) : null]));
    const candidates = new Map(free.map((j) => [j, candidatesOf(attributes[j], j, values[j], steps.get(j))]));
    const winner = scoring.winner(model, values), before = scoring.posterior(model, values);
    const targets = goal.target === null ? before.map((_, c) => c).filter((c) => c !== winner) : [goal.target];
    const all = targets.map((target) => {
      const own = { logit: null, below: false, ...goal, target };
      const found = own.logit === null && target === winner ? { ...own, found: true, made: [] } : search(model, values, own, candidates, steps);
      const cells = [...values];
      for (const { j, cell } of found.made) cells[j] = cell;
      return { ...found, before, after: scoring.posterior(model, cells) };
    });
    const rank = (x) => [Number(!x.found), x.found ? x.made.length : 0, -x.after[x.target]];
    return all.reduce((a, b) => (rank(b).map((r, k) => r - rank(a)[k]).find((d) => d !== 0) < 0 ? b : a));
  }

  return { find, typical };
})();
if (typeof module !== "undefined") module.exports = changes;
