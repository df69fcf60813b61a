// The page of a model: where it stands, what it scored, and under which conditions.

function drawModel() {
  const link_ = site.hub_id ? link(`https://huggingface.co/${site.hub_id.split("/").map(encodeURIComponent).join("/")}`, site.hub_id) : null;
  return [
    make("h2", {}, site.title),
    make(
      "dl",
      { className: "facts" },
      ...site.facts.map(([term, meaning]) => fact(term, String(meaning))),
      link_ ? make("div", {}, text("dt", "", "On the hub"), make("dd", {}, link_)) : null,
    ),
    ...site.lines.map(drawLine),
  ];
}

const fact = (term, meaning) => make("div", {}, text("dt", "", term), text("dd", "", meaning));

function drawLine(line, number) {
  return make(
    "section",
    { className: "line-of-model" },
    make("h3", {}, line.label, " ", tag("", line.published ? "published" : "submitted")),
    make("dl", { className: "facts" }, ...line.source.map(([term, meaning]) => fact(term, meaning))),
    placesTable(line, number),
    ...line.standings.map(standing),
    line.tasks.length ? tasksPart(line, number) : note("The paper prints no score of single tasks."),
    line.settings.length ? conditions(line) : null,
  );
}

function placesTable(line, number) {
  const place = ({ rank, of_paper, otherwise, unproven }) => {
    if (unproven) return `${NONE} not proven`;
    const among = of_paper ? "" : ` (asked otherwise: ${otherwise})`;
    return rank ? `${rank[0]} of ${rank[1]}${among}` : `${NONE} not on all tasks, rows and judgements${among}`;
  };
  return make(
    "div",
    {},
    text("h4", "", "Suites"),
    table({
      name: `places${number}`,
      caption: `Scores of ${line.label} in suites`,
      rows: line.places,
      columns: [
        { key: "suite", title: "Suite", head: true, value: (row) => row.title, cell: (row) => link(`${site.home}${row.suite}.html`, row.title) },
        { key: "strategy", title: "Asked", value: (row) => row.strategy, cell: (row) => row.strategy },
        { key: "score", title: "Score", numeric: true, value: (row) => row.score, cell: (row) => make("span", {}, scoreBar(row.score, row.interval), score(row.score)) },
        { key: "interval", title: "95 % interval", cell: (row) => text("span", "soft", ends(row.interval) || NONE) },
        { key: "tasks", title: "Tasks", numeric: true, value: (row) => row.tasks, cell: (row) => (row.tasks === null ? NONE : `${row.tasks} of ${row.of}`) },
        { key: "place", title: "Rank", value: (row) => row.rank?.[0], cell: place },
      ],
      sort: "suite",
    }),
  );
}

// Every published model a line on the scale of scores; this one a point above them.
function standing(item) {
  const every = [...item.rivals, item.own];
  const [least, most] = [Math.min(...every), Math.max(...every)];
  const at = (value) => `${2 + (96 * (value - least)) / (most - least || 1)}%`;
  const picture = shape(
    "svg",
    { class: "strip", width: "100%", height: 44, role: "img", "aria-label": item.sentence },
    shape("line", { class: "base", x1: "2%", x2: "98%", y1: 26, y2: 26 }),
    ...item.rivals.map((value) => shape("line", { class: "rival", x1: at(value), x2: at(value), y1: 16, y2: 26 })),
    shape("circle", { class: "own", cx: at(item.own), cy: 8, r: 6 }),
    shape("text", { x: "2%", y: 42 }, score(least)),
    shape("text", { x: "98%", y: 42, "text-anchor": "end" }, score(most)),
  );
  return make(
    "section",
    {},
    text("h4", "", `Where it stands: ${item.strategy}`),
    text("p", "lead", `${item.sentence}.`),
    picture,
    make("ul", {}, ...item.remarks.map((line) => text("li", "", line))),
  );
}

const suiteTitle = (suite) => site.suites[suite] ?? suite;

function tasksPart(line, number) {
  const key = `suite${number}`;
  const suites = [...new Set(line.tasks.map(([suite]) => suite))];
  const rows = line.tasks.filter(([suite]) => !option(key) || suite === option(key));
  const chosen = suites.length > 1 ? selector("Suite", key, [["", "all"], ...suites.map((suite) => [suite, suiteTitle(suite)])], option(key)) : null;
  const otherwise = (row) => (row[9] === null ? "" : line.reasons[row[9]]);
  const trust = (row) => (row[10] === null ? "" : line.reasons[row[10]]);
  return make(
    "div",
    {},
    text("h4", "", "Tasks"),
    make("div", { className: "controls" }, chosen),
    table({
      name: `tasks${number}`,
      className: "tall",
      caption: `Scores of ${line.label} by task`,
      rows,
      columns: [
        { key: "task", title: "Task", head: true, value: (row) => row[1], cell: (row) => row[1] },
        { key: "suite", title: "Suite", value: (row) => suiteTitle(row[0]), cell: (row) => suiteTitle(row[0]) },
        { key: "strategy", title: "Asked", value: (row) => row[2], cell: (row) => row[2] },
        { key: "score", title: "Score", numeric: true, value: (row) => row[3], cell: (row) => score(row[3]) },
        { key: "interval", title: "95 % interval", cell: (row) => text("span", "soft", row[4] ? `[${score(row[4][0])}, ${score(row[4][1])}]` : NONE) },
        { key: "n", title: "Documents", numeric: true, value: (row) => row[5], cell: (row) => documents(row) },
        { key: "valid", title: "Readable", numeric: true, value: (row) => row[7], cell: (row) => (row[7] === null ? NONE : percent(nearest(row[7]))) },
        ...(line.published ? [] : [{ key: "otherwise", title: "Beside the paper", value: otherwise, cell: (row) => otherwise(row) || row[8] || NONE }]),
        ...(line.published ? [] : [{ key: "trust", title: "Trust", value: trust, cell: trust }]),
      ],
      sort: "task",
      limit: 60,
    }),
  );
}

const documents = (row) => (isNumber(row[6]) && row[6] !== row[5] ? `${count(row[5])} of ${count(row[6])}` : count(row[5]));

function conditions(line) {
  return folded("Conditions and versions", () =>
    make(
      "dl",
      { className: "facts" },
      ...line.settings.map(([name, said]) => fact(name, said || "none")),
      ...line.versions.map(([name, said]) => fact(name, said)),
    ),
  );
}
