"use strict";
// What one attribute says all along, large and with axes; a click sets the value.
const charts = (() => {
  const { bars, button, curveOf, drawn, element, endsOf, percent, shownOf, t, texts } = controls;
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

  function curve(own, said, value, say, set, unit, drag = null) {
    const across = (x) => LEFT + ((WIDTH - LEFT - 8) * (x - own.low)) / (own.high - own.low);
    const ends = said.isShare ? [0, Math.max(...said.amounts)] : endsOf(said.amounts), tall = HEIGHT - BOTTOM;
    const up = (y) => tall - 2 - ((tall - 4) * (y - ends[0])) / (ends[1] - ends[0] || 1), { plain, text } = texts(own);
    const bands = (own.edits || []).map(({ from, to }) => {
      const [a, b] = [Math.max(own.low, from ?? own.low), Math.min(own.high, to ?? own.high)].map(across);
      return drawn("rect", { class: "edited", x: a, width: Math.max(2, b - a), y: 0, height: tall });
    });
    const histogram = drawn("g", { transform: `translate(${LEFT} 0) scale(${(WIDTH - LEFT - 8) / 100} 1)` }, ...bars(own.histogram || [], tall));
    const lines = ticks(...ends, 4, unit === "odds").flatMap((y) => [drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: up(y), y2: up(y) }),
      drawn("text", { x: LEFT - 6, y: up(y) + 4, "text-anchor": "end" }, say(y).replace(/[.,]0+$/, ""))]);
    const below = (own.date ? [own.low, own.high] : ticks(own.low, own.high, 6)).map((x) => drawn("text", { x: across(x), y: HEIGHT - 6, "text-anchor": "middle" }, plain(x)));
    const here = value === null ? [] : [drawn("line", { class: "here", x1: across(value), x2: across(value), y1: 0, y2: tall })];
    const made = drawn("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
      "aria-label": t("what {name} says, from {low} to {high}", { name: own.title, low: text(own.low), high: text(own.high) }) },
    ...bands, histogram, ...lines, ...curveOf(said, across, tall), ...here, ...below);
    const numberAt = (event) => {
      const box = made.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * WIDTH;
      const inside = own.low + (own.high - own.low) * Math.min(1, Math.max(0, (x - LEFT) / (WIDTH - LEFT - 8)));
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
          element("span", { className: "scale" }, bar), element("span", { className: "number", textContent: say(amounts[k]) }),
          element("span", { className: "number share", textContent: share, title: t("share of the training rows") }))).parentNode;
    });
    return element("div", { className: "values" }, ...lines);
  }

  return { curve, list };
})();
