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
  const known = rows.filter((row) => FAULT_SHARES.some(([key]) => isNumber(shareOfRow(row, key))));
  if (!known.length) return [nothing("No model of this selection has such counts.")];
  const columns = [
    MODEL_COLUMN,
    ...strategyColumns(known),
    ...FAULT_SHARES.map(([key, title, hint]) => ({
      key,
      title,
      hint,
      numeric: true,
      value: (row) => shareOfRow(row, key),
      cell: (row) => shareCell(shareOfRow(row, key), key === "valid"),
    })),
  ];
  return [
    table({
      name: "validity",
      caption: `Readable and complete answers: ${selectionInWords()}`,
      columns,
      rows: known,
      sort: "valid",
    }),
    worstTasks(known, tasks),
  ];
}

function shareOfRow(row, key) {
  return row[key === "inputs_cut" ? "inputsCut" : key] ?? null;
}

function shareCell(value, good) {
  if (!isNumber(value)) return NONE;
  const bad = good ? value < 0.9 : value > 0.1;
  return make("span", { className: "share-cell" }, meter(value, {}, bad ? "bad" : ""), make("span", { textContent: percent(value) }));
}

// The single tasks where most answers were lost.
function worstTasks(rows, tasks) {
  const found = [];
  for (const row of rows)
    for (const task of tasks) {
      const at = resultRow(row.entry, row.strategy, task);
      if (at < 0) continue;
      const [valid, cut, unclosed] = ["valid", "cut", "unclosed"].map((key) => results[key]?.[at] ?? null);
      const lost = Math.max(isNumber(valid) ? 1 - valid : 0, cut ?? 0, unclosed ?? 0);
      if (lost > 0.1) found.push({ ...row, task, valid, cut, unclosed, lost, score: results.score[at] });
    }
  if (!found.length) return note("On no task were more than a tenth of the answers unreadable or truncated.");
  const share = (key, title) => ({
    key,
    title,
    numeric: true,
    value: (row) => row[key],
    cell: (row) => percent(row[key]),
  });
  return titled(
    "Where answers were lost",
    note(
      `${plural(found.length, "result")} in which more than a tenth of the answers could not be read, or were truncated. Truncation is mended by a higher max_gen_toks.`,
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
        {
          key: "lost",
          title: "Lost",
          numeric: true,
          hint: "The largest of unreadable, truncated and unclosed",
          value: (row) => row.lost,
          cell: (row) => percent(row.lost),
        },
        share("valid", "Valid"),
        share("cut", "Truncated"),
        share("unclosed", "Unclosed"),
        { key: "score", title: "Score", numeric: true, value: (row) => row.score, cell: (row) => fixed(row.score) },
      ],
    }),
  );
}
