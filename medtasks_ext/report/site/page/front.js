// The front page: a row for each model with its number and rank in every suite, and the score by size and date.

const WITH_PICTURE_BESIDE = "(min-width: 75rem)";
const BESIDE = 430; // pixels of a picture beside the table

// Views that people look for: title, page of the suite (empty: this one), address.
const VIEWS = [
  ["by language", "bridge", "axis=language"],
  ["by kind of task", "bridge", "axis=task_type"],
  ["by specialty", "bridge", "axis=specialties"],
  ["by clinical stage", "bridge", "axis=stage"],
  ["medical against general", "", "colour=domain"],
  ["open against closed", "", "colour=access"],
  ["reasoning against not", "", "colour=reasoning"],
  ["by price", "", "against=price"],
];

function drawFront() {
  const here = new Set(site.links.map(([target]) => target));
  const columns = [...site.columns.keys()];
  const { strategy, by, sections, shown } = shownRows(columns);
  const own = shown.filter(isSubmitted);
  const beside = matchMedia(WITH_PICTURE_BESIDE).matches;
  const published = plural(shown.length - own.length, "published model");
  const models = make(
    "div",
    { className: "models" },
    note(
      `${published}${own.length ? `, ${plural(own.length, "submission")}` : ""} · sorted by ${columnTitle(by)}. Below a ` +
        "number stand its 95 % interval (p: the paper’s own), its rank among comparable results, and the model’s version (v.). " +
        "Of several versions the best stands here, all on the model’s page.",
    ),
    whatRanksProve(shown),
    modelsTable(shown, {
      className: "lines front-lines",
      caption: `Models: ${site.strategies[strategy][1]}, sorted by ${columnTitle(by)}`,
      columns: frontColumns(columns, strategy, by),
      sort: `-c${columns[0]}`,
      sections,
      limit: beside ? SHOWN : 20,
    }),
  );
  const picture_ = part(shown, strategy, by, beside ? BESIDE : 640);
  return [
    text("h2", "", site.title),
    views(VIEWS.filter(([, suite]) => !suite || here.has(`${suite}.html`))),
    controls(presets()),
    make("div", { className: "front" }, ...(own.length || beside ? [models, picture_] : [picture_, models])),
  ];
}

// Links to views; the address says which one is shown.
function views(found) {
  const links = found.map(([title, suite, at]) => link(`${suite ? `${suite}.html` : ""}#${at}`, title));
  return make("nav", { className: "links", "aria-label": "Views" }, bullets(links));
}

function frontColumns(columns, strategy, by) {
  const { date } = site.entries;
  const month = ({ entry }) => (date[entry] ? withTip(text("span", "month", date[entry].slice(0, 7)), date[entry]) : NONE);
  return [
    NAME_COLUMN,
    SIZE_COLUMN,
    wordColumn("date", "Released", { className: "size", sort: "desc", value: ({ entry }) => date[entry], cell: month }),
    ...scoreColumns(columns, strategy, by, ({ entry }, column) => frontCell(strategy, column, entry)),
  ];
}

function frontCell(strategy, column, entry) {
  const cell = site.scores[strategy][column][entry];
  if (cell === null) return NONE;
  const tasks = site.columns[column][2];
  const found = site.intervals[strategy][column][entry];
  const rank = site.ranks[strategy][column][entry];
  const words = apartWords(strategy, column, entry);
  const of = site.ranked[strategy][column];
  const under = [
    rank && of > 1 ? `${rank} of ${of}` : null,
    isPart(cell) ? (cell[1] < tasks ? `on ${cell[1]} of ${tasks}` : "on a part") : null,
    isUnproven(cell) ? "not proven" : words ? "other conditions" : null,
    site.versions[strategy][column][entry]?.replace(/^(?=\d)/, "v. "),
  ].filter(Boolean);
  const shown = make(
    "span",
    {},
    score(valueOf(cell)),
    found ? text("span", "under-score", ends(found)) : null,
    ...under.map((words) => text("span", "under-score", words)),
  );
  return words ? withTip(shown, `${columnTitle(column)}: ${score(valueOf(cell))}`, `other conditions: ${words}`) : shown;
}
