// The page of a model: what it is, where it is strong and weak, and every score with its conditions.

const FACT_TITLES = [
  ["organisation", "Organisation"],
  ["size", "Parameters, billions"],
  ["access", "Weights"],
  ["domain", "Domain"],
  ["reasoning", "Reasons before it answers"],
  ["date", "Released"],
  ["license", "Licence"],
  ["price_in", "Input, USD per million tokens"],
  ["price", "Output, USD per million tokens"],
];

function drawModel() {
  const path = site.hub_id?.split("/").map(encodeURIComponent).join("/");
  const lead = leadOf();
  return [
    make("h2", {}, site.title),
    factList([
      ...FACT_TITLES.filter(([name]) => name in site.facts).map(([name, term]) => [term, String(site.facts[name])]),
      ["On the hub", path ? link(`https://huggingface.co/${path}`, site.hub_id) : null],
    ]),
    lead ? profilePart(lead) : null,
    ...site.lines.map(drawLine),
  ];
}

// ------------------------------------------------------------------ strong and weak

const profiles = () => site.lines.flatMap((line) => line.places.filter(({ axes }) => axes).map((place) => ({ ...place, line })));

// The chosen profile, else the one on the most tasks.
function leadOf() {
  const found = profiles().map((profile, number) => ({ ...profile, number: String(number) }));
  const most = found.reduce((one, other) => (one && one.of >= other.of ? one : other), null);
  return found.find(({ number }) => number === option("profile")) ?? most;
}

function profilePart(lead) {
  const [rank, of] = lead.rank;
  const several = site.lines.length > 1;
  const titles = profiles().map(({ title, strategy, line }, number) => [
    String(number),
    `${title}, ${strategy}${several ? `: ${line.label}` : ""}`,
  ]);
  return make(
    "section",
    { className: "profile" },
    text("h3", "", `${lead.title}: ${score(lead.score)}, rank ${rank} of ${of}${lead.line.published ? "" : " (submitted)"}`),
    titles.length > 1 ? controls(selector("Shown", "profile", titles, lead.number)) : null,
    note(
      "Ranks are among comparable results: at 0 % no other model scores less, at 100 % all do. Beside it stand the score, " +
        "and how far it is from the median.",
    ),
    make("div", { className: "percentiles" }, ...lead.axes.map((axis) => drawnLater(160, () => axisPicture(lead, axis)))),
  );
}

function axisPicture(lead, [axis, values]) {
  const label = `${axis}: share of the other models that ${lead.line.label} is above, ${lead.title}`;
  const rows = values.map(([title, n, value, middle, rank, of]) => {
    const ahead = nearest(value) - nearest(middle);
    const said = `${score(value)} on ${plural(n, "task")}, rank ${rank} of ${of}, ${signed(ahead)} from the median`;
    const words = `${score(value)}  ${signed(ahead, 2)}`;
    return { title: `${title} (${n})`, value: (of - rank) / (of - 1), lead: ahead, words, tip: `${title}\n${said}` };
  });
  const table_ = () =>
    matrixTable({
      label,
      heading: axis,
      rows: values.map(([title]) => ({ title })),
      columns: ["score", "median", "rank", "of", "tasks"].map((title) => ({ title })),
      cell: (row, column) => {
        const [, n, value, middle, rank, of] = values[row];
        return [score(value), score(middle), String(rank), String(of), count(n)][column];
      },
    });
  return percentiles({ label, heading: axis, rows, beside: 96, values: table_ });
}

// ------------------------------------------------------------------ a line

function drawLine(line, number) {
  return make(
    "section",
    { className: "line-of-model" },
    make("h3", {}, line.label, " ", tag("", line.published ? "published" : "submitted")),
    make("div", {}, text("h4", "", "Suites"), placesTable(line, number)),
    factList(line.source),
    line.tasks.length ? tasksPart(line, number) : note("The paper prints no score of single tasks."),
    line.settings.length
      ? folded("Conditions and versions", () => factList(line.settings.map(([name, said]) => [name, said || "none"])))
      : null,
  );
}

function placesTable(line, number) {
  const place = ({ rank, otherwise, unproven }) => {
    if (rank) return `${rank[0]} of ${rank[1]}`;
    if (unproven) return `${NONE} not proven`;
    return `${NONE} ${otherwise ? `other conditions: ${otherwise}` : "not on all tasks, rows and judgements"}`;
  };
  return table({
    name: `places${number}`,
    caption: `Scores of ${line.label} in suites`,
    rows: line.places,
    sort: "suite",
    columns: [
      wordColumn("suite", "Suite", {
        head: true,
        value: (row) => row.title,
        cell: (row) => link(`${site.home}${row.suite}.html`, row.title),
      }),
      wordColumn("strategy", "Strategy"),
      scoreColumn("score", "Score", { cell: (row) => barred(row.score, row.interval) }),
      intervalColumn((row) => row.interval),
      numberColumn("tasks", "Tasks", { cell: (row) => (row.tasks === null ? NONE : `${row.tasks} of ${row.of}`) }),
      wordColumn("place", "Rank", { value: (row) => row.rank?.[0], cell: place }),
    ],
  });
}

// What the rows of `tasks` hold, in their order (medtasks_ext/report/site/write.py).
const OF_TASK = [
  ...["suite", "task", "strategy", "score", "interval", "n"],
  ...["of", "valid", "id", "otherwise", "trust", "conditions"],
];

function tasksPart(line, number) {
  const rows = line.tasks.map((row) => Object.fromEntries(OF_TASK.map((name, place) => [name, row[place]])));
  return folded(`All ${count(rows.length)} scores, with their conditions`, () => tasksTable(line, number, rows), {
    open: onPaper || Boolean(option(`sort-tasks${number}`)),
    className: "plain",
  });
}

function tasksTable(line, number, rows) {
  const worded = (name) => ({ value: (row) => line.words[row[name]] });
  const columns = [
    wordColumn("task", "Task", { head: true, cell: (row) => link(`${site.home}datasets/${row.id}.html`, row.task) }),
    wordColumn("suite", "Suite"),
    wordColumn("strategy", "Strategy"),
    scoreColumn("score", "Score"),
    ...(rows.some((row) => row.interval) ? [intervalColumn((row) => row.interval)] : []),
    numberColumn("n", "Documents", { cell: ({ n, of }) => `${count(n)}${isNumber(of) && of !== n ? ` of ${count(of)}` : ""}` }),
    ...(rows.some((row) => row.valid !== null)
      ? [numberColumn("valid", "Readable", { format: (valid) => (valid === null ? NONE : percent(nearest(valid))) })]
      : []),
    ...(line.published
      ? []
      : [wordColumn("otherwise", "Beside the paper", worded("otherwise")), wordColumn("trust", "Trust", worded("trust"))]),
    wordColumn("conditions", "Conditions", {
      ...worded("conditions"),
      cell: (row) => text("span", "conditions", line.words[row.conditions]),
    }),
  ];
  return table({ name: `tasks${number}`, box: "tall", caption: `Scores of ${line.label} by task`, rows, columns, sort: "task", limit: 60 });
}
