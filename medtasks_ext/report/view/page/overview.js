// The runs, and the datasets that have answers.

function drawOverview(overview) {
  const words = option("find").toLowerCase();
  const shown = overview.datasets.filter(({ id, name, suite, language, type }) =>
    `${id} ${name} ${suite} ${language} ${type}`.toLowerCase().includes(words),
  );
  const live = overview.runs.filter((run) => run.live).map(liveRun);
  const all = plural(overview.datasets.length, "dataset");
  return [
    make("h2", { textContent: "Answers" }),
    text("p", "about", "A dataset leads to what was asked, what was answered, and why an answer is not right."),
    bullets(overview.runs.map(runWords), "runs"),
    live.length ? make("div", { className: "live-runs" }, ...live) : null,
    problems(overview),
    controls(
      searchBox("find", "name, suite, language, kind of task", "Search datasets"),
      text("span", "soft", `${count(shown.length)} of ${all}`),
    ),
    shown.length ? datasetTable(shown, columnsOf(overview)) : text("p", "", "No dataset fits the search."),
  ];
}

const runWords = (run) => [
  text("strong", "", run.label),
  text("span", "soft", ` ${run.place} · ${plural(run.tasks, "task")}`),
  run.going_on ? tag("partial", ...goingOnWords(run)) : null,
];

// The pairs of a run and a strategy that have answers.
function columnsOf(overview) {
  const answers = overview.datasets.flatMap((item) => item.answers);
  const several = severalStrategies(answers);
  const titleOf_ = ({ run, strategy }) => `${overview.runs[run].label}${several ? `, ${strategy}` : ""}`;
  const found = new Map(answers.map((answer) => [`${answer.run} ${answer.strategy}`, { ...answer, title: titleOf_(answer) }]));
  return [...found.values()].sort((one, other) => one.run - other.run);
}

function problems({ faults, withheld }) {
  const lines = faults.map((fault) => `${fault.where}: ${fault.what} → ${fault.remedy}`);
  const some = `${withheld.slice(0, 12).join(", ")}${withheld.length > 12 ? " …" : ""}`;
  if (withheld.length) lines.push(`Left out, since their data are not open: ${some}`);
  return lines.length ? bullets(lines, "faults") : null;
}

function datasetTable(shown, columns) {
  const suites = [...new Set(shown.map((item) => item.suite))];
  const named = (item) => make("span", {}, link(datasetAddress(item.id), item.name), item.sample ? sampleTag() : null);
  const answerOn = (item, { run, strategy }) => item.answers.find((one) => one.run === run && one.strategy === strategy);
  return table({
    name: "datasets",
    className: "datasets",
    caption: "Datasets with answers, and their scores",
    plain: true,
    rows: shown,
    sections: suites.map((suite) => [suite, suite]),
    sectionOf: (item) => item.suite,
    columns: [
      { title: "Dataset", head: true, cell: named },
      wordColumn("language", "Language"),
      wordColumn("metric", "Metric", { className: "soft" }),
      ...columns.map((column) => ({
        title: column.title,
        numeric: true,
        cell: (item) => scoreCell(answerOn(item, column)),
      })),
    ],
  });
}

function scoreCell(answer) {
  if (!answer) return NONE;
  const range = isNumber(answer.low) ? text("span", "soft", ` ${interval(answer)}`) : null;
  return make(
    "span",
    { className: "stacked" },
    answer.score === null
      ? text("span", "soft", unscored(answer, overviewOf.runs[answer.run]))
      : make("span", {}, text("span", "score", fixed(answer.score)), range),
    isNumber(answer.valid) && answer.valid < 0.995 ? text("span", "soft", `${percent(answer.valid)} readable`) : null,
  );
}
