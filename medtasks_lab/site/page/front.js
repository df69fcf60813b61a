// The front page: a row for each model with its number and rank in every suite, and the score by size and date.

const report = site; // the report's scripts of pictures read their data by this name
const PINNED = 10; // submissions that stand above all: ranked ones first
const BESIDE = 430; // pixels of a picture beside the table
const WITH_PICTURES_BESIDE = "(min-width: 75rem)";
const AGAINST = [
  { name: "size", heading: "by size", title: "parameters in billions, logarithmic", type: "quantitative", scale: "log", format: "~g", value: ({ size }) => size, said: (value) => `${value} B`, better: "smaller" },
  { name: "release date", heading: "by date", title: "release date", type: "temporal", scale: "time", format: "%b %Y", value: ({ date }) => (/^\d{4}-\d\d-\d\d$/.test(date ?? "") ? date : null), said: (value) => value, better: "earlier" },
];

function drawFront() {
  forgetPictures();
  const strategies = site.strategies.map(([id]) => id);
  const strategy = strategies.indexOf(choice("strategy", strategies));
  const columns = site.columns.map((_, column) => column);
  const by = sortedColumn(columns);
  const { rows, sections } = ranked(strategy, by);
  const shown = rows.filter(matches);
  const own = shown.filter(({ entry }) => !site.entries.published[entry]);
  const pinned = [...own].sort((one, other) => (one.rank === null) - (other.rank === null)).slice(0, PINNED);
  const beside = matchMedia(WITH_PICTURES_BESIDE).matches;
  const models = make(
    "div",
    { className: "models" },
    text("p", "note", `${countedModels(shown)} · sorted by ${columnTitle(by)}. Below a number stand its 95 % interval, its rank among results that were asked alike, and the version; a dash is a gap. Of several versions the best stands here, all on the model’s page.`),
    shown.some(({ entry, rank }) => rank !== null && !site.entries.published[entry]) ? whatRanksProve() : null,
    table({
      name: "lines",
      className: "lines front-lines",
      caption: `Models: ${site.strategies[strategy][1]}, sorted by ${columnTitle(by)}`,
      columns: frontColumns(columns, strategy, by),
      rows: shown,
      sort: `-c${columns[0]}`,
      sections,
      sectionOf: (row) => row.section,
      limit: beside ? SHOWN : 20,
      classOf: ({ entry }) => (site.entries.published[entry] ? "" : "own"),
      pinned: { heading: `${plural(own.length, "submission")}${own.length > PINNED ? `, ${PINNED} of them here` : ""}`, rows: pinned },
    }),
  );
  const pictures = make("div", { className: "front-pictures", id: "pictures" }, ...AGAINST.map((fact) => modelPicture(shown, strategy, by, fact)));
  return [
    text("h2", "", site.title),
    jumps(own.length, beside),
    controls(strategies[strategy], null),
    make("div", { className: "front" }, models, pictures),
  ];
}

const countedModels = (shown) => {
  const published = shown.filter(({ entry }) => site.entries.published[entry]).length;
  return `${plural(published, "published model")}${shown.length > published ? `, ${plural(shown.length - published, "submission")}` : ""}`;
};

// The address holds what is shown, so that these are no links.
function jumps(own, beside) {
  const to = (words, selector) =>
    make("button", { type: "button", className: "small", textContent: words, onclick: () => document.querySelector(selector)?.scrollIntoView() });
  if (!own && beside) return null;
  return make(
    "p",
    { className: "jumps" },
    own ? to(`${plural(own, "submission")}: where they stand`, ".lines .pinned") : null,
    " ",
    beside ? null : to("Score by size and date", "#pictures"),
  );
}

function frontColumns(columns, strategy, by) {
  const { label, date } = site.entries;
  return [
    { key: "model", title: "Model", head: true, value: ({ entry }) => label[entry], cell: modelCell },
    SIZE_COLUMN,
    { key: "date", title: "Released", className: "size", sort: "desc", value: ({ entry }) => date[entry], cell: ({ entry }) => (date[entry] ? withTip(text("span", "month", date[entry].slice(0, 7)), date[entry]) : NONE) },
    ...scoreColumns(columns, strategy, by, ({ entry }, column) => frontCell(strategy, column, entry)),
  ];
}

