"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const NS = "http://www.w3.org/2000/svg";

  // Tables -----------------------------------------------------------------

  function sortTable(button) {
    const head = button.closest("th");
    const headers = [...head.parentNode.children];
    const column = headers.indexOf(head);
    const text = head.classList.contains("text");
    const before = head.getAttribute("aria-sort");
    const ascending = before === "none" ? text : before === "descending";
    headers.forEach((th) => th.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const body = head.closest("table").tBodies[0];
    const key = (row) => {
      const cell = row.children[column];
      if (text) return cell.textContent;
      const value = parseFloat(cell.dataset.v ?? cell.textContent);
      return Number.isNaN(value) ? null : value;
    };
    const keyed = [...body.rows].map((row) => [key(row), row]);
    const sign = ascending ? 1 : -1;
    keyed.sort(([a], [b]) => {
      // Cells without a number stay at the end, whichever way is up.
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (text ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
    });
    body.append(...keyed.map(([, row]) => row));
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("thead button");
    if (button) sortTable(button);
  });

  // Pictures ---------------------------------------------------------------

  function make(name, attributes, text) {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) {
      element.setAttribute(key, typeof value === "number" ? +value.toFixed(2) : value);
    }
    if (text !== undefined) element.textContent = text;
    return element;
  }
  const line = (x1, y1, x2, y2, kind = "") => make("line", { x1, y1, x2, y2, class: kind });
  const label = (x, y, text, anchor = "middle", kind = "") =>
    make("text", { x, y, "text-anchor": anchor, class: kind }, text);
  const shorten = (text, size) => (text.length > size ? text.slice(0, size - 1) + "…" : text);

  function ticks(low, high, n = 5) {
    const raw = (high - low) / n;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; i++) {
      found.push(i * step);
    }
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return found.map((value) => [value, value.toFixed(digits)]);
  }
  function range(values, pad = 0.05) {
    const low = Math.min(...values), high = Math.max(...values);
    const size = Math.max(Math.abs(low), Math.abs(high)) || 1;
    // Values that differ in the last bits only are equal.
    const margin = (high - low > 1e-9 * size ? high - low : size) * pad;
    return [low - margin, high + margin];
  }
  function square(svg, low, high, across, up) {
    // Both axes alike, with the line of equality: returns the way to positions.
    const x0 = 62, y0 = 370, size = 340;
    const at = (value) => ((value - low) / (high - low)) * size;
    svg.replaceChildren();
    for (const [value, text] of ticks(low, high)) {
      svg.append(line(x0 + at(value), y0, x0 + at(value), y0 - size, "grid"));
      svg.append(line(x0, y0 - at(value), x0 + size, y0 - at(value), "grid"));
      svg.append(label(x0 + at(value), y0 + 16, text), label(x0 - 6, y0 - at(value) + 4, text, "end"));
    }
    svg.append(line(x0, y0, x0 + size, y0), line(x0, y0, x0, y0 - size));
    svg.append(line(x0, y0, x0 + size, y0 - size));
    svg.append(label(x0 + size / 2, y0 + 36, shorten(across, 52)));
    const side = label(0, 0, shorten(up, 52));
    side.setAttribute("transform", `translate(14 ${y0 - size / 2}) rotate(-90)`);
    svg.append(side);
    return [(value) => x0 + at(value), (value) => y0 - at(value)];
  }

  function view() {
    return data.views[`${byId("protocol").value}|${byId("metric").value}`];
  }
  const shown = (value, v) => (value === null ? "-" : (value * v.scale).toFixed(v.digits));

  function drawScatter() {
    const v = view(), svg = byId("scatter"), caption = byId("scatter-caption");
    const [a, b] = [byId("first").value, byId("second").value].map((m) => v.methods.indexOf(m));
    svg.replaceChildren();
    caption.textContent = "";
    if (a < 0 || b < 0) return;
    const points = v.datasets
      .map((name, i) => ({ name, x: v.means[i][a], y: v.means[i][b] }))
      .filter((p) => p.x !== null && p.y !== null);
    if (!points.length) { caption.textContent = "No data set has both methods."; return; }
    const scaled = points.flatMap((p) => [p.x * v.scale, p.y * v.scale]);
    const [low, high] = range(scaled);
    const [x, y] = square(svg, low, high, v.methods[a], v.methods[b]);
    let up = 0, down = 0;
    for (const p of points) {
      const gap = (p.y - p.x) * (v.larger ? 1 : -1);
      if (gap > 0) up++; else if (gap < 0) down++;
      const dot = make("circle", {
        cx: x(p.x * v.scale), cy: y(p.y * v.scale), r: 4.5, class: gap > 0 ? "second" : "first",
      });
      dot.append(make("title", {}, `${p.name}: ${shown(p.x, v)} and ${shown(p.y, v)}`));
      svg.append(dot);
    }
    caption.textContent = `${v.title}: ${v.methods[b]} is better on ${up} data sets, ` +
      `${v.methods[a]} on ${down}, equal on ${points.length - up - down}.`;
  }

  function drawReliability() {
    const figure = byId("reliability-figure");
    const curves = data.reliability[byId("protocol").value] || {};
    figure.hidden = Object.keys(curves).length === 0;
    if (figure.hidden) return;
    const svg = byId("reliability");
    const [x, y] = square(svg, 0, 1, "mean confidence", "accuracy");
    [["first", 0], ["second", 1]].forEach(([kind, i]) => {
      const name = byId(kind).value, bins = curves[name] || [];
      const points = bins.map(([c, acc]) => `${x(c).toFixed(1)},${y(acc).toFixed(1)}`);
      svg.append(make("polyline", { points: points.join(" "), class: `curve ${kind}` }));
      for (const [c, acc, n] of bins) {
        const dot = make("circle", { cx: x(c), cy: y(acc), r: 3.5, class: kind });
        dot.append(make("title", {}, `${name}: confidence ${c.toFixed(3)}, accuracy ${acc.toFixed(3)}, ${Math.round(n)} rows`));
        svg.append(dot);
      }
      const text = shorten(name, 40) + (bins.length ? "" : " (no bins)");
      svg.append(line(74, 44 + 18 * i, 94, 44 + 18 * i, `curve ${kind}`), label(100, 48 + 18 * i, text, "start"));
    });
  }

  function drawBars() {
    const v = view(), svg = byId("bars"), zoom = byId("zoom").checked;
    const i = v.datasets.indexOf(byId("dataset").value);
    const caption = byId("bars-caption");
    svg.replaceChildren();
    caption.textContent = i < 0 ? "This protocol has no such data set." : "";
    if (i < 0) return;
    const bars = v.methods
      .map((name, j) => ({ name, mean: v.means[i][j], sd: v.spreads[i][j] }))
      .filter((b) => b.mean !== null)
      .sort((p, q) => (v.larger ? q.mean - p.mean : p.mean - q.mean));
    if (!bars.length) { caption.textContent = "No method has a value."; return; }
    const left = 30 + 7 * Math.max(...bars.map((b) => Math.min(b.name.length, 28)));
    const width = 900, right = 80, height = 40 + 22 * bars.length;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const ends = bars.flatMap((b) => [b.mean - (b.sd || 0), b.mean + (b.sd || 0)]);
    let [low, high] = range(ends.map((e) => e * v.scale));
    if (!zoom) [low, high] = [Math.min(0, low), Math.max(0, ...ends.map((e) => e * v.scale * 1.02)) || 1];
    const x = (value) => left + ((value * v.scale - low) / (high - low)) * (width - left - right);
    for (const [value, text] of ticks(low, high, 8)) {
      svg.append(line(x(value / v.scale), 4, x(value / v.scale), height - 24, "grid"));
      svg.append(label(x(value / v.scale), height - 8, text));
    }
    bars.forEach((b, k) => {
      const y = 14 + 22 * k;
      if (zoom) svg.append(make("circle", { cx: x(b.mean), cy: y, r: 5 }));
      else svg.append(make("rect", { x: x(0), y: y - 8, width: Math.max(0, x(b.mean) - x(0)), height: 16 }));
      if (b.sd) svg.append(line(x(b.mean - b.sd), y, x(b.mean + b.sd), y));
      svg.append(label(left - 8, y + 4, shorten(b.name, 28), "end"));
      svg.append(label(width - right + 8, y + 4, shown(b.mean, v), "start"));
    });
    caption.textContent = `${v.title} (${v.larger ? "larger" : "smaller"} is better); ` +
      "lines are one standard deviation over folds either way.";
    const gone = v.methods.filter((name, j) => v.means[i][j] === null);
    if (gone.length) caption.textContent += ` Left out, folds being missing: ${gone.join(", ")}.`;
  }

  // Controls ---------------------------------------------------------------

  // A page of nothing but failures has none.
  if (!byId("protocol")) return;

  function update() {
    const key = `${byId("protocol").value}|${byId("metric").value}`;
    document.querySelectorAll("[data-view]").forEach((part) => {
      part.hidden = part.dataset.view !== key;
    });
    document.querySelectorAll("[data-metric]").forEach((part) => {
      part.hidden = part.dataset.metric !== byId("metric").value;
    });
    byId("none").hidden = Boolean(view());
    byId("figures").hidden = !view();
    if (view()) { drawScatter(); drawReliability(); drawBars(); }
  }
  for (const id of ["protocol", "metric", "first", "second", "dataset", "zoom"]) {
    byId(id).addEventListener("change", update);
  }
  update();
})();
