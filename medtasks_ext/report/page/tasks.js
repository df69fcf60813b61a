// The list of tasks, and a page for each.

const titlesOn = (key, task) => valuesOf(datasets[task], key).map((value) => valueTitle(key, value));

function drawTasks() {
  const words = option("find").toLowerCase().split(/\s+/).filter(Boolean);
  const isChosen = taskAxes.some((axis) => chosen(axis.key).length);
  const apart = heldTasks.filter((task) => !isGrouped(datasets[task]));
  const all = isChosen ? [...new Set([...selectedTasks(), ...apart])] : [...datasets.keys()];
  const [kept, asked] = [selectedEntries(), selectedStrategies()];
  const rows = all
    .filter((task) => words.every((word) => taskText(task).includes(word)))
    .map((task) => ({ task, ...figuresOfTask(task, kept, asked) }));
  const of = (name) => ({ value: ({ task }) => datasets[task][name] });
  const axisColumn = (key, title) => wordColumn(key, title, { value: ({ task }) => titlesOn(key, task).join(", ") || null });
  const summary = (task) => text("span", "soft clipped", datasets[task].summary);
  const columns = [
    wordColumn("name", "Task", {
      head: true,
      className: "sticky",
      ...of("name"),
      cell: ({ task }) => make("span", { className: "stacked" }, taskLink(task), summary(task)),
    }),
    ...withValues(
      [
        numberColumn("score", "Score", { sort: "asc", hint: "Of own runs; the lowest of several" }),
        numberColumn("valid", "Readable", { sort: "asc", hint: "Share of answers that could be read; the lowest", format: percent }),
        numberColumn("cut", "Truncated", { hint: "Share of truncated answers; the highest", format: percent }),
        wordColumn("answers", "Answers", {
          value: ({ task }) => (report.answers.held.includes(datasets[task].id) ? "1" : null),
          cell: ({ task }) => (heldTasks.includes(task) ? link(address("answers", datasets[task].id), "answers") : NONE),
        }),
        numberColumn("best", "Best score", {
          hint: "Best on real rows in this report",
          value: ({ best }) => best?.score ?? null,
          cell: ({ best }) => bestCell(best),
        }),
      ],
      rows,
    ),
    axisColumn("suite", "Suite"),
    axisColumn("language", "Language"),
    axisColumn("task_type", "Kind"),
    wordColumn("access", "Access", of("access")),
    numberColumn("n", "Test rows", { ...of("n_test"), format: count }),
    wordColumn("metric", "Measure", { ...of("metric"), cell: ({ task }) => text("code", "", datasets[task].metric ?? NONE) }),
  ];
  const search = searchBox("find", "Search tasks", "Search tasks by name, content, metric or specialty");
  const { withheld } = report.answers;
  return [
    livePart(),
    withheld.length
      ? note(`Answers to ${plural(withheld.length, "dataset")} are left out, since the data are not open: medtasks report --answers writes them.`)
      : null,
    controls(search, text("span", "soft", plural(rows.length, "task"))),
    table({ name: "tasks", box: "steady", caption: `Tasks: ${selectionInWords()}`, rows, sort: ownEntries.length ? "score" : "name", columns }),
  ];
}

function taskText(task) {
  const { name, id, summary, metric } = datasets[task];
  return [name, id, summary, metric, ...taskAxes.flatMap(({ key }) => titlesOn(key, task))].join(" ").toLowerCase();
}

// Of the entries and strategies that are shown: the best on real rows, and the worst of own runs.
function figuresOfTask(task, kept, asked) {
  const found = kept
    .flatMap((entry) => asked.map((strategy) => ({ entry, strategy, ...resultAt(entry, strategy, task) })))
    .filter(({ at }) => at >= 0);
  const own = (name) => found.filter(({ entry }) => isOwn(entry)).map((one) => one[name]).filter(isNumber);
  const worst = (values, which) => (values.length ? which(...values) : null);
  const scored = found.filter(({ entry, score }) => isNumber(score) && !entries[entry].sample);
  return {
    score: worst(own("score"), Math.min),
    valid: worst(own("valid"), Math.min),
    cut: worst(own("cut"), Math.max),
    best: scored.reduce((one, other) => (one && one.score >= other.score ? one : other), null),
  };
}

function bestCell(best) {
  if (!best) return NONE;
  const title = `${entries[best.entry].label}, ${strategies[best.strategy][1]}`;
  return make("span", { title, textContent: fixed(best.score) });
}

// ------------------------------------------------------------------ one task

function drawTask() {
  const task = datasetAt.get(viewId);
  if (task === undefined) return [note(`This report knows no task “${viewId}”.`)];
  const dataset = datasets[task];
  const page = report.tasks[dataset.id] ?? {};
  const control = `A control of ${dataset.control_of}: the same rows asked in another form.`;
  return [
    text("p", "lead", dataset.summary),
    dataset.control_of ? note(`${control} It counts in no mean and in no group.`) : null,
    dataset.draft ? note(`A draft, which counts in no mean and in no group: ${dataset.draft}`) : null,
    answersLine(dataset),
    taskScores(task),
    taskFacts(dataset),
    scoringPart(dataset, page),
  ];
}

