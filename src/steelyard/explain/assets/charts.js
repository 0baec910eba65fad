"use strict";
// What one attribute says all along, large and with axes; a click sets the value.
const charts = (() => {
  const { axisOf, bars, barsOf, button, curveOf, drawn, element, endsOf, percent, shownOf, t, texts } = controls;
  const WIDTH = 560, HEIGHT = 170, LEFT = 58, BOTTOM = 22;

  // Round numbers between two ends, about so many; odds go by doublings.
  function ticks(low, high, n, isOdds) {
    if (!(high > low)) return [low];
    const raw = (high - low) / n, unit = isOdds ? Math.LN2 : 10 ** Math.floor(Math.log10(raw));
    const step = isOdds ? unit * 2 ** Math.max(-2, Math.ceil(Math.log2(raw / unit))) : unit * [1, 2, 5, 10].find((m) => m * unit >= raw * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
    return found;
  }

  // Of a stretched axis: short numbers near every sixth of it.
  function knotTicks(own) {
    const { place, at } = axisOf(own), found = [];
    for (let k = 0; k <= 6; k++) {
      const x = k % 6 ? Number(at(k / 6).toPrecision(2)) : at(k / 6);
      if (!found.length || place(x) - place(found[found.length - 1]) > 0.1) found.push(x);
    }
    return found;
  }

  function curve(own, said, value, say, set, unit, drag = null) {
    const { place, at } = axisOf(own), across = (x) => LEFT + (WIDTH - LEFT - 8) * place(x);
    const ends = said.isShare ? [0, Math.max(...said.amounts, ...(said.alone || []))] : endsOf([...said.amounts, ...(said.alone || [])]), tall = HEIGHT - BOTTOM;
    const up = (y) => tall - 2 - ((tall - 4) * (y - ends[0])) / (ends[1] - ends[0] || 1), { plain, text } = texts(own);
    const bands = (own.edits || []).map(({ from, to }) => {
      const [a, b] = [Math.max(own.low, from ?? own.low), Math.min(own.high, to ?? own.high)].map(across);
      return drawn("rect", { class: "edited", x: a, width: Math.max(2, b - a), y: 0, height: tall });
    });
    const histogram = drawn("g", { transform: `translate(${LEFT} 0) scale(${(WIDTH - LEFT - 8) / 100} 1)` }, ...bars(barsOf(own), tall));
    const lines = ticks(...ends, said.isShare ? 5 : 4, unit === "odds").flatMap((y) => [drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: up(y), y2: up(y) }),
      drawn("text", { x: LEFT - 6, y: up(y) + 4, "text-anchor": "end" }, say(y).replace(/[.,]0+(?=\D|$)/, ""))]);
    const below = (own.date ? [own.low, own.high] : own.knots ? knotTicks(own) : ticks(own.low, own.high, 6)).map((x) => drawn("text", { x: across(x), y: HEIGHT - 6, "text-anchor": "middle" }, plain(x)));
    const here = value === null ? [] : [drawn("line", { class: "here", x1: across(value), x2: across(value), y1: 0, y2: tall })];
    const made = drawn("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
      "aria-label": t("what {name} says, from {low} to {high}", { name: own.title, low: text(own.low), high: text(own.high) }) },
    ...bands, histogram, ...lines, ...curveOf(said, across, tall).slice(said.isShare ? 3 : 0), ...here, ...below);
    const numberAt = (event) => {
      const box = made.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * WIDTH;
      const inside = at(Math.min(1, Math.max(0, (x - LEFT) / (WIDTH - LEFT - 8))));
      return own.whole ? Math.round(inside) : Number(inside.toPrecision(4));
    };
    if (drag === null) made.addEventListener("click", (event) => set(numberAt(event)));
    else draggable(made, numberAt, (event) => {
      const box = made.getBoundingClientRect(), y = ((event.clientY - box.top) / box.height) * HEIGHT;
      return ends[0] + ((tall - 2 - y) / (tall - 4)) * (ends[1] - ends[0]);
    }, up, drag);
    return made;
  }

  // A line follows the pointer; where it is let go, the curve goes.
  function draggable(made, numberAt, amountAt, up, drag) {
    const line = drawn("line", { class: "here", x1: LEFT, x2: WIDTH - 8 });
    let x = null;
    const move = (event) => { for (const end of ["y1", "y2"]) line.setAttribute(end, up(amountAt(event))); };
    made.addEventListener("pointerdown", (event) => { x = numberAt(event); made.setPointerCapture(event.pointerId); made.append(line); move(event); });
    made.addEventListener("pointermove", (event) => { if (x !== null) move(event); });
    made.addEventListener("pointerup", (event) => { if (x !== null) drag(x, amountAt(event)); x = null; });
  }

  // Values of a category as bars that can be pressed.
  function list(own, amounts, value, say, set, isShare) {
    const most = Math.max(...amounts.map(Math.abs).filter(Number.isFinite), 1e-9);
    const lines = shownOf(own).map((label, k) => {
      const bar = element("span", { className: amounts[k] < 0 ? "negative" : "" }), part = Math.min(1, Math.abs(amounts[k]) / most);
      const start = isShare ? 0 : amounts[k] < 0 ? 50 - 50 * part : 50;
      bar.style.insetInlineStart = `${start}%`;
      bar.style.width = `${(isShare ? 100 : 50) * part}%`;
      const share = own.shares ? percent(own.shares[k], 0) : "";
      return button("", () => set(own.values[k]), { className: own.values[k] === value ? "value here" : "value" })
        .appendChild(element("span", {}, element("span", { className: "what", textContent: label, title: label }),
          element("span", { className: isShare ? "scale share" : "scale" }, bar), element("span", { className: "number", textContent: say(amounts[k]) }),
          element("span", { className: "number share", textContent: share, title: t("share of the training rows") }))).parentNode;
    });
    return element("div", { className: "values" }, ...lines);
  }

  // What two columns say together, with the values of both at the sides; a click sets them.
  const SIDE = 130, MOST_LABELS = 7;
  function map(own, table, attributes, values, say, set) {
    const groups = own.sides.map((side) => groupsOf(side, attributes[side.column]));
    const [a, b] = groups.map(({ length }) => length), tall = Math.min(320, Math.max(90, 22 * a));
    const most = Math.max(...table.map(Math.abs), 1e-9), empty = new Set(own.empty || []);
    const wide = (WIDTH - SIDE - 8) / b, high = tall / a, now = own.sides.map((side) => scoring.groupOf(side, values[side.column]));
    const cells = groups[0].flatMap((first, row) => groups[1].map((second, column) => {
      const code = (row + 1) * (b + 1) + column + 1, isHere = now[0] === row + 1 && now[1] === column + 1;
      const names = own.sides.map((side, k) => `${attributes[side.column].title} ${[first, second][k].text}`).join(", ");
      const cell = drawn("rect", { x: SIDE + wide * column, y: tall - high * (row + 1), width: wide, height: high, class: `${table[code] < 0 ? "negative" : ""}${isHere ? " here" : ""}`,
        "fill-opacity": 0.04 + (0.96 * Math.abs(table[code])) / most }, drawn("title", {}, `${names}: ${say(table[code])}${empty.has(code) ? `, ${t("no training rows")}` : ""}`));
      cell.addEventListener("click", () => set(own.sides.map((side, k) => [side.column, [first, second][k].value])));
      return cell;
    }));
    const some = (list, most) => list.map((group, k) => ({ ...group, k })).filter((_, k) => k % Math.ceil(list.length / most) === 0);
    const short = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text), room = Math.floor((WIDTH - SIDE) / Math.min(b, MOST_LABELS) / 7);
    const labels = [...some(groups[0], Math.floor(tall / 14)).map(({ text, k }) => drawn("text", { x: SIDE - 6, y: tall - high * (k + 0.5) + 4, "text-anchor": "end" }, short(text, 18))),
      ...some(groups[1], MOST_LABELS).map(({ text, k }) => drawn("text", { x: SIDE + wide * (k + 0.5), y: tall + 15, "text-anchor": "middle" }, short(text, room)))];
    const made = drawn("svg", { class: "chart map", viewBox: `0 0 ${WIDTH} ${tall + 22}`, role: "img", "aria-label": t("map of {name}", { name: own.title }) }, ...cells, ...labels);
    const [first, second] = own.sides.map((side) => attributes[side.column].title);
    return element("div", {}, element("p", { className: "hint", textContent: t("Upwards {a}, across {b}. A click sets both.", { a: first, b: second }) }), made);
  }
  // The groups of values of one side: what they are called, and a value of each.
  function groupsOf(side, own) {
    const n = side.n_groups - 1, { plain } = texts(own), found = Array.from({ length: n }, () => ({ text: "", value: null }));
    const add = (group, text, value) => {
      if (group > 0 && group <= n) found[group - 1] = { text: found[group - 1].text ? `${found[group - 1].text}, ${text}` : text, value: found[group - 1].value ?? value };
    };
    if (side.values.length) side.groups.forEach((group, k) => add(group, shownOf(own)[k], own.values[k]));
    else {
      const cuts = [own.low, ...side.edges, own.high], isSmall = own.whole && own.high - own.low <= 50;
      side.groups.forEach((group, k) => {
        const [low, high] = [cuts[k], cuts[k + 1]], whole = Math.floor(high);
        const middle = own.whole ? Math.max(own.low, whole) : Number(((low + high) / 2).toPrecision(4));
        const isOne = isSmall && whole - Math.floor(low) === 1 && k > 0;
        add(group, own.flag ? shownOf(own)[k] ?? "" : isOne ? plain(whole) : k === 0 ? `≤ ${plain(high)}` : k === side.groups.length - 1 ? `> ${plain(low)}` : `${plain(low)} – ${plain(high)}`, middle);
      });
    }
    if (side.missing > 0) add(side.missing, t("unknown"), null);
    return found;
  }

  return { curve, list, map };
})();
