// One entry: how it was made, and what it reached on every task.

function drawModel() {
  const entry = entryAt.get(viewId);
  if (entry === undefined) return [note(`This report knows no model “${viewId}”.`)];
  const { settings, details, notes, kind, sample, suite, tokens, usd, usd_tasks: [priced, all], price } = entries[entry];
  const costs = {
    ...(tokens ? { "tokens in / out": `${count(tokens.input)} / ${count(tokens.output)}` } : {}),
    ...(isNumber(usd) ? { cost: `${dollars(usd)}${priced < all ? ` for ${priced} of ${all} tasks` : ""}; ${price}` } : {}),
  };
  const published = `These are published results of ${suiteTitle(suite)}`;
  const origin = { published, lm_eval: "This is a run of plain lm_eval" }[kind] ?? "This is a run of medtasks";
  const facts = (title, found) => {
    const pairs = Object.entries(found ?? {}).map(([name, value]) => [name.replace(/_/g, " "), asWords(value)]);
    return pairs.length ? titled(title, factList(pairs)) : null;
  };
  return [
    text("p", "lead", `${origin}${sample ? " on synthetic rows: its scores mean nothing." : "."}`),
    notes.length ? bullets(notes, "notes") : null,
    modelTasks(entry),
    facts("Settings", settings),
    facts("About the model", { ...details, ...costs }),
  ];
}

const asWords = (value) => (typeof value === "string" || value === null ? value : JSON.stringify(value));

function modelTasks(entry) {
  const rows = [...datasets.keys()]
    .filter((task) => strategies.some((_, strategy) => resultRow(entry, strategy, task) >= 0))
    .map((task) => ({ task }));
  if (!rows.length) return note("Only averages over groups are published for this model, no scores per task.");
  const columns = [
    { ...TASK_COLUMN, className: "sticky" },
    SUITE_COLUMN,
    ...strategies.map(([id, title], strategy) =>
      numberColumn(id, title, {
        value: ({ task }) => resultOf(entry, strategy, task, "score"),
        cell: ({ task }) => scoreText({ entry, ...resultAt(entry, strategy, task) }),
      }),
    ),
  ];
  const caption = `Scores of ${entries[entry].label} by task`;
  return titled("By task", table({ name: "model-tasks", caption, columns, rows, sort: "task" }));
}