function answersLine({ id, access }) {
  const { held, withheld } = report.answers;
  if (withheld.includes(id)) return note(`Answers left out: ${access} data. None of their texts is in this report.`);
  return held.includes(id) ? make("p", {}, link(address("answers", id), "All answers, and why they are not right")) : null;
}

function taskFacts(dataset) {
  const ofAxis = ({ key }) => {
    const links = valuesOf(dataset, key).flatMap((value, place) => [
      place ? ", " : "",
      link(address("leaderboard", "", { suite: "", [key]: asList([value]) }), valueTitle(key, value), {
        title: "Leaderboard for this value",
      }),
    ]);
    const ours = "The suite’s paper does not give this value";
    if (dataset.assigned?.includes(key)) links.push(tag("", "assigned by medtasks", ours));
    return [axisTitle(key), links.length ? make("span", {}, ...links) : null];
  };
  const elsewhere = { rel: "noopener noreferrer", target: "_blank" };
  const { url } = dataset;
  return factList([
    ...taskAxes.map(ofAxis),
    ["Test rows", count(dataset.n_test)],
    ["Scored without asking for data", dataset.scoreable ? "yes" : "no"],
    ["Licence", dataset.licence],
    ["Use allowed by its terms", dataset.use],
    ["Text to a third party", dataset.third_party_api],
    ["Source", /^https?:/i.test(url ?? "") ? link(url, url, elsewhere) : url],
    ["Citation", dataset.citation],
    ["Task id", text("code", "", dataset.id)],
    ["Version", dataset.version],
  ]);
}

function taskScores(task) {
  const used = [...strategies.keys()].filter((strategy) => entries.some((_, entry) => resultRow(entry, strategy, task) >= 0));
  if (!used.length) return titled("Scores", note("No model in this report was scored on this task."));
  const options = used.map((strategy) => strategies[strategy]);
  const current = choice("on", options.map(([id]) => id));
  const shown = onPaper ? used : [strategyAt.get(current)];
  return titled(
    "Scores",
    onPaper ? null : controls(switcher("Strategy", "on", options, current)),
    ...shown.flatMap((strategy) => taskTable(task, strategy)),
  );
}

function taskTable(task, strategy) {
  const rows = [...entries.keys()]
    .map((entry) => ({ entry, strategy, ...resultAt(entry, strategy, task), scored: 1, total: 1 }))
    .filter((row) => row.at >= 0);
  rankedRows(rows);
  const columns = [
    ...rankingColumns(rows),
    numberColumn("n", "Rows", { hint: "Documents that were scored", format: count }),
    ...withValues(SHARE_COLUMNS, rows),
  ];
  return [
    onPaper ? text("h4", "", strategies[strategy][1]) : null,
    table({
      name: "task",
      box: "steady",
      caption: `Scores on ${datasets[task].name}, ${strategies[strategy][1]}`,
      columns,
      rows,
      sort: "-score",
      sections: SECTIONS,
      sectionOf: (row) => row.section,
      limit: 25,
      keep: (row) => isOwn(row.entry),
    }),
    settingsPart(rows),
  ];
}

// The settings that own results were made under: what is alike stands in one row.
function settingsPart(rows) {
  const known = rows.filter((row) => report.task_settings[valueAt(row.at, "settings")]);
  if (!known.length) return null;
  const lines = grouped(known, (row) => valueAt(row.at, "settings")).map((some) => ({
    of: some.map((row) => entries[row.entry].label).join(", "),
    ...report.task_settings[valueAt(some[0].at, "settings")],
  }));
  const names = [...new Set(lines.flatMap((line) => Object.keys(line)))].filter((name) => name !== "of");
  const columns = [wordColumn("of", "Results of", { head: true }), ...names.map((name) => wordColumn(name, name))];
  const build = () => table({ caption: "Settings", plain: true, columns, rows: lines });
  const said = "Other prompts, data or versions give different numbers.";
  return make("div", {}, lines.length > 1 ? note(said) : null, folded("Settings of these results", build));
}

function ceilingWords(limit) {
  if (limit === "unbounded") return "The measure has no upper bound.";
  if (limit === "per_document") return "The best score that can be reached differs from document to document.";
  if (!isNumber(limit) || limit >= 1) return null;
  return `The best score that can be reached is ${fixed(limit)}: even the gold answers do not get more.`;
}

function scoringPart(dataset, page) {
  const named = (name) => make("span", {}, text("code", "", name), name === dataset.metric ? tag("", "score") : null);
  const ceiling = ceilingWords(dataset.oracle_max);
  return titled(
    "How it is scored",
    page.rule ? text("p", "prose", page.rule) : null,
    page.metrics?.length
      ? termList(page.metrics.map(([name, meaning]) => [named(name), meaning]))
      : make("p", {}, "Measure: ", text("code", "", dataset.metric ?? NONE)),
    ceiling ? note(ceiling) : null,
    page.open_questions?.length
      ? make("div", {}, text("h4", "", "To be verified"), bullets(page.open_questions))
      : null,
  );
}
