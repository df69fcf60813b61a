// The page of a model: what it is, where it is strong and weak, and every score with its conditions.

function drawModel() {
  const link_ = site.hub_id ? link(`https://huggingface.co/${site.hub_id.split("/").map(encodeURIComponent).join("/")}`, site.hub_id) : null;
  const lead = leadOf();
  return [
    make("h2", {}, site.title),
    make(
      "dl",
      { className: "facts" },
      ...site.facts.map(([term, meaning]) => fact(term, String(meaning))),
      link_ ? make("div", {}, text("dt", "", "On the hub"), make("dd", {}, link_)) : null,
    ),
    lead ? profilePart(lead) : null,
    ...site.lines.map(drawLine),
  ];
}

const fact = (term, meaning) => make("div", {}, text("dt", "", term), text("dd", "", meaning));

// ------------------------------------------------------------------ strong and weak

const everyProfile = () => site.lines.flatMap((line) => line.places.filter(({ axes }) => axes).map((place) => ({ ...place, line })));

// The chosen profile, else the one with the most values: it is the most that can be said.
function leadOf() {
  const found = everyProfile();
  const values = ({ axes }) => axes.reduce((sum, [, rows]) => sum + rows.length, 0);
  const most = found.reduce((one, other) => (one && values(one) >= values(other) ? one : other), null);
  return found[Number(option("profile", String(found.indexOf(most))))] ?? most;
}

function profilePart(lead) {
  const found = everyProfile();
  const [rank, of] = lead.rank;
  const several = site.lines.length > 1;
  const titles = found.map(({ title, strategy, line }, number) => [String(number), `${title}, ${strategy}${several ? `: ${line.label}` : ""}`]);
  const chosen = String(found.findIndex((item) => item.line === lead.line && item.suite === lead.suite && item.strategy === lead.strategy));
  return make(
    "section",
    { className: "profile" },
    text("h3", "", `${lead.title}: ${score(lead.score)}, rank ${rank} of ${of}${lead.line.published ? "" : " (submitted)"}`),
    titles.length > 1 ? make("div", { className: "controls" }, selector("Shown", "profile", titles, chosen)) : null,
    note("Ranks are among comparable results: at 0 % no other model scores less, at 100 % all do. Beside it stand the score, and how far it is from the median."),
    make("div", { className: "percentiles" }, ...lead.axes.map((axis) => drawnLater(160, () => axisPicture(lead, axis)))),
  );
}

function axisPicture(lead, [axis, values]) {
  const label = `${axis}: share of the other models that ${lead.line.label} is above, ${lead.title}`;
  const lead_ = ([, , value, middle]) => nearest(value) - nearest(middle);
  return percentiles({
    label,
    heading: axis,
    rows: values.map((row) => {
      const [title, n, value, , rank, of] = row;
      return {
        title: `${title} (${n})`,
        value: (of - rank) / (of - 1),
        lead: lead_(row),
        words: `${score(value)}  ${signed(lead_(row), 2)}`,
        tip: `${title}\n${score(value)} on ${plural(n, "task")}, rank ${rank} of ${of}, ${signed(lead_(row))} from the median`,
      };
    }),
    beside: 96,
    values: () =>
      matrixTable({
        label,
        heading: axis,
        rows: values.map(([title]) => ({ title })),
        columns: ["score", "median", "rank", "of", "tasks"].map((title) => ({ title })),
        cell: (row, column) => {
          const [, n, value, middle, rank, of] = values[row];
          return [score(value), score(middle), String(rank), String(of), count(n)][column];
        },
      }),
  });
}

// ------------------------------------------------------------------ a line

function drawLine(line, number) {
  return make(
    "section",
    { className: "line-of-model" },
    make("h3", {}, line.label, " ", tag("", line.published ? "published" : "submitted")),
    placesTable(line, number),
    make("dl", { className: "facts" }, ...line.source.map(([term, meaning]) => fact(term, meaning))),
    line.tasks.length ? tasksPart(line, number) : note("The paper prints no score of single tasks."),
    line.settings.length ? conditions(line) : null,
  );
}

