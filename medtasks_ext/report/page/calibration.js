// How sure models are of answers taken by likelihood: reliability, risk and coverage, and scores per character.

const MOST_CURVES = 8; // models in one picture
const SURE_FIGURES = [
  ["acc", "acc", "Share of questions whose right answer has the highest log-likelihood", "-"],
  ["acc_norm", "acc_norm", "The same per character; marked where it differs on a task", "-"],
  ["calibration_error", "Calibration error", "Mean distance of confidence and accuracy over 15 bins; 0 is best", ""],
  ["brier_score", "Brier score", "Squared distance of the probabilities from the right answer; 0 is best", ""],
  ["risk_coverage", "Risk-coverage", "Area under the risk-coverage curve; 0 is best", ""],
];

// A model with one strategy over the selected tasks: means of its figures, all documents in one set of bins.
function sureRow(items) {
  const [{ entry, strategy, bins, risks }] = items;
  const added = (place) => [0, 1, 2].map((column) => sum(items.map((item) => item.bins[place][column])));
  const meanRisk = (place) => mean(items.map((item) => item.risks[place]));
  return {
    entry,
    strategy,
    tasks: items.length,
    documents: sum(items.map((item) => item.documents)),
    bins: bins.map((_, place) => added(place)),
    risks: risks.map((_, place) => meanRisk(place)),
    deviations: risks.map((_, place) => Math.hypot(...items.map((item) => item.risks_sd[place])) / items.length),
    differ: items.filter((item) => item.acc !== item.acc_norm).length,
    ...Object.fromEntries(SURE_FIGURES.map(([key]) => [key, mean(items.map((item) => item[key]))])),
  };
}

function drawCalibration() {
  const found = ofSelection(report.calibration);
  if (!found.length) return [nothing("No task of this selection was asked by likelihood.")];
  const rows = grouped(found, (item) => `${item.entry} ${item.strategy}`).map(sureRow);
  const several = severalStrategies(rows);
  const nameOf = (row) => `${markedName(row.entry)}${several ? `, ${strategies[row.strategy][1]}` : ""}`;
  const shown = rows.slice(0, MOST_CURVES).map((row) => ({ ...row, name: nameOf(row) }));
  return [
    shown.length < rows.length ? note(`The pictures show the first ${MOST_CURVES} of ${plural(rows.length, "row")}.`) : null,
    titled(
      "Reliability",
      note(
        "Answers by how probable the model called them: on the dashed line it is right as often as it says; large points " +
          "hold many documents, lines are 95 % intervals. All documents of the selected tasks together.",
      ),
      reliabilityPicture(shown),
    ),
    titled(
      "Risk and coverage",
      note(
        "Errors if the model answered only the questions of which it is surest. Mean over the selected tasks; lines are " +
          "95 % intervals.",
      ),
      riskPicture(shown),
    ),
    titled("Figures", calibrationTable(rows)),
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
  return curves("Reliability", rows, points, {
    x_title: "probability of the likeliest answer",
    measure: "share of right answers",
    diagonal: [{ x: 0, value: 0 }, { x: 1, value: 1 }],
    domain: [0, 1],
  });
}

function riskPicture(rows) {
  const points = rows.flatMap(({ name, risks, deviations, documents }) =>
    risks.map((value, place) => {
      const x = (place + 1) / risks.length;
      const range = normalInterval(value, deviations[place]);
      const tip = `${name}\nsurest ${percent(x)}: ${percent(value)} errors ${interval(range, percent)}`;
      return { x, value, ...range, n: documents, group: name, tip };
    }),
  );
  return curves("Risk and coverage", rows, points, {
    x_title: "share of the questions that are answered, the surest first",
    measure: "share of errors",
    domain: [0, Math.max(0.05, ...points.map((point) => point.high))],
  });
}

function curves(title, named, rows, words) {
  const width = roomOf(760);
  const groups = named.map(({ name }) => name);
  const said = (point) => `${percent(point.x)} ${percent(point.value)} ${interval(point, percent)}`;
  return picture({
    kind: "curves",
    label: `${title}: ${selectionInWords()}`,
    rows,
    words: {
      width,
      tall: Math.round(Math.min(420, width * 0.6)),
      groups,
      ...looksOf(groups),
      legend: groups.length > 1 ? { title: null, columns: isNarrow() ? 1 : 0 } : null,
      ...words,
    },
    values: () =>
      matrixTable({
        label: title,
        heading: "Model",
        rows: groups.map((name) => ({ title: name })),
        columns: [{ title: "points" }],
        cell: (row) => rows.filter((point) => point.group === groups[row]).map(said).join(", "),
      }),
  });
}

function calibrationTable(rows) {
  const other = (row) => (row.differ ? ` (other on ${plural(row.differ, "task")})` : "");
  const figures = SURE_FIGURES.map(([key, title, hint]) =>
    numberColumn(key, title, { hint, cell: (row) => `${fixed(row[key])}${key === "acc_norm" ? other(row) : ""}` }),
  );
  const columns = [
    MODEL_COLUMN,
    ...strategyColumns(rows),
    ...figures,
    numberColumn("tasks", "Tasks", { format: count }),
    numberColumn("documents", "Documents", { format: count }),
  ];
  return table({ name: "calibration", caption: `By likelihood: ${selectionInWords()}`, rows, sort: "calibration_error", columns });
}
