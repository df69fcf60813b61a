// The list of tasks, and a page for each.

function drawTasks() {
  const words = option("find").toLowerCase().split(/\s+/).filter(Boolean);
  const all = taskAxes.every((axis) => !chosen(axis.key).length) ? datasets.map((_, index) => index) : selectedTasks();
  const found = all.filter((task) => words.every((word) => taskText(task).includes(word)));
  const search = make("input", {
    type: "search",
    id: "find",
    placeholder: "Search tasks",
    value: option("find"),
    "aria-label": "Search tasks by name, content, metric or specialty",
    "data-key": "find",
    oninput: () => change({ find: search.value || null }),
  });
  const best = new Map(found.map((task) => [task, bestOn(task)]));
  const titles = (key, task) =>
    valuesOf(datasets[task], key)
      .map((value) => valueTitle(key, value))
      .join(", ");
  const axisColumn = (key, title) => ({
    key,
    title,
    value: (task) => titles(key, task) || null,
    cell: (task) => titles(key, task) || NONE,
  });
  return [
    make("div", { className: "controls" }, search, text("span", "soft", plural(found.length, "task"))),
    table({
      name: "tasks",
      className: "steady",
      caption: `Tasks: ${selectionInWords()}`,
      rows: found,
      sort: "name",
      columns: [
        {
          key: "name",
          title: "Task",
          head: true,
          className: "sticky",
          value: (task) => datasets[task].name,
          cell: (task) =>
            make(
              "span",
              { className: "stacked" },
              taskLink(task),
              text("span", "soft clipped", datasets[task].summary),
            ),
        },
        axisColumn("suite", "Suite"),
        axisColumn("language", "Language"),
        axisColumn("task_type", "Kind"),
        axisColumn("stage", "Stage"),
        {
          key: "access",
          title: "Access",
          value: (task) => datasets[task].access,
          cell: (task) => datasets[task].access,
        },
        {
          key: "n",
          title: "Test rows",
          numeric: true,
          value: (task) => datasets[task].n_test,
          cell: (task) => count(datasets[task].n_test),
        },
        {
          key: "metric",
          title: "Measure",
          value: (task) => datasets[task].metric,
          cell: (task) => make("code", { textContent: datasets[task].metric ?? NONE }),
        },
        {
          key: "best",
          title: "Best score",
          numeric: true,
          hint: "Best score on real rows in this report, any strategy",
          value: (task) => best.get(task)?.score ?? null,
          cell: (task) => bestCell(best.get(task)),
        },
      ],
    }),
  ];
}

function taskText(task) {
  const dataset = datasets[task];
  return [
    dataset.name,
    dataset.id,
    dataset.summary,
    dataset.metric,
    ...taskAxes.flatMap((axis) => valuesOf(dataset, axis.key).map((value) => valueTitle(axis.key, value))),
  ]
    .join(" ")
    .toLowerCase();
}

function bestOn(task) {
  let best = null;
  for (const entry of entries.keys())
    for (const strategy of strategies.keys()) {
      const score = resultOf(entry, strategy, task, "score");
      if (isNumber(score) && !entries[entry].sample && (!best || score > best.score)) best = { score, entry, strategy };
    }
  return best;
}

function bestCell(best) {
  return best
    ? make("span", {
        title: `${entries[best.entry].label}, ${strategies[best.strategy][1]}`,
        textContent: fixed(best.score),
      })
    : NONE;
}

// ------------------------------------------------------------------ one task

function drawTask() {
  const task = datasetAt.get(viewId);
  if (task === undefined) return [note(`This report knows no task “${viewId}”.`)];
  const dataset = datasets[task];
  const page = report.tasks[dataset.id] ?? {};
  return [
    make("p", { className: "lead", textContent: dataset.summary }),
    dataset.control_of
      ? note(`A control of ${dataset.control_of}: the same rows asked in another form. It counts in no mean and in no group.`)
      : null,
    dataset.draft ? note(`A draft, which counts in no mean and in no group: ${dataset.draft}`) : null,
    taskScores(task),
    taskFacts(dataset),
    promptPart(page),
    scoringPart(dataset, page),
    examplePart(dataset, page),
  ];
}

function taskFacts(dataset) {
  const assigned = new Set(dataset.assigned ?? []);
  const facts = taskAxes
    .filter((axis) => valuesOf(dataset, axis.key).length)
    .map((axis) => [
      axisTitle(axis.key),
      make(
        "span",
        {},
        ...valuesOf(dataset, axis.key).flatMap((value, index) => [
          index ? ", " : "",
          link(address("leaderboard", "", { suite: "", [axis.key]: asList([value]) }), valueTitle(axis.key, value), {
            title: "Leaderboard for this value",
          }),
        ]),
        assigned.has(axis.key) ? tag("", "assigned by medtasks", "The suite’s paper does not give this value") : null,
      ),
    ]);
  const outside = /^https?:/i.test(dataset.url ?? "")
    ? make("a", { href: dataset.url, textContent: dataset.url, rel: "noopener noreferrer", target: "_blank" })
    : dataset.url;
  facts.push(
    ["Test rows", count(dataset.n_test)],
    ["Scored without asking for data", dataset.scoreable ? "yes" : "no"],
    ["Licence", dataset.licence],
    ["Use allowed by its terms", dataset.use],
    ["Text to a third party", dataset.third_party_api],
    ["Source", outside],
    ["Citation", dataset.citation],
    ["Task id", make("code", { textContent: dataset.id })],
    ["Version", dataset.version],
  );
  return make(
    "dl",
    { className: "facts" },
    ...facts
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([title, value]) => make("div", {}, make("dt", { textContent: title }), make("dd", {}, value))),
  );
}

