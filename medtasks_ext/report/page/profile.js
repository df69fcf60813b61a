// A few models along the values of one axis: where is a model strong, where weak?

// Rows to compare: those that were chosen, else own runs and the best of the others.
function comparedRows(rows, wanted = 4) {
  const byId = new Map(rows.map((row) => [rowId(row), row]));
  const picked = listOption("models").map((id) => byId.get(id)).filter(Boolean).slice(0, MOST_SERIES);
  return picked.length ? picked : heatLines([...rows]).slice(0, wanted);
}

const rowId = (row) => `${strategies[row.strategy][0]}:${entries[row.entry].label}`;

function rowTitle(row, several) {
  const { label, sample } = entries[row.entry];
  return [label, several ? strategies[row.strategy][1] : null, sample ? "SAMPLE" : null].filter(Boolean).join(" · ");
}

// The same for pictures, where origin is told by colour and room is scarce.
const nameInPicture = (row, several) => shortName(rowTitle(row, several));
const shortName = (title) => title.replace(/ \((?:[^()]+, )?published\)/, "").replace(/^[\w.-]+\/(?=\S)/, "");

function drawProfile() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  const keys = columnAxes(tasks, rows);
  const key = keys.find((axis) => axis === option("axis")) ?? keys[0];
  if (!key) return [nothing("These tasks lie on no axis with several values.")];
  const compared = comparedRows(rows);
  const several = selectedStrategies().length > 1;
  const lines = meanColumns(tasks, key).map((column) => ({
    title: `${column.title} (${column.n})`,
    node: column.node,
    points: compared.flatMap((row, series) => profilePoint(row, series, column)),
  }));
  const points = lines.flatMap((line) => line.points);
  return [
    controls(
      selector("Axis", "axis", keys.map((axis) => [axis, axisTitle(axis)]), key),
      ...seriesChoice(rows, compared, several),
    ),
    compared.length
      ? dots({
          heading: axisTitle(key),
          label: `Mean score by ${axisWords(key)}: ${selectionInWords()}`,
          series: compared.map((row) => rowTitle(row, several)),
          rows: lines,
          words: { measure: "mean score, 95 % interval" },
        })
      : note("No model has a score for these tasks."),
    points.some((point) => point.partial)
      ? note("Values over a part of a line's tasks are said to be partial when you point at them, and in the table.")
      : null,
  ];
}

function profilePoint(row, series, { title, reach }) {
  const reached = reach(row);
  if (!reached) return [];
  const { score: value, low, high, rough, scored, total } = reached;
  const tip = [title, ...tipLines({ ...row, ...reached })];
  return [{ series, value, low, high, rough, partial: scored < total, tip }];
}

// The rows that are drawn, each with a way to drop it, and the others to choose from.
function seriesChoice(rows, compared, several) {
  const ids = compared.map(rowId);
  const set = (wanted) => change({ models: asList(wanted) });
  const drops = compared.map((row, place) =>
    button(`${rowTitle(row, several)} ×`, () => set(ids.toSpliced(place, 1)), {
      "aria-label": `Drop ${rowTitle(row, several)}`,
      "data-key": `drop ${ids[place]}`,
      disabled: ids.length === 1,
    }),
  );
  const rest = rows.filter((row) => !ids.includes(rowId(row))).map((row) => [rowId(row), rowTitle(row, several)]);
  rest.sort(([, one], [, other]) => compareValues(one, other));
  const add = make("select", { "data-key": "add", "aria-label": "Add a model", onchange: () => set([...ids, add.value]) });
  add.append(...[["", "Add a model"], ...rest].map(([value, textContent]) => make("option", { value, textContent })));
  return [make("span", { className: "narrowed" }, ...drops), rest.length && ids.length < MOST_SERIES ? add : null];
}
