// How sure models are of answers taken by likelihood.

const SURE_FIGURES = [
  ["acc", "acc", "Share of questions whose right answer has the highest log-likelihood"],
  ["acc_norm", "acc_norm", "The same per character"],
  ["calibration_error", "Calibration error", "Mean distance of confidence and accuracy over 15 bins; 0 is best"],
  ["brier_score", "Brier score", "Squared distance of the probabilities from the right answer; 0 is best"],
  ["risk_coverage", "Risk-coverage", "Area under the risk-coverage curve; 0 is best"],
];

// A model with one strategy over the selected tasks: means of its figures.
function sureRow(items) {
  const [{ entry, strategy }] = items;
  return {
    entry,
    strategy,
    tasks: items.length,
    documents: sum(items.map((item) => item.documents)),
    ...Object.fromEntries(SURE_FIGURES.map(([key]) => [key, mean(items.map((item) => item[key]))])),
  };
}

function drawCalibration() {
  const found = ofSelection(report.calibration);
  if (!found.length) return [nothing("No task of this selection was asked by likelihood.")];
  return [calibrationTable(grouped(found, (item) => `${item.entry} ${item.strategy}`).map(sureRow))];
}

function calibrationTable(rows) {
  const columns = [
    MODEL_COLUMN,
    ...strategyColumns(rows),
    ...SURE_FIGURES.map(([key, title, hint]) => numberColumn(key, title, { hint })),
    numberColumn("tasks", "Tasks", { format: count }),
    numberColumn("documents", "Documents", { format: count }),
  ];
  return table({ name: "calibration", caption: `By likelihood: ${selectionInWords()}`, rows, sort: "calibration_error", columns });
}