function taskScores(task) {
  const used = [...strategies.keys()].filter((strategy) =>
    entries.some((_, entry) => resultRow(entry, strategy, task) >= 0),
  );
  if (!used.length) return titled("Scores", note("No model in this report was scored on this task."));
  const ids = used.map((strategy) => strategies[strategy][0]);
  const current = choice("on", ids);
  const shown = onPaper ? used : [strategyAt.get(current)];
  return titled(
    "Scores",
    onPaper
      ? null
      : make(
          "div",
          { className: "controls" },
          switcher(
            "Strategy",
            "on",
            used.map((strategy) => strategies[strategy]),
            current,
          ),
        ),
    ...shown.flatMap((strategy) => taskTable(task, strategy)),
  );
}

function taskTable(task, strategy) {
  const rows = [...entries.keys()]
    .map((entry) => ({ entry, strategy, at: resultRow(entry, strategy, task) }))
    .filter((row) => row.at >= 0)
    .map((row) => ({
      ...row,
      score: results.score[row.at],
      low: results.low[row.at],
      high: results.high[row.at],
      sample: entries[row.entry].sample,
      scored: 1,
      total: 1,
      ...Object.fromEntries(
        ["n", "valid", "cut", "unclosed", "inputs_cut"].map((key) => [key, results[key]?.[row.at] ?? null]),
      ),
    }));
  rankedRows(rows);
  const letters = settingLetters(rows);
  const share = (key, title, hint) =>
    rows.some((row) => isNumber(row[key]))
      ? [{ key, title, hint, numeric: true, value: (row) => row[key], cell: (row) => percent(row[key]) }]
      : [];
  const columns = [
    ...rankingColumns(rows),
    {
      key: "n",
      title: "Rows",
      numeric: true,
      hint: "Documents that were scored",
      value: (row) => row.n,
      cell: (row) => count(row.n),
    },
    ...FAULT_SHARES.flatMap(([key, title, hint]) => share(key, title, hint)),
    ...(letters.size > 1
      ? [
          {
            key: "settings",
            title: "Settings",
            value: (row) => letters.get(settingOf(row)),
            cell: (row) => letters.get(settingOf(row)),
          },
        ]
      : []),
  ];
  return [
    onPaper ? text("h4", "", strategies[strategy][1]) : null,
    table({
      name: "task",
      className: "steady",
      caption: `Scores on ${datasets[task].name}, ${strategies[strategy][1]}`,
      columns,
      rows,
      sort: "-score",
      sections: SECTIONS,
      sectionOf: (row) => row.section,
      limit: 25,
      keep: (row) => isOwn(row.entry),
    }),
    settingsPart(rows, letters),
  ];
}

const settingOf = (row) => results.settings?.[row.at] ?? -1;

// Settings that own results were made under, lettered.
function settingLetters(rows) {
  const found = [...new Set(rows.map(settingOf))].filter((index) => report.task_settings[index]);
  return new Map([
    ...found.map((index, place) => [
      index,
      String.fromCharCode(65 + (place % 26)) + (place >= 26 ? String(Math.floor(place / 26)) : ""),
    ]),
  ]);
}

