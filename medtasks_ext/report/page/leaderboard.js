// Models by their mean over the selected tasks.

const SECTIONS = [
  ["ranked", null],
  ["partial", "Incomplete: not all selected tasks have a score, so these are not ranked"],
  ["sample", "SAMPLE: scores on synthetic rows say nothing about a model, and are not ranked beside real ones"],
  ["unscored", "No score yet for the selected tasks"],
];

function drawLeaderboard() {
  const { tasks, rows, left } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  rankedRows(rows);
  const several = new Set(rows.map((row) => row.strategy)).size > 1;
  const domain = [0, Math.max(0.1, domainOf(rows.map((row) => ({ value: row.score, high: row.high })), { zero: true })[1])];
  const optional = (column) => (rows.some((row) => column.value(row) !== null) ? [column] : []);
  const columns = [
    { key: "place", title: "#", numeric: true, sort: "asc", hint: several ? "Place among complete rows of the same strategy" : "Place among complete rows", value: (row) => row.place, cell: (row) => row.place ?? "", className: "place" },
    { key: "model", title: "Model", head: true, value: (row) => entries[row.entry].label, cell: (row) => modelLink(row.entry), className: "sticky" },
    ...(several ? [{ key: "strategy", title: "Strategy", value: (row) => row.strategy, cell: (row) => strategies[row.strategy][1] }] : []),
    { key: "score", title: "Score", numeric: true, hint: "Mean over the selected tasks with its 95 % interval", value: (row) => row.score, cell: (row) => scoreText(row) },
    { key: "bar", title: barHeading(domain), cell: (row) => (isNumber(row.score) ? withTip(scoreBar(row, domain), ...tipLines(row)) : ""), className: "bar-cell" },
    { key: "tasks", title: "Tasks", numeric: true, hint: "Selected tasks with a score, of all selected", value: (row) => row.scored, cell: coverageCell },
    ...optional({ key: "valid", title: "Valid", numeric: true, sort: "desc", hint: "Share of answers in which an answer could be read, mean over tasks", value: (row) => row.valid ?? null, cell: (row) => percent(row.valid) }),
    ...optional({ key: "cut", title: "Truncated", numeric: true, hint: "Share of answers that used up their length limit, mean over tasks", value: (row) => row.cut ?? null, cell: (row) => percent(row.cut) }),
    ...optional({ key: "usd", title: "Cost", numeric: true, hint: "US dollars for the selected tasks with this strategy, where known", value: (row) => row.usd ?? null, cell: (row) => make("span", { title: entries[row.entry].price ?? "" }, dollars(row.usd)) }),
  ];
  return [
    ...leaderboardNotes(tasks, rows, left),
    table({ name: "leaderboard", className: "steady", caption: `Leaderboard: ${selectionInWords()}, ${plural(tasks.length, "task")}`, columns, rows, sort: "-score", sections: SECTIONS, sectionOf: (row) => row.section }),
  ];
}

function barHeading(domain) {
  return make("span", {}, text("span", "spoken", "Score as a bar"), scaleStrip(domain, tickLabel));
}

function scoreText(row) {
  return make("span", { className: "score-text" }, text("b", "score", fixed(row.score)), " ", text("span", "interval", isNumber(row.low) || isOwn(row.entry) ? interval(row) : ""));
}

function emptySelection() {
  return note("No task fits all filters together. Untick one of them, or reset.");
}

function tipLines(row) {
  return [entries[row.entry].label, `${strategies[row.strategy][1]}: ${fixed(row.score)} ${interval(row)}`, row.printed ? "the paper’s own average" : `${row.scored} of ${row.total} tasks${row.scored < row.total ? ", partial" : ""}`,
    row.approximate ? "≈ normal approximation" : null, entries[row.entry].sample ? "SAMPLE: synthetic rows" : null];
}

function coverageCell(row) {
  if (row.printed) return make("span", { title: "The paper prints this average without the scores of its tasks" }, "as published");
  return make("span", { className: "coverage" }, `${row.scored}/${row.total}`, row.scored < row.total ? tag("partial", "partial") : null);
}

function leaderboardNotes(tasks, rows, left) {
  const notes = [];
  const partial = rows.filter((row) => row.section === "partial").length;
  if (option("common") === "1") {
    notes.push(note(`Compared on the ${plural(tasks.length, "task")} that all rows shown have a score for.${left.length ? ` ${plural(left.length, "row")} without scores per task left out.` : ""} `, smallButton("Use all selected tasks", { common: null })));
  } else if (partial) {
    notes.push(note(`${plural(partial, "row")} ${partial === 1 ? "lacks" : "lack"} some of these tasks. `, smallButton("Only tasks that all have", { common: "1" })));
  }
  const asides = tasks.length - averaged(tasks, groupsOf(tasks)).length;
  const own = rows.some((row) => row.group && !row.printed && row.scored === row.total && differsFromPlainMean(row, tasks));
  if (own) notes.push(note(`This group is averaged in the suite’s own way, which is not the plain mean over its tasks${asides ? `: ${plural(asides, "task")} of it ${asides === 1 ? "does" : "do"} not count` : ""}.`));
  if (rows.some((row) => row.approximate)) notes.push(note("≈ intervals: normal approximation from the spread of each task, since this selection is not one of the report's groups."));
  const published = new Set(rows.filter((row) => !isOwn(row.entry)).flatMap((row) => entries[row.entry].notes ?? []));
  if (published.size && rows.some((row) => isOwn(row.entry))) notes.push(note(`Published rows were made differently: ${[...published].join("; ")}.`));
  if (rows.length && rows.every((row) => entries[row.entry].sample)) notes.push(note("All rows here are on synthetic data: this is a demonstration of the table, not of models."));
  return notes;
}

function differsFromPlainMean(row, tasks) {
  const scores = tasks.map((task) => resultOf(row.entry, row.strategy, task, "score")).filter(isNumber);
  return scores.length > 0 && Math.abs(mean(scores) - row.score) > 1e-4;
}

function smallButton(title, changes) {
  return make("button", { type: "button", className: "small", textContent: title, "data-key": `button ${title}`, onclick: () => change(changes) });
}
