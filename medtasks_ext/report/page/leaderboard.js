// Models by their mean over the selected tasks.

const SECTIONS = [
  ["ranked", null],
  ["partial", "Incomplete: not all selected tasks have a score, so these are not ranked"],
  ["limited", "Limited: of some tasks, or of all, only some documents were asked, so these are not ranked"],
  ["otherwise", "Other conditions than those of the published models, as each task's page says: not ranked among these"],
  ["pending", "Judged in part: some answers wait for a judge, so these are not ranked"],
  ["sample", "SAMPLE: scores on synthetic rows say nothing about a model, and are not ranked beside real ones"],
  ["unscored", "No score yet for the selected tasks"],
];
const PINNED = "Own runs, pinned; each stands at its place below once more";

function drawLeaderboard() {
  const { tasks, rows, left } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  rankedRows(rows);
  const usd = "US dollars for the selected tasks with this strategy, where known";
  const own = rows.filter((row) => isOwn(row.entry));
  return [
    ...leaderboardNotes(tasks, rows, left),
    table({
      name: "leaderboard",
      box: "steady",
      caption: `Leaderboard: ${selectionInWords()}, ${plural(tasks.length, "task")}`,
      columns: [
        ...rankingColumns(rows),
        COVERAGE_COLUMN,
        ...withValues([...SHARE_COLUMNS, numberColumn("usd", "Cost", { hint: usd, cell: costCell })], rows),
      ],
      rows,
      sort: "-score",
      sections: SECTIONS,
      sectionOf: (row) => row.section,
      classOf: (row) => (isOwn(row.entry) ? "own" : ""),
      // own runs above published models: they are never far down a long table
      pinned: own.length < rows.length ? { heading: PINNED, rows: own } : null,
    }),
  ];
}

const costCell = ({ entry, usd }) => make("span", { title: entries[entry].price ?? "" }, dollars(usd));

const emptySelection = () => note("No task fits all filters together. Untick one of them, or reset.");

// What to know about the rows that are shown.
function leaderboardNotes(tasks, rows, left) {
  const [own, others] = [rows.filter((row) => isOwn(row.entry)), rows.filter((row) => !isOwn(row.entry))];
  const published = new Set(others.flatMap((row) => entries[row.entry].notes));
  return [
    sharedNote(tasks, rows, left),
    averageNote(tasks, rows),
    published.size && own.length ? note(`Published rows were made differently: ${[...published].join("; ")}.`) : null,
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
  const scores = (row) => tasks.map((task) => resultOf(row.entry, row.strategy, task, "score")).filter(isNumber);
  const whole = rows.filter((row) => row.group && !row.printed && row.scored === row.total && scores(row).length);
  if (!whole.some((row) => Math.abs(mean(scores(row)) - row.score) > 1e-4)) return null;
  const asides = tasks.length - averaged(tasks, groupsOf(tasks)).length;
  const which = asides ? `: ${plural(asides, "task")} of it ${asides === 1 ? "does" : "do"} not count` : "";
  return note(`This group is averaged in the suite’s own way, which is not the plain mean over its tasks${which}.`);
}
