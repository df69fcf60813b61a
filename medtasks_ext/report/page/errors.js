// Clusters of errors, and confusion matrices.

const columnSection = (column, ...content) =>
  make("section", { className: "column-section" }, make("h3", {}, ...columnName(column).childNodes), ...content);

function drawErrors(head) {
  const none = "No error was found: every answer is right, or its score is graded.";
  return head.columns.map((column, place) =>
    columnSection(column, column.errors.length ? clusterTable(column, place, head.meaning) : text("p", "", none)),
  );
}

function clusterTable(column, place, meaning) {
  const most = Math.max(...column.errors.map((item) => item.documents));
  const leads = (cluster) => answersAddress({ ...ALL_DOCUMENTS, a: String(place), cluster });
  return table({
    className: "clusters",
    caption: `Clusters of errors of ${column.label}`,
    plain: true,
    rows: column.errors,
    columns: [
      {
        title: "Error",
        head: true,
        cell: ({ cluster }) => make("span", {}, link(leads(cluster), cluster), text("span", "meaning", meaning[cluster])),
      },
      {
        title: "Documents",
        numeric: true,
        cell: ({ documents }) => make("span", { className: "share-cell" }, meter(documents / most), text("span", "", count(documents))),
      },
      numberColumn("documents", "Share", { format: (documents) => percent(documents / column.read) }),
    ],
  });
}

function drawConfusion(head) {
  const shown = head.columns.map((column, place) => [column, column.confusion, place]).filter(([, matrix]) => matrix);
  if (!shown.length)
    return [text("p", "", "Answers to this dataset are no single labels, so there is no confusion matrix.")];
  return [
    note(
      "Rows are gold labels, columns what was read; a darker cell is a larger share of its row, and leads to its documents. " +
        "What could not be read has a column of its own, whatever the suite counts it as.",
    ),
    make("div", { className: "matrices" }, ...shown.map((item) => columnSection(item[0], confusionTable(...item)))),
  ];
}

function confusionTable(column, { gold, answers, counts }, place) {
  const sums = counts.map(sum);
  const cell = (row, to) => {
    const n = counts[row][to];
    const level = n ? Math.min(4, 1 + Math.floor((4 * n) / sums[row])) : 0;
    const leads = answersAddress({ ...ALL_DOCUMENTS, a: String(place), cell: String(row * answers.length + to) });
    const className = `cell ${gold[row] === answers[to] ? "hit" : "miss"} level-${level}`;
    return make("td", { className }, n ? link(leads, count(n)) : text("span", "soft", "·"));
  };
  return table({
    className: "confusion",
    caption: `Gold labels by answers of ${column.label}`,
    plain: true,
    rows: [...gold.keys()],
    columns: [
      { title: "gold ↓ answer →", head: true, cell: (row) => gold[row] },
      ...answers.map((name, to) => ({ title: text("span", "", name), cell: (row) => cell(row, to) })),
      { title: "all", numeric: true, className: "soft", cell: (row) => count(sums[row]) },
    ],
  });
}
