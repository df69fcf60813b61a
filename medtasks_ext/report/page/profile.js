// A few models along the values of one axis: where is a model strong, where weak?

const MOST_SERIES = 8;

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
      modelPicker(rows, compared, several),
    ),
    compared.length
      ? dots({
          heading: axisTitle(key),
          label: `Mean score by ${axisWords(key)}: ${selectionInWords()}`,
          series: compared.map((row) => rowTitle(row, several)),
          rows: lines,
          words: { domain: domainOf(points), measure: "mean score, 95 % interval" },
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

// Up to eight rows, ticked in a list that can be searched; a tick draws the view anew, and the open list stays open.
const picker = { open: false, words: "" };

function modelPicker(rows, compared, several) {
  const taken = new Set(compared.map(rowId));
  const set = (ids) => change({ models: asList(ids) });
  const nameOf = (row) => rowTitle(row, several);
  const isTaken = (row) => Number(taken.has(rowId(row)));
  const byName = (one, other) => isTaken(other) - isTaken(one) || compareValues(nameOf(one), nameOf(other));
  const list = make("div", { className: "choices" });
  const line = (row) => {
    const id = rowId(row);
    const box = make("input", {
      type: "checkbox",
      checked: taken.has(id),
      disabled: !taken.has(id) && taken.size >= MOST_SERIES,
      "data-key": `model ${id}`,
      onchange: () => set(box.checked ? [...taken, id] : [...taken].filter((other) => other !== id)),
    });
    return make("label", {}, box, text("span", "word", nameOf(row)));
  };
  const fill = () => {
    const found = rows.filter((row) => nameOf(row).toLowerCase().includes(picker.words.toLowerCase()));
    list.replaceChildren(...found.sort(byName).slice(0, 200).map(line));
  };
  fill();
  const search = make("input", {
    type: "search",
    placeholder: "Find a model",
    value: picker.words,
    "aria-label": "Find a model to compare",
    oninput: () => {
      picker.words = search.value;
      fill();
    },
  });
  const menu = make(
    "details",
    { className: "menu wide", open: picker.open },
    make("summary", {}, "Models ", text("span", "chosen", `${compared.length} of at most ${MOST_SERIES}`)),
    make("div", { className: "panel" }, search, list),
  );
  menu.addEventListener("toggle", () => {
    picker.open = menu.open;
  });
  return menu;
}