function settingsPart(rows, letters) {
  if (!letters.size) return null;
  const names = [...new Set([...letters.keys()].flatMap((index) => Object.keys(report.task_settings[index])))];
  const all = [...letters].map(([index, letter]) => ({ letter, ...report.task_settings[index] }));
  const build = () =>
    make(
      "div",
      { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Settings" },
      make(
        "table",
        {},
        make(
          "thead",
          {},
          make(
            "tr",
            {},
            make("th", { scope: "col", textContent: "" }),
            ...names.map((name) => make("th", { scope: "col", textContent: name })),
          ),
        ),
        make(
          "tbody",
          {},
          ...all.map((item) =>
            make(
              "tr",
              {},
              make("th", { scope: "row", textContent: item.letter }),
              ...names.map((name) => make("td", { textContent: item[name] || NONE })),
            ),
          ),
        ),
      ),
    );
  const several =
    letters.size > 1
      ? note(
          "Results were made under different settings (letters in the table): other prompts, data or versions give different numbers.",
        )
      : null;
  return make("div", {}, several, folded("Settings of these results", build, { open: onPaper }));
}

function promptPart(page) {
  const prompts = page.prompts ?? {};
  const known = strategies.filter(([id]) => prompts[id]);
  if (!known.length) return null;
  return titled(
    "Prompts",
    page.note ? note(page.note) : null,
    note(
      "What the model is asked. The instruction stands first, then the document in the place of the names in braces; a strategy changes the marked line.",
    ),
    ...known.map(([id, title], index) =>
      folded(title, () => promptTexts(prompts[id]), { open: index === 0 || onPaper }),
    ),
  );
}

function promptTexts({ instruction, input, strategy_line: line }) {
  return [
    instruction ? make("div", { className: "text", tabIndex: 0 }, ...markedText(instruction, line)) : null,
    input ? make("div", { className: "text template", tabIndex: 0, textContent: input }) : null,
    line && !instruction?.includes(line) ? note("Strategy: ", text("mark", "", line)) : null,
  ];
}

function markedText(whole, part) {
  const at = part ? whole.indexOf(part) : -1;
  return at < 0 ? [whole] : [whole.slice(0, at), text("mark", "", part), whole.slice(at + part.length)];
}

function scoringPart(dataset, page) {
  const limit = dataset.oracle_max;
  const ceiling =
    limit === "unbounded"
      ? "The measure has no upper bound."
      : limit === "per_document"
        ? "The best score that can be reached differs from document to document."
        : isNumber(limit) && limit < 1
          ? `The best score that can be reached is ${fixed(limit)}: even the gold answers do not get more.`
          : null;
  return titled(
    "How it is scored",
    page.rule ? make("p", { className: "prose", textContent: page.rule }) : null,
    page.metrics?.length
      ? make(
          "dl",
          { className: "words" },
          ...page.metrics.flatMap(([name, meaning]) => [
            make("dt", {}, make("code", { textContent: name }), name === dataset.metric ? tag("", "score") : null),
            make("dd", { textContent: meaning }),
          ]),
        )
      : make("p", {}, "Measure: ", make("code", { textContent: dataset.metric ?? NONE })),
    ceiling ? note(ceiling) : null,
    page.open_questions?.length
      ? make(
          "div",
          {},
          text("h4", "", "To be verified"),
          make("ul", {}, ...page.open_questions.map((item) => make("li", { textContent: item }))),
        )
      : null,
  );
}

function examplePart(dataset, page) {
  const examples = page.examples ?? [];
  const gated = dataset.access !== "open" && report.text !== "all";
  const part = titled("Examples");
  if (!examples.length) {
    part.append(
      note(
        gated
          ? `Text left out: ${dataset.access} data. Neither documents nor answers of this task are in this file.`
          : report.text === "none"
            ? "This report was made without examples."
            : "No examples in this report: no own run on this task keeps its answers.",
      ),
    );
    return part;
  }
  part.append(
    note(
      "A few documents with what the models answered, to see what the score means. They were picked to show different outcomes and are no random sample; long texts are cut (…).",
    ),
    ...byDocument(examples).map((same) => documentCard(same, gated)),
  );
  return part;
}

function byDocument(examples) {
  const found = new Map();
  examples.forEach((example, index) => {
    const name = example.document ?? index + 1;
    found.set(name, [...(found.get(name) ?? []), { ...example, document: name }]);
  });
  return [...found.values()];
}

// One document with all answers that are shown for it.
function documentCard(examples, gated) {
  const [{ document: name, input, gold }] = examples;
  const piece = (title, value) => make("div", {}, text("h5", "", title), shownText(value, gated));
  return make(
    "article",
    { className: "example" },
    text("h4", "", `Document ${name}`),
    isBlank(input) ? null : folded("Input", () => shownText(input, gated), { open: onPaper }),
    piece("Gold answer", gold),
    ...examples.map((example) =>
      make(
        "div",
        { className: "response" },
        responseHead(example),
        make(
          "div",
          { className: "two" },
          piece("Response", example.response),
          piece("Answer that was read", example.answer),
        ),
      ),
    ),
  );
}

function responseHead({ entry, strategy, score }) {
  const outcome = !isNumber(score) ? "unscored" : score >= 1 ? "right" : score <= 0 ? "wrong" : "in-part";
  return make(
    "p",
    { className: "answered-by" },
    modelLink(entry),
    text("span", "soft", strategies[strategyAt.get(strategy)][1]),
    text("span", `outcome ${outcome}`, isNumber(score) ? `score ${fixed(score)}` : "no score"),
  );
}

const isBlank = (value) => value === null || value === undefined || value === "";

function shownText(value, gated) {
  if (isBlank(value))
    return text("p", "soft", value === "" ? "(empty)" : gated ? "text left out: gated data" : "(none)");
  return make("div", { className: "text", tabIndex: 0, textContent: inLines(value) });
}

// Lists with an item per line, records with a key per line; what is inside them stays on its line.
function inLines(value) {
  if (Array.isArray(value)) return value.length ? value.map(onOneLine).join("\n") : "(empty list)";
  if (value !== null && typeof value === "object")
    return Object.entries(value)
      .map(([key, item]) => `${key}: ${onOneLine(item)}`)
      .join("\n");
  return String(value);
}

function onOneLine(value) {
  if (Array.isArray(value)) return value.map(onOneLine).join(" · ");
  if (value !== null && typeof value === "object")
    return Object.entries(value)
      .map(([key, item]) => `${key}: ${onOneLine(item)}`)
      .join(" · ");
  return String(value);
}
