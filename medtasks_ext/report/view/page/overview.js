// The runs, and the datasets that have answers.

function drawOverview(overview) {
  const columns = columnsOf(overview);
  const words = option("find").toLowerCase();
  const shown = overview.datasets.filter((item) =>
    `${item.id} ${item.name} ${item.suite} ${item.language} ${item.type}`.toLowerCase().includes(words),
  );
  const search = make("input", {
    type: "search",
    id: "find",
    value: option("find"),
    placeholder: "name, suite, language, kind of task",
    "aria-label": "Search datasets",
    oninput: () => change({ find: search.value }, { quietly: true }),
  });
  return [
    make("h2", { textContent: "Answers" }),
    text("p", "about", "A dataset leads to what was asked, what was answered, and why an answer is not right."),
    runList(overview),
    liveRuns(overview),
    problems(overview),
    make(
      "div",
      { className: "controls" },
      search,
      text("span", "soft", `${count(shown.length)} of ${plural(overview.datasets.length, "dataset")}`),
    ),
    shown.length
      ? make(
          "div",
          { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Datasets" },
          datasetTable(shown, columns),
        )
      : text("p", "", "No dataset fits the search."),
  ];
}

// The pairs of a run and a strategy that have answers.
function columnsOf(overview) {
  const found = new Map();
  for (const item of overview.datasets)
    for (const answer of item.answers) found.set(`${answer.run} ${answer.strategy}`, answer);
  const several = new Set([...found.values()].map((answer) => answer.strategy)).size > 1;
  return [...found.values()]
    .sort((one, other) => one.run - other.run)
    .map(({ run, strategy }) => ({
      run,
      strategy,
      title: several ? `${overview.runs[run].label}, ${strategy}` : overview.runs[run].label,
    }));
}

function runList(overview) {
  return make(
    "ul",
    { className: "runs" },
    ...overview.runs.map((run) =>
      make(
        "li",
        {},
        text("strong", "", run.label),
        text("span", "soft", ` ${run.place} · ${plural(run.tasks, "task")}`),
        run.going_on ? tag("partial", ...goingOnWords(run)) : null,
      ),
    ),
  );
}

function problems(overview) {
  const lines = [
    ...overview.faults.map((fault) => `${fault.where}: ${fault.what} → ${fault.remedy}`),
    ...(overview.withheld.length
      ? [
          `Left out, since their data are not open: ${overview.withheld.slice(0, 12).join(", ")}${overview.withheld.length > 12 ? " …" : ""}`,
        ]
      : []),
  ];
  return lines.length ? make("ul", { className: "faults" }, ...lines.map((line) => text("li", "", line))) : null;
}

function datasetTable(shown, columns) {
  const head = make(
    "tr",
    {},
    ...["Dataset", "Language", "Metric"].map((name) => make("th", { scope: "col", textContent: name })),
    ...columns.map((column) => make("th", { scope: "col", className: "number", textContent: column.title })),
  );
  const body = make("tbody");
  let suite = "";
  for (const item of shown) {
    if (item.suite !== suite) {
      suite = item.suite;
      body.append(
        make(
          "tr",
          { className: "section" },
          make("th", { colSpan: 3 + columns.length, scope: "rowgroup", textContent: suite }),
        ),
      );
    }
    body.append(datasetRow(item, columns));
  }
  return make(
    "table",
    { className: "datasets" },
    make("caption", { textContent: "Datasets with answers, and their scores" }),
    make("thead", {}, head),
    body,
  );
}

function datasetRow(item, columns) {
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, link(datasetAddress(item.id), item.name), item.sample ? sampleTag() : null),
    text("td", "", item.language),
    text("td", "soft", item.metric),
    ...columns.map((column) => {
      const answer = item.answers.find((found) => found.run === column.run && found.strategy === column.strategy);
      return make("td", { className: "number" }, answer ? scoreCell(answer, overviewOf.runs[column.run]) : NONE);
    }),
  );
}

function scoreCell(answer, run) {
  const readable = isNumber(answer.valid) && answer.valid < 0.995 ? `${percent(answer.valid)} readable` : "";
  return make(
    "span",
    { className: "stacked" },
    answer.score === null
      ? text("span", "soft", unscored(answer, run))
      : make(
          "span",
          {},
          text("span", "score", fixed(answer.score)),
          isNumber(answer.low) ? text("span", "soft", ` ${interval(answer)}`) : null,
        ),
    readable ? text("span", "soft", readable) : null,
  );
}

const sampleTag = () => tag("sample", "SAMPLE", "Synthetic rows: the score means nothing");
