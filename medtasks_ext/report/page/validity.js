// Answers that could not be read, were cut off, or never came to an end of their reasoning.

const FAULT_SHARES = [
  ["valid", "Valid", "Share of answers in which an answer could be read"],
  ["cut", "Truncated", "Share of answers that used up their length limit"],
  ["unclosed", "Unclosed reasoning", "Share of answers whose reasoning never ended"],
  ["inputs_cut", "Inputs cut", "Share of prompts that were shortened to fit"],
];

function drawValidity() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  const shown = rows.filter((row) => FAULT_SHARES.some(([key]) => isNumber(row[key])));
  if (!shown.length) return [nothing("No model of this selection has such counts.")];
  const shares = FAULT_SHARES.map(([key, title, hint]) =>
    numberColumn(key, title, { hint, value: (row) => row[key] ?? null, cell: (row) => shareCell(row[key], key === "valid") }),
  );
  return [
    table({
      name: "validity",
      caption: `Readable and complete answers: ${selectionInWords()}`,
      columns: [MODEL_COLUMN, ...strategyColumns(shown), ...shares],
      rows: shown,
      sort: "valid",
    }),
    worstTasks(shown, tasks),
  ];
}

function shareCell(value, good) {
  if (!isNumber(value)) return NONE;
  const bad = good ? value < 0.9 : value > 0.1;
  return make("span", { className: "share-cell" }, meter(value, {}, bad ? "bad" : ""), text("span", "", percent(value)));
}

// The single tasks where most answers were lost.
function worstTasks(rows, tasks) {
  const results = rows.flatMap((row) => tasks.map((task) => ({ ...row, task, ...resultAt(row.entry, row.strategy, task) })));
  const lost = ({ valid, cut, unclosed }) => Math.max(isNumber(valid) ? 1 - valid : 0, cut ?? 0, unclosed ?? 0);
  const found = results.filter(({ at }) => at >= 0).map((row) => ({ ...row, lost: lost(row) })).filter((row) => row.lost > 0.1);
  if (!found.length) return note("On no task were more than a tenth of the answers unreadable or truncated.");
  return titled(
    "Where answers were lost",
    note(
      `${plural(found.length, "result")} in which more than a tenth of the answers could not be read, or were truncated. ` +
        "A higher max_gen_toks fixes truncation.",
    ),
    table({
      name: "lost",
      caption: "Tasks with many lost answers",
      rows: found,
      sort: "-lost",
      limit: 40,
      columns: [
        TASK_COLUMN,
        SUITE_COLUMN,
        { ...MODEL_COLUMN, head: false },
        ...strategyColumns(rows),
        numberColumn("lost", "Lost", { hint: "The largest of unreadable, truncated and unclosed", format: percent }),
        numberColumn("valid", "Valid", { format: percent }),
        numberColumn("cut", "Truncated", { format: percent }),
        numberColumn("unclosed", "Unclosed", { format: percent }),
        numberColumn("score", "Score"),
      ],
    }),
  );
}
