// A few models along the values of one axis: where is a model strong, where weak?

const MOST_SERIES = 8;

// Rows to compare: those that were chosen, else own runs and the best of the others.
function comparedRows(rows, wanted = 4) {
  const byId = new Map(rows.map((row) => [rowId(row), row]));
  const picked = listOption("models")
    .map((id) => byId.get(id))
    .filter(Boolean)
    .slice(0, MOST_SERIES);
  if (picked.length) return picked;
  const best = [...rows].sort(
    (one, other) => heatRank(one) - heatRank(other) || (other.score ?? -1) - (one.score ?? -1),
  );
  return [...best.filter((row) => isOwn(row.entry)).slice(0, wanted), ...best.filter((row) => !isOwn(row.entry))].slice(
    0,
    wanted,
  );
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
  rankedRows(rows);
  const known = columnAxes(tasks, rows);
  const key = known.find((axis) => axis === option("axis")) ?? known[0];
  if (!key) return [nothing("These tasks lie on no axis with several values.")];
  const compared = comparedRows(rows);
  const several = selectedStrategies().length > 1;
  const lines = bySection(tasks, key)
    .filter(([value]) => value !== null)
    .map(([value, members]) => ({
      title: `${valueTitle(key, value)} (${members.length})`,
      node: link(address("leaderboard", "", { [key]: asList([value]) }), valueTitle(key, value)),
      points: compared.flatMap((row, series) =>
        profilePoint(row, series, members, groupsOf(members, [key]), valueTitle(key, value)),
      ),
    }));
  const points = lines.flatMap((line) => line.points);
  return [
    make(
      "div",
      { className: "controls" },
      selector(
        "Axis",
        "axis",
        known.map((axis) => [axis, axisTitle(axis)]),
        key,
      ),
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

function profilePoint(row, series, members, asGroups, title) {
  const reached = aggregate(row.entry, row.strategy, members, asGroups);
  if (!reached || reached.score === null) return [];
  const { score: value, low, high, approximate, scored, total } = reached;
  const partial = scored < total;
  return [{ series, value, low, high, approximate, partial, tip: [title, ...tipLines({ ...row, ...reached })] }];
}

// Up to eight rows, ticked in a list that can be searched.
function modelPicker(rows, compared, several) {
  const taken = new Set(compared.map(rowId));
  const set = (ids) => change({ models: asList(ids) });
  const list = make("div", { className: "choices" });
  const fill = (words) => {
    const found = [...rows]
      .sort(
        (one, other) =>
          Number(taken.has(rowId(other))) - Number(taken.has(rowId(one))) ||
          compareValues(rowTitle(one, several), rowTitle(other, several)),
      )
      .filter((row) => rowTitle(row, several).toLowerCase().includes(words.toLowerCase()))
      .slice(0, 200);
    list.replaceChildren(
      ...found.map((row) => {
        const id = rowId(row);
        const box = make("input", {
          type: "checkbox",
          checked: taken.has(id),
          disabled: !taken.has(id) && taken.size >= MOST_SERIES,
          "data-key": `model ${id}`,
          onchange: () => set(box.checked ? [...taken, id] : [...taken].filter((other) => other !== id)),
        });
        return make("label", {}, box, text("span", "word", rowTitle(row, several)));
      }),
    );
  };
  fill(pickerSearch);
  const search = make("input", {
    type: "search",
    placeholder: "Find a model",
    value: pickerSearch,
    "aria-label": "Find a model to compare",
    oninput: () => {
      pickerSearch = search.value;
      fill(pickerSearch);
    },
  });
  const menu = make(
    "details",
    { className: "menu wide", open: pickerOpen },
    make("summary", {}, "Models ", text("span", "chosen", `${compared.length} of at most ${MOST_SERIES}`)),
    make("div", { className: "panel" }, search, list),
  );
  menu.addEventListener("toggle", () => {
    pickerOpen = menu.open;
  });
  return menu;
}
let pickerOpen = false; // a tick draws the view anew; the open list stays open
let pickerSearch = "";