function placesTable(line, number) {
  const place = ({ rank, otherwise, unproven }) => {
    if (rank) return `${rank[0]} of ${rank[1]}`;
    return `${NONE} ${unproven ? "not proven" : otherwise ? `other conditions: ${otherwise}` : "not on all tasks, rows and judgements"}`;
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
        { key: "strategy", title: "Strategy", value: (row) => row.strategy, cell: (row) => row.strategy },
        { key: "score", title: "Score", numeric: true, value: (row) => row.score, cell: (row) => make("span", {}, scoreBar(row.score, row.interval), score(row.score)) },
        { key: "interval", title: "95 % interval", cell: (row) => text("span", "soft", ends(row.interval) || NONE) },
        { key: "tasks", title: "Tasks", numeric: true, value: (row) => row.tasks, cell: (row) => (row.tasks === null ? NONE : `${row.tasks} of ${row.of}`) },
        { key: "place", title: "Rank", value: (row) => row.rank?.[0], cell: place },
      ],
      sort: "suite",
    }),
  );
}

function tasksPart(line, number) {
  const key = `suite${number}`;
  const asked = `asked${number}`;
  const suites = [...new Set(line.tasks.map(([suite]) => suite))];
  const strategies = [...new Set(line.tasks.map((row) => row[2]))];
  const rows = line.tasks.filter((row) => (!option(key) || row[0] === option(key)) && (!option(asked) || row[2] === option(asked)));
  const chosen = suites.length > 1 ? selector("Suite", key, [["", "all"], ...suites.map((suite) => [suite, suite])], option(key)) : null;
  const how = strategies.length > 1 ? selector("Strategy", asked, [["", "all"], ...strategies.map((name) => [name, name])], option(asked)) : null;
  return folded(
    `All ${count(line.tasks.length)} scores, with their conditions`,
    () => make("div", {}, make("div", { className: "controls" }, chosen, how), tasksTable(line, number, rows)),
    { open: onPaper || Boolean(option(key) || option(asked) || option(`sort-tasks${number}`)), className: "plain" },
  );
}

function tasksTable(line, number, rows) {
  const [otherwise, trust, conditions_] = [9, 10, 11].map((place) => (row) => line.words[row[place]]);
  const has = (place) => line.tasks.some((row) => row[place] !== null);
  return table({
    name: `tasks${number}`,
    className: "tall",
    caption: `Scores of ${line.label} by task`,
    rows,
    columns: [
      { key: "task", title: "Task", head: true, value: (row) => row[1], cell: (row) => link(`${site.home}datasets/${row[8]}.html`, row[1]) },
      { key: "suite", title: "Suite", value: (row) => row[0], cell: (row) => row[0] },
      { key: "strategy", title: "Strategy", value: (row) => row[2], cell: (row) => row[2] },
      { key: "score", title: "Score", numeric: true, value: (row) => row[3], cell: (row) => score(row[3]) },
      ...(has(4) ? [{ key: "interval", title: "95 % interval", cell: (row) => text("span", "soft", row[4] ? `[${score(row[4][0])}, ${score(row[4][1])}]` : NONE) }] : []),
      { key: "n", title: "Documents", numeric: true, value: (row) => row[5], cell: (row) => documents(row) },
      ...(has(7) ? [{ key: "valid", title: "Readable", numeric: true, value: (row) => row[7], cell: (row) => (row[7] === null ? NONE : percent(nearest(row[7]))) }] : []),
      ...(line.published ? [] : [{ key: "otherwise", title: "Beside the paper", value: otherwise, cell: (row) => otherwise(row) || NONE }]),
      ...(line.published ? [] : [{ key: "trust", title: "Trust", value: trust, cell: trust }]),
      { key: "conditions", title: "Conditions", value: conditions_, cell: (row) => text("span", "conditions", conditions_(row)) },
    ],
    sort: "task",
    limit: 60,
  });
}

const documents = (row) => (isNumber(row[6]) && row[6] !== row[5] ? `${count(row[5])} of ${count(row[6])}` : count(row[5]));

function conditions(line) {
  return folded("Conditions and versions", () =>
    make(
      "dl",
      { className: "facts" },
      ...line.settings.map(([name, said]) => fact(name, said || "none")),
    ),
  );
}
