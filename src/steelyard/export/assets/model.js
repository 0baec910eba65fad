// @@ABOUT@@ Rows are objects from column names to cells: text, numbers, booleans;
// null, undefined, NaN and what is left out are missing; dates are ISO text. score(row) has the probability of
// every class by name, posterior(row) in order, predict(row) the most probable class,
// contributions(row) what every column or interaction adds to each class of the average training
// row, if the model is one sum.
const model = (() => {
@@SCORING@@
const plan = @@PLAN@@;

  const posterior = (row) => scoring.posterior(plan.model, scoring.cellsOf(plan, row));
  const score = (row) => Object.fromEntries(posterior(row).map((p, c) => [String(plan.classes[c]), p]));
  const predict = (row) => plan.classes[scoring.winner(plan.model, scoring.cellsOf(plan, row))];
  const contributions = (row) => {
    if (plan.model.kind !== "sum") throw new Error("The model is not one sum.");
    const rows = scoring.contributions(plan.model, scoring.cellsOf(plan, row), plan.attributes.length);
    return Object.fromEntries(rows.map((amounts, j) => [plan.attributes[j], amounts]));
  };
  return { score, posterior, predict, contributions, plan };
})();
if (typeof module !== "undefined") module.exports = model;
