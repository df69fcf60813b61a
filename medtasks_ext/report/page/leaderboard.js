// Models by their mean over the selected tasks.

const SECTIONS = [
  ["ranked", null],
  ["partial", "Incomplete: not all selected tasks have a score, so these are not ranked"],
  ["limited", "Limited: of some tasks, or of all, only some documents were asked, so these are not ranked"],
  [
    "otherwise",
    "Other conditions than those of the published models (own words, other rows, another jury …): not ranked among these. " +
      "Each task's page says what differs; with “My runs” alone they are ranked among themselves",
  ],
  ["pending", "Judged in part: some answers wait for a judge, so these are not ranked"],
  ["sample", "SAMPLE: scores on synthetic rows say nothing about a model, and are not ranked beside real ones"],
  ["unscored", "No score yet for the selected tasks"],
];

function drawLeaderboard() {
  const { tasks, rows, left } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  rankedRows(rows);
  const optional = (column) => (rows.some((row) => column.value(row) !== null) ? [column] : []);
  const columns = [
    ...rankingColumns(rows),
    COVERAGE_COLUMN,
    ...optional({
      key: "valid",
      title: "Valid",
      numeric: true,
      sort: "desc",
      hint: "Share of answers in which an answer could be read, mean over tasks",
      value: (row) => row.valid ?? null,
      cell: (row) => percent(row.valid),
    }),
    ...optional({
      key: "cut",
      title: "Truncated",
      numeric: true,
      hint: "Share of answers that used up their length limit, mean over tasks",
      value: (row) => row.cut ?? null,
      cell: (row) => percent(row.cut),
    }),
    ...optional({
      key: "usd",
      title: "Cost",
      numeric: true,
      hint: "US dollars for the selected tasks with this strategy, where known",
      value: (row) => row.usd ?? null,
      cell: (row) => make("span", { title: entries[row.entry].price ?? "" }, dollars(row.usd)),
    }),
  ];
  return [
    ...leaderboardNotes(tasks, rows, left),
    table({
      name: "leaderboard",
      className: "steady",
      caption: `Leaderboard: ${selectionInWords()}, ${plural(tasks.length, "task")}`,
      columns,
      rows,
      sort: "-score",
      sections: SECTIONS,
      sectionOf: (row) => row.section,
      classOf: (row) => (isOwn(row.entry) ? "own" : ""),
      pinned: pinnedRows(rows),
    }),
  ];
}

// Own runs above published models: they are never far down a long table.
function pinnedRows(rows) {
  const own = rows.filter((row) => isOwn(row.entry));
  if (!own.length || own.length === rows.length) return null;
  const heading =
    "Own runs, pinned. Each stands at its place below once more; where it has no rank, the heading there says why";
  return { heading, rows: own };
}

function emptySelection() {
  return note("No task fits all filters together. Untick one of them, or reset.");
}

// What to know about the rows that are shown.
function leaderboardNotes(tasks, rows, left) {
  const approximate =
    "≈ intervals: normal approximation from the spread of each task, since this selection is none of the report’s groups.";
  const synthetic = "All rows here are on synthetic data: this is a demonstration of the table, not of models.";
  const published = new Set(rows.filter((row) => !isOwn(row.entry)).flatMap((row) => entries[row.entry].notes ?? []));
  return [
    sharedNote(tasks, rows, left),
    averageNote(tasks, rows),
    rows.some((row) => row.approximate) ? note(approximate) : null,
    published.size && rows.some((row) => isOwn(row.entry))
      ? note(`Published rows were made differently: ${[...published].join("; ")}.`)
      : null,
    rows.length && rows.every((row) => entries[row.entry].sample) ? note(synthetic) : null,
  ];
}

function sharedNote(tasks, rows, left) {
  if (option("common") === "1") {
    const without = left.length ? `${plural(left.length, "row")} without scores per task left out. ` : "";
    const said = `Compared on the ${plural(tasks.length, "task")} that all rows shown have a score for. ${without}`;
    return note(said, smallButton("Use all selected tasks", { common: null }));
  }
  const partial = rows.filter((row) => row.section === "partial").length;
  if (!partial) return null;
  const said = `${plural(partial, "row")} ${partial === 1 ? "lacks" : "lack"} some of these tasks. `;
  return note(said, smallButton("Only tasks that all have", { common: "1" }));
}

function averageNote(tasks, rows) {
  const whole = rows.filter((row) => row.group && !row.printed && row.scored === row.total);
  if (!whole.some((row) => differsFromPlainMean(row, tasks))) return null;
  const asides = tasks.length - averaged(tasks, groupsOf(tasks)).length;
  const which = asides ? `: ${plural(asides, "task")} of it ${asides === 1 ? "does" : "do"} not count` : "";
  return note(`This group is averaged in the suite’s own way, which is not the plain mean over its tasks${which}.`);
}

function differsFromPlainMean(row, tasks) {
  const scores = tasks.map((task) => resultOf(row.entry, row.strategy, task, "score")).filter(isNumber);
  return scores.length > 0 && Math.abs(mean(scores) - row.score) > 1e-4;
}
