"use strict";
// How sure the model itself is: what `predict_interval` computes, from tables by code.
const sureness = (() => {
  const { byId, data, ends, t } = controls, own = data.sure;
  if (!own) return { show: () => {} };
  const { features, base, z } = own, nColumns = base.length;
  // Single precision, lowest byte first.
  const bytes = Uint8Array.from(atob(own.variances), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer), variances = Float32Array.from({ length: bytes.length / 4 }, (_, k) => view.getFloat32(4 * k, true));

  function codeOf({ column, edges, missing, interaction }, values) {
    if (interaction !== undefined) {
      const { sides } = data.attributes[interaction], [a, b] = sides.map((side) => scoring.groupOf(side, values[side.column]));
      return a * sides[1].n_groups + b;
    }
    if (values[column] === null) return missing;
    return 1 + (edges ? scoring.intervalOf(edges, values[column]) : data.attributes[column].values.indexOf(values[column]));
  }

  // Low and high of the probability of a class. Unknown columns add no variance; the average
  // over them divides log-odds, and their errors.
  function interval(values, c) {
    const { model } = data, column = nColumns === 1 ? 0 : c;
    const at = scoring.isPartial(model, values) ? scoring.meanScores(model, values).at : null;
    const cells = features.filter((_, j) => at === null || !at.open[j]).map((feature) => feature.start + codeOf(feature, values));
    const divisor = at === null ? 1 : 1 + (Math.PI / 8) * model.scale ** 2 * at.variance[column][column];
    const variance = base[column] + cells.reduce((sum, cell) => sum + variances[cell * nColumns + column], 0) / divisor;
    const half = z * Math.sqrt(Math.max(variance, 0));
    const p = scoring.posterior(model, values)[c], odds = Math.log(p / (1 - p));
    return [odds - half, odds + half].map((x) => 1 / (1 + Math.exp(-x)));
  }

  function show(values, c) {
    const isHidden = typeof editing !== "undefined" && editing.saved().length > 0;
    byId("sure").hidden = isHidden;
    byId("certain").textContent = "";
    if (isHidden) return;
    const [low, high] = interval(values, c);
    byId("sure").style.insetInlineStart = `${100 * low}%`;
    byId("sure").style.width = `${100 * (high - low)}%`;
    byId("sure").dataset.ends = JSON.stringify([low, high]);
    byId("certain").textContent = t("90 % confidence: {ends} (line).", { ends: ends(low, high) });
  }

  return { interval, show };
})();
