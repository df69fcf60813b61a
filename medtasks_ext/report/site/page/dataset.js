// The page of a dataset: who is best, how far from the ceiling, what is odd, its terms, how to run it.

function drawDataset() {
  const boards = site.boards.map(({ strategy }) => strategy);
  const board = site.boards[boards.indexOf(choice("strategy", boards))];
  const { language, task_type, stage, specialties, document_types } = site.axes;
  const [suite, title] = site.suite;
  const isThere = site.links.some(([target]) => target === `${suite}.html`);
  return [
    text("h2", "", site.title),
    text("p", "lead", site.summary),
    factList([
      ["Suite", isThere ? link(`${site.home}${suite}.html`, title) : title],
      ["Language", language],
      ["Kind of task", task_type],
      ["Clinical stage", stage],
      ["Specialties", specialties],
      ["Documents", document_types],
      ...site.own_axes,
      ["Access", site.access],
      ["Test rows", count(site.n)],
    ]),
    make(
      "div",
      { className: "two" },
      make(
        "div",
        {},
        board ? bestPart(board, boards) : note("No paper of these pages prints a score of it, and no submission has one."),
        unsettledPart(),
      ),
      runPart(),
    ),
  ];
}

function bestPart(board, boards) {
  const rows = board.best.map(([label, page, value, rank, size, access, published]) => {
    return { label, page, value, rank, size, access, published };
  });
  const [{ label, page, value }] = rows;
  const left = site.ceiling === null ? null : fixed(Math.max(0, site.ceiling - nearest(value)));
  const columns = [
    numberColumn("rank", "Rank", { sort: "asc", format: String }),
    wordColumn("model", "Model", { head: true, value: (row) => row.label, cell: (row) => modelPage(row.page, row.label) }),
    scoreColumn("score", "Score", { value: (row) => row.value, format: (found) => barred(found) }),
    numberColumn("size", "Size, B", { format: sizeText }),
    wordColumn("access", "Weights"),
  ];
  return make(
    "section",
    {},
    text("h3", "", "Who is best"),
    controls(boards.length > 1 ? switcher("Strategy", "strategy", boards.map((name) => [name, name]), board.strategy) : null),
    make(
      "p",
      { className: "lead" },
      `Best of ${plural(board.n, "model")}: `,
      link(`${site.home}models/${page}`, label),
      ` with ${score(value)}; median ${score(board.median)}.`,
      left === null
        ? " The maximum depends on the rows."
        : ` Maximum ${fixed(site.ceiling)}; ${left} above the best model.`,
    ),
    table({
      name: "best",
      className: "lines",
      caption: `Best models on ${site.title}, ${board.strategy}`,
      rows,
      sort: "rank",
      limit: 8,
      classOf: ({ published }) => (published ? "" : "own"),
      columns,
    }),
  );
}

const unsettledPart = () =>
  site.unsettled.length ? make("section", {}, text("h3", "", "What is unsettled"), bullets(site.unsettled)) : null;

const runLines = (id) => [
  `medtasks preview ${id} --data sample`,
  `medtasks run --tasks ${id} --model vllm --model_args pretrained=ORG/MODEL`,
  `lm_eval --tasks ${id} --model vllm --model_args pretrained=ORG/MODEL --batch_size auto --apply_chat_template`,
];

function runPart() {
  const linked = (words) => (/^https:\/\/\S+$/.test(words) ? link(words, words) : words);
  return make(
    "section",
    {},
    text("h3", "", "How to run it"),
    make("pre", { tabIndex: 0, textContent: runLines(site.id).join("\n\n") }),
    text("h3", "", "Score, rows and terms"),
    termList(site.facts.filter(([, words]) => words).map(([term, words]) => [term, linked(words)])),
  );
}

// ------------------------------------------------------------------ all of them

// What the rows of `datasets` hold, in their order (medtasks_ext/report/site/write.py).
const OF_DATASET = ["id", "name", "suite", "language", "kind", "stage", "specialties", "access", "n", "best", "ceiling"];

function drawDatasets() {
  const all = site.datasets.map((row) => Object.fromEntries(OF_DATASET.map((name, place) => [name, row[place]])));
  const suites = [...new Set(all.map((row) => row.suite))].map((name) => [name, name]);
  const words = option("q").toLowerCase().split(/\s+/).filter(Boolean);
  const textOf = (row) => OF_DATASET.slice(0, 8).map((name) => row[name]).join(" ").toLowerCase();
  const isChosen = (row) => !option("suite") || row.suite === option("suite");
  const rows = all.filter((row) => isChosen(row) && words.every((word) => textOf(row).includes(word)));
  const search = searchBox("q", "name, language, specialty …");
  const shown = `${plural(rows.length, "dataset")} of ${count(all.length)}`;
  return [
    text("h2", "", site.title),
    make(
      "section",
      { className: "filters", "aria-label": "What is shown" },
      controls(
        selector("Suite", "suite", [["", "all suites"], ...suites], option("suite")),
        make("label", { className: "select" }, text("span", "switch-label", "Search"), search),
      ),
    ),
    note(`${shown}. Best: of the models that papers print and of checked submissions, zero-shot.`),
    table({
      name: "datasets",
      className: "lines",
      caption: "Datasets",
      rows,
      sort: "name",
      columns: [
        wordColumn("name", "Dataset", {
          head: true,
          cell: (row) => link(`${site.home}datasets/${row.id}.html`, row.name, { className: "name" }),
        }),
        wordColumn("language", "Language"),
        scoreColumn("best", "Best", { value: (row) => row.best?.[2], cell: (row) => (row.best ? barred(row.best[2]) : NONE) }),
        wordColumn("model", "By", {
          value: (row) => row.best?.[0],
          cell: (row) => (row.best ? link(`${site.home}models/${row.best[1]}`, row.best[0]) : NONE),
        }),
        wordColumn("kind", "Kind of task"),
        wordColumn("stage", "Stage"),
        wordColumn("suite", "Suite"),
        numberColumn("ceiling", "Ceiling", { format: (value) => (isNumber(value) ? fixed(value, 2) : "by row") }),
        numberColumn("n", "Rows", { format: count }),
        wordColumn("access", "Access"),
      ],
    }),
  ];
}
