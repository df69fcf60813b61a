// How sure models are of answers taken by likelihood: reliability, and what else is counted.

const SURE_FIGURES = [
  ["acc", "acc", "Share of questions whose right answer has the highest log-likelihood"],
  ["acc_norm", "acc_norm", "The same per character"],
  ["calibration_error", "Calibration error", "Mean distance of confidence and accuracy over 15 bins; 0 is best"],
  ["brier_score", "Brier score", "Squared distance of the probabilities from the right answer; 0 is best"],
  ["risk_coverage", "Risk-coverage", "Area under the risk-coverage curve; 0 is best"],
];

// A model with one strategy over the selected tasks: means of its figures, all documents in one set of bins.
function sureRow(items) {
  const [{ entry, strategy, bins }] = items;
  const added = (place) => [0, 1, 2].map((column) => sum(items.map((item) => item.bins[place][column])));
  return {
    entry,
    strategy,
    tasks: items.length,
    documents: sum(items.map((item) => item.documents)),
    bins: bins.map((_, place) => added(place)),
    ...Object.fromEntries(SURE_FIGURES.map(([key]) => [key, mean(items.map((item) => item[key]))])),
  };
}

function drawCalibration() {
  const found = ofSelection(report.calibration);
  if (!found.length) return [nothing("No task of this selection was asked by likelihood.")];
  const rows = grouped(found, (item) => `${item.entry} ${item.strategy}`).map(sureRow);
  const several = severalStrategies(rows);
  const shown = rows.slice(0, MOST_SERIES).map((row) => ({ ...row, name: rowTitle(row, several) }));
  return [
    shown.length < rows.length ? note(`The picture shows the first ${MOST_SERIES} of ${plural(rows.length, "row")}.`) : null,
    note(
      "Answers by how probable the model called them: on the dashed line it is right as often as it says; large points " +
        "hold many documents, lines are 95 % intervals. All documents of the selected tasks together.",
    ),
    reliabilityPicture(shown),
    calibrationTable(rows),
  ];
}

function reliabilityPicture(rows) {
  const points = rows.flatMap(({ name, bins }) =>
    bins.filter(([, , n]) => n > 0).map(([sure, right, n]) => {
      const range = wilsonInterval(right / n, n);
      const said = `says ${percent(sure / n)}, right ${percent(right / n)} ${interval(range, percent)}`;
      return { x: sure / n, value: right / n, ...range, n, group: name, tip: `${name}\n${said}\n${plural(n, "document")}` };
    }),
  );
  const width = roomOf(760);
  const groups = rows.map(({ name }) => name);
  const said = (point) => `${percent(point.x)} ${percent(point.value)} ${interval(point, percent)}`;
  return picture({
    kind: "curves",
    label: `Reliability: ${selectionInWords()}`,
    rows: points,
    words: {
      width,
      tall: Math.round(Math.min(420, width * 0.6)),
      groups,
      ...looksOf(groups),
      legend: legendOf(groups),
      x_title: "probability of the likeliest answer",
      measure: "share of right answers",
      diagonal: [{ x: 0, value: 0 }, { x: 1, value: 1 }],
      domain: [0, 1],
    },
    values: () =>
      matrixTable({
        label: "Reliability",
        heading: "Model",
        rows: groups.map((title) => ({ title })),
        columns: [{ title: "points" }],
        cell: (row) => points.filter((point) => point.group === groups[row]).map(said).join(", "),
      }),
  });
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
