// The page of a dataset: who is best, how far from the ceiling, what is odd, its terms, how to run it.

function drawDataset() {
  const boards = site.boards.map(({ strategy }) => strategy);
  const board = site.boards[boards.indexOf(choice("strategy", boards))] ?? null;
  const { language, task_type, stage, specialties, document_types } = site.axes;
  return [
    text("h2", "", site.title),
    text("p", "lead", site.summary),
    make(
      "dl",
      { className: "facts" },
      make("div", {}, text("dt", "", "Suite"), make("dd", {}, hasPage(`${site.suite[0]}.html`) ? link(`${site.home}${site.suite[0]}.html`, site.suite[1]) : site.suite[1])),
      ...[["Language", language], ["Kind of task", task_type], ["Clinical stage", stage], ["Specialties", specialties], ["Documents", document_types], ...site.own_axes, ["Access", site.access], ["Test rows", count(site.n)]].map(([term, words]) => fact(term, words)),
    ),
    make(
      "div",
      { className: "two" },
      make("div", {}, board ? bestPart(board, boards) : note("No paper of these pages prints a score of it, and no submission has one."), unsettledPart()),
      runPart(),
    ),
  ];
}

const hasPage = (name) => site.links.some(([target]) => target === name);

function bestPart(board, boards) {
  const [label, page, best] = board.best[0];
  const ceiling = site.ceiling;
  const room = ceiling === null ? null : ceiling - nearest(best);
  const words = [
    `Best of ${plural(board.n, "model")}: `,
    link(`${site.home}models/${page}`, label),
    ` with ${score(best)}; median ${score(board.median)}.`,
    room === null ? " What a perfect answer gets depends on the rows." : ` A perfect answer gets ${fixed(ceiling)}: ${fixed(Math.max(0, room))} are left.`,
  ];
  return make(
    "section",
    {},
    text("h3", "", "Who is best"),
    make("div", { className: "controls" }, boards.length > 1 ? switcher("Strategy", "strategy", boards.map((name) => [name, name]), board.strategy) : null),
    make("p", { className: "lead" }, ...words),
    table({
      name: "best",
      className: "lines",
      caption: `Best models on ${site.title}, ${board.strategy}`,
      rows: board.best,
      sort: "rank",
      limit: 8,
      classOf: (row) => (row[6] ? "" : "own"),
      columns: [
        { key: "rank", title: "Rank", numeric: true, sort: "asc", value: (row) => row[3], cell: (row) => String(row[3]) },
        { key: "model", title: "Model", head: true, value: (row) => row[0], cell: (row) => link(`${site.home}models/${row[1]}`, row[0], { className: "name" }) },
        { key: "score", title: "Score", numeric: true, value: (row) => row[2], cell: (row) => make("span", {}, scoreBar(row[2], null), score(row[2])) },
        { key: "size", title: "Size, B", numeric: true, value: (row) => row[4], cell: (row) => (isNumber(row[4]) ? String(row[4]) : NONE) },
        { key: "access", title: "Weights", value: (row) => row[5], cell: (row) => row[5] ?? NONE },
      ],
    }),
  );
}

function unsettledPart() {
  const said = site.unsettled.map((words) => text("li", "", words));
  return said.length ? make("section", {}, text("h3", "", "What is unsettled"), make("ul", {}, ...said)) : null;
}

function runPart() {
  return make(
    "section",
    {},
    text("h3", "", "How to run it"),
    make("pre", { tabIndex: 0, textContent: site.run.join("\n\n") }),
    text("h3", "", "Score, rows and terms"),
    make("dl", { className: "words" }, ...site.facts.filter(([, words]) => words).flatMap(([term, words]) => [text("dt", "", term), make("dd", {}, /^https:\/\/\S+$/.test(words) ? link(words, words) : words)])),
  );
}

// ------------------------------------------------------------------ all of them

function drawDatasets() {
  const suites = [...new Set(site.datasets.map((row) => row[2]))];
  const words = option("q").toLowerCase().split(/\s+/).filter(Boolean);
  const rows = site.datasets.filter((row) => (!option("suite") || row[2] === option("suite")) && words.every((word) => row.slice(0, 8).join(" ").toLowerCase().includes(word)));
  const search = make("input", { type: "search", id: "search", placeholder: "name, language, specialty …", value: option("q"), "data-key": "search", oninput: (event) => change({ q: event.target.value }) });
  const column = (key, title, place) => ({ key, title, value: (row) => row[place], cell: (row) => row[place] || NONE });
  return [
    text("h2", "", site.title),
    make(
      "section",
      { className: "filters", "aria-label": "What is shown" },
      make("div", { className: "controls" }, selector("Suite", "suite", [["", "all suites"], ...suites.map((name) => [name, name])], option("suite")), make("label", { className: "select" }, text("span", "switch-label", "Search"), search)),
    ),
    text("p", "note", `${plural(rows.length, "dataset")} of ${count(site.datasets.length)}. Best: of the models that papers print and of checked submissions, zero-shot.`),
    table({
      name: "datasets",
      className: "lines",
      caption: "Datasets",
      rows,
      sort: "name",
      columns: [
        { key: "name", title: "Dataset", head: true, value: (row) => row[1], cell: (row) => link(`${site.home}datasets/${row[0]}.html`, row[1], { className: "name" }) },
        column("language", "Language", 3),
        { key: "best", title: "Best", numeric: true, value: (row) => row[9]?.[2], cell: (row) => (row[9] ? make("span", {}, scoreBar(row[9][2], null), score(row[9][2])) : NONE) },
        { key: "model", title: "By", value: (row) => row[9]?.[0], cell: (row) => (row[9] ? link(`${site.home}models/${row[9][1]}`, row[9][0]) : NONE) },
        column("kind", "Kind of task", 4),
        column("stage", "Stage", 5),
        column("suite", "Suite", 2),
        { key: "ceiling", title: "Ceiling", numeric: true, value: (row) => row[10], cell: (row) => (isNumber(row[10]) ? fixed(row[10], 2) : "by row") },
        { key: "n", title: "Rows", numeric: true, value: (row) => row[8], cell: (row) => count(row[8]) },
        column("access", "Access", 7),
      ],
    }),
  ];
}