function frontCell(strategy, column, entry) {
  const cell = site.scores[strategy][column][entry];
  if (cell === null) return NONE;
  const suite = site.columns[column][3];
  const tasks = site.columns[column][2];
  const found = site.intervals[strategy][column][entry];
  const rank = site.ranks[strategy][column][entry];
  const words = site.class_words[strategy][suite][site.classes[strategy][suite][entry]];
  const alone = rank?.[1] === 1;
  const under = [
    rank && !alone ? `${rank[0]} of ${rank[1]}` : null,
    isPart(cell) ? (cell[1] < tasks ? `on ${cell[1]} of ${tasks}` : "on a part") : null,
    isUnproven(cell) ? "not proven" : words ? "asked otherwise" : null,
    site.versions[strategy][column][entry]?.replace(/^(?=\d)/, "version "),
  ].filter(Boolean);
  const shown = make(
    "span",
    {},
    score(valueOf(cell)),
    found ? text("span", "under-score", ends(found).replace("paper’s own: ", "")) : null,
    ...under.map((words) => text("span", "under-score", words)),
  );
  const tips = [
    found ? `95 % interval${found[2] ? ", the paper’s own" : ", from those of the tasks"}` : null,
    words ? `asked otherwise: ${words}` : null,
  ].filter(Boolean);
  return tips.length ? withTip(shown, `${columnTitle(column)}: ${score(valueOf(cell))}`, ...tips) : shown;
}

// ------------------------------------------------------------------ pictures

// Numbers that stand on all tasks, of published models and of what was asked as the paper asked.
function modelPicture(rows, strategy, by, fact) {
  const cells = site.scores[strategy][by];
  const dates = site.dates[strategy][by];
  const found = site.intervals[strategy][by];
  const heading = `${columnTitle(by)} ${fact.heading}`;
  const scored = rows.filter(({ entry, section }) => section === "class 0" && isRanked(cells[entry]));
  const points = scored
    .map(({ entry, rank, of }) => ({
      entry,
      rank,
      of,
      size: site.entries.size[entry] ?? null,
      date: dates[entry],
      score: nearest(cells[entry]),
      low: found[entry] ? nearest(found[entry][0]) : null,
      high: found[entry] ? nearest(found[entry][1]) : null,
      scored: 1,
      total: 1,
    }))
    .filter((point) => fact.value(point) !== null);
  if (!points.length) return titled(heading, note(`No model that is shown has a known ${fact.name} and this number.`));
  const { label, published, domain, page } = site.entries;
  const groupOf = ({ entry }) => (published[entry] ? (domain[entry] ?? "other") : "submission");
  const groups = ["submission", "general", "medical", "other"].filter((name) => points.some((point) => groupOf(point) === name));
  const front = frontOf(points, fact);
  const named = apart(front, points, 0.09);
  const missing = scored.length - points.length;
  const caption = `Results that were asked as the paper asked. The dashed line joins the models that nothing ${fact.better} beats.${missing ? ` ${plural(missing, "model")} not shown: ${fact.name} not known${fact.name === "size" ? "" : " to the day"}.` : ""}`;
  const width = Math.min(matchMedia(WITH_PICTURES_BESIDE).matches ? BESIDE : 640, roomOf());
  return titled(
    heading,
    picture({
      kind: "scatter",
      label: `${heading}, ${site.strategies[strategy][1]}`,
      rows: points.map((point) => ({
        x: fact.value(point),
        value: point.score,
        low: point.low,
        high: point.high,
        group: groupOf(point),
        label: !published[point.entry] || named.includes(point) ? label[point.entry] : null,
        entry: point.entry,
        tip: [label[point.entry], point.score.toFixed(3), point.rank ? `rank ${point.rank} of ${point.of}` : null, `${fact.name}: ${fact.said(fact.value(point))}`].filter(Boolean).join("\n"),
      })),
      words: {
        width,
        tall: 290,
        x_type: fact.type,
        x_scale: fact.scale,
        x_title: fact.title,
        x_format: fact.format,
        x_ticks: 4,
        measure: columnTitle(by),
        format: ".4~f",
        groups,
        ...looksOf(groups),
        legend: { title: null, columns: 0, orient: "top" },
        front: front.map((point) => ({ x: fact.value(point), value: point.score })),
      },
      pick: ({ entry }) => {
        if (isNumber(entry)) location.assign(`${site.home}models/${page[entry]}`);
      },
      values: () => pointsTable(points, fact, by, groupOf),
    }),
    note(caption),
  );
}

function pointsTable(points, fact, by, groupOf) {
  const { label, page } = site.entries;
  return table({
    name: fact.name === "size" ? "sizes" : "dates",
    caption: `${columnTitle(by)} and ${fact.name}`,
    rows: points,
    sort: "-score",
    columns: [
      { key: "model", title: "Model", head: true, value: ({ entry }) => label[entry], cell: ({ entry }) => link(`${site.home}models/${page[entry]}`, label[entry]) },
      { key: "fact", title: fact.name, numeric: fact.name === "size", sort: "asc", value: fact.value, cell: (point) => fact.said(fact.value(point)) },
      { key: "group", title: "Kind", value: groupOf, cell: groupOf },
      { key: "score", title: columnTitle(by), numeric: true, value: (point) => point.score, cell: (point) => point.score.toFixed(3) },
    ],
  });
}
