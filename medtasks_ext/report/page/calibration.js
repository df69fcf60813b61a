// How sure models are of answers taken by likelihood: reliability, risk and coverage, and scores per character.

const MOST_CURVES = 8; // models in one picture

const mixedOf = (items) =>
  items[0].bins.map((_, place) => [0, 1, 2].map((column) => sum(items.map((item) => item.bins[place][column]))));

function drawCalibration() {
  const [tasks, kept, asked] = [new Set(selectedTasks()), new Set(selectedEntries()), new Set(selectedStrategies())];
  const found = report.calibration.filter((item) => tasks.has(item.dataset) && kept.has(item.entry) && asked.has(item.strategy));
  if (!found.length) return [nothing("No task of this selection was asked by likelihood.")];
  const rows = grouped(found, (item) => `${item.entry} ${item.strategy}`).map((items) => ({
    entry: items[0].entry,
    strategy: items[0].strategy,
    tasks: items.length,
    documents: sum(items.map((item) => item.documents)),
    bins: mixedOf(items),
    risks: items[0].risks.map((_, place) => mean(items.map((item) => item.risks[place]))),
    deviations: items[0].risks.map((_, place) => Math.hypot(...items.map((item) => item.risks_sd[place])) / items.length),
    differ: items.filter((item) => item.acc !== item.acc_norm).length,
    ...Object.fromEntries(SURE_FIGURES.map(([key]) => [key, mean(items.map((item) => item[key]))])),
  }));
  const several = severalStrategies(rows);
  const nameOf = (row) => `${markedName(row.entry)}${several ? `, ${strategies[row.strategy][1]}` : ""}`;
  const shown = rows.slice(0, MOST_CURVES);
  return [
    shown.length < rows.length ? note(`The pictures show the first ${MOST_CURVES} of ${plural(rows.length, "row")}.`) : null,
    titled("Reliability", note("Answers by how probable the model called them: on the dashed line it is right as often as it says; large points hold many documents, lines are 95 % intervals. All documents of the selected tasks together."), reliabilityPicture(shown, nameOf)),
    titled("Risk and coverage", note("Errors if the model answered only the questions of which it is surest. Mean over the selected tasks; lines are 95 % intervals."), riskPicture(shown, nameOf)),
    titled("Figures", calibrationTable(rows)),
  ];
}

const SURE_FIGURES = [
  ["acc", "acc", "Share of questions whose right answer has the highest log-likelihood", "-"],
  ["acc_norm", "acc_norm", "The same per character; marked where it differs on a task", "-"],
  ["calibration_error", "Calibration error", "Mean distance of confidence and accuracy over 15 bins; 0 is best", ""],
  ["brier_score", "Brier score", "Squared distance of the probabilities from the right answer; 0 is best", ""],
  ["risk_coverage", "Risk-coverage", "Area under the risk-coverage curve; 0 is best", ""],
];

function reliabilityPicture(rows, nameOf) {
  const points = rows.flatMap((row) =>
    row.bins
      .filter(([, , n]) => n > 0)
      .map(([sure, right, n]) => {
        const range = wilsonInterval(right / n, n);
        return {
          x: sure / n,
          value: right / n,
          ...range,
          n,
          group: nameOf(row),
          tip: [nameOf(row), `says ${percent(sure / n)}, right ${percent(right / n)} ${interval(range, percent)}`, plural(n, "document")].join("\n"),
        };
      }),
  );
  return curves("Reliability", rows.map(nameOf), points, {
    x_title: "probability of the likeliest answer",
    measure: "share of right answers",
    diagonal: [{ x: 0, value: 0 }, { x: 1, value: 1 }],
    domain: [0, 1],
  });
}

function riskPicture(rows, nameOf) {
  const points = rows.flatMap((row) =>
    row.risks.map((value, place) => {
      const x = (place + 1) / row.risks.length;
      const range = normalInterval(value, row.deviations[place]);
      const tip = [nameOf(row), `surest ${percent(x)}: ${percent(value)} errors ${interval(range, percent)}`].join("\n");
      return { x, value, ...range, n: row.documents, group: nameOf(row), tip };
    }),
  );
  return curves("Risk and coverage", rows.map(nameOf), points, {
    x_title: "share of the questions that are answered, the surest first",
    measure: "share of errors",
    domain: [0, Math.max(0.05, ...points.map((point) => point.high))],
  });
}

function curves(title, groups, rows, words) {
  const width = roomOf(760);
  const table = () =>
    matrixTable({
      label: title,
      heading: "Model",
      rows: groups.map((name) => ({ title: name, node: name })),
      columns: ["points"].map((name) => ({ title: name })),
      cell: (row) => rows.filter((point) => point.group === groups[row]).map((point) => `${percent(point.x)} ${percent(point.value)} ${interval(point, percent)}`).join(", "),
    });
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
    values: table,
  });
}

function calibrationTable(rows) {
  return table({
    name: "calibration",
    caption: `By likelihood: ${selectionInWords()}`,
    rows,
    sort: "calibration_error",
    columns: [
      MODEL_COLUMN,
      ...strategyColumns(rows),
      ...SURE_FIGURES.map(([key, title, hint]) => ({
        key,
        title,
        hint,
        numeric: true,
        value: (row) => row[key],
        cell: (row) => (key === "acc_norm" && row.differ ? `${fixed(row[key])} (other on ${plural(row.differ, "task")})` : fixed(row[key])),
      })),
      { key: "tasks", title: "Tasks", numeric: true, value: (row) => row.tasks, cell: (row) => count(row.tasks) },
      { key: "documents", title: "Documents", numeric: true, value: (row) => row.documents, cell: (row) => count(row.documents) },
    ],
  });
}
