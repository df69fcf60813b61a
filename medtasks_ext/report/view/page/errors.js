// Clusters of errors with what each costs, and confusion matrices.

function drawErrors(head, errors) {
  return head.columns.map((column, place) => {
    const found = errors.columns[place];
    const documents = column.flags.filter((flag) => flag >= 0).length;
    return columnSection(
      column,
      note(
        isNumber(found.score)
          ? `Score ${fixed(found.score)} over ${plural(documents, "document")}. `
          : `No score yet; ${plural(documents, "document")}. `,
        errors.complete ? "" : "Still reading; counts grow.",
      ),
      found.clusters.length
        ? clusterTable(column, place, found, documents, errors.meaning)
        : text("p", "", "No error was found: every answer is right, or its score is graded."),
    );
  });
}

const columnSection = (column, ...content) =>
  make(
    "section",
    { className: "column-section" },
    make("h3", {}, column.label, column.sample ? sampleTag() : null),
    ...content,
  );

function clusterTable(column, place, found, documents, meaning) {
  const most = Math.max(...found.clusters.map((item) => item.documents));
  const rows = found.clusters.map((item) =>
    make(
      "tr",
      {},
      make(
        "th",
        { scope: "row" },
        link(
          addressWith({ part: null, a: String(place), cluster: item.cluster, only: null, doc: null, cell: null }),
          item.cluster,
        ),
        text("span", "meaning", meaning[item.cluster]),
      ),
      make(
        "td",
        { className: "number" },
        make(
          "span",
          { className: "share-cell" },
          shareBar(item.documents / most),
          text("span", "", count(item.documents)),
        ),
      ),
      text("td", "number", percent(item.documents / documents)),
      text("td", "number score", fixed(item.mended)),
      text(
        "td",
        "number soft",
        isNumber(item.mended) && isNumber(found.score) ? signed(item.mended - found.score) : NONE,
      ),
    ),
  );
  return make(
    "div",
    { className: "scroll", tabIndex: 0, role: "group", "aria-label": `Clusters of errors of ${column.label}` },
    make(
      "table",
      { className: "clusters" },
      make("caption", { textContent: `Clusters of errors of ${column.label}` }),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          ...["Error", "Documents", "Share", "Score if mended", "Change"].map((name, index) =>
            make("th", { scope: "col", className: index ? "number" : "", textContent: name }),
          ),
        ),
      ),
      make("tbody", {}, ...rows),
    ),
  );
}

// How large a cluster is beside the largest; the number stands next to it.
const shareBar = (share) => make("meter", { className: "part-bar", max: 1, value: share, "aria-hidden": "true" });

// ------------------------------------------------------------------ confusion

function drawConfusion(head, matrices) {
  const shown = head.columns.flatMap((column, place) => (matrices[place] ? [[column, matrices[place], place]] : []));
  if (!shown.length)
    return [text("p", "", "Answers to this dataset are no single labels, so there is no confusion matrix.")];
  return [
    note(
      "Rows are gold labels, columns what was read; a darker cell is a larger share of its row, and leads to its documents. What could not be read has a column of its own, whatever the suite counts it as.",
    ),
    make(
      "div",
      { className: "matrices" },
      ...shown.map(([column, matrix, place]) => columnSection(column, confusionTable(column, matrix, place))),
    ),
  ];
}

function confusionTable(column, matrix, place) {
  const sums = matrix.counts.map((row) => row.reduce((sum, n) => sum + n, 0));
  const rows = matrix.counts.map((row, at) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", textContent: matrix.gold[at] }),
      ...row.map((n, to) =>
        confusionCell(
          n,
          sums[at] ? n / sums[at] : 0,
          matrix.gold[at] === matrix.answers[to],
          at * row.length + to,
          place,
        ),
      ),
      text("td", "number soft", count(sums[at])),
    ),
  );
  return make(
    "div",
    { className: "scroll", tabIndex: 0, role: "group", "aria-label": `Confusion matrix of ${column.label}` },
    make(
      "table",
      { className: "confusion" },
      make("caption", { textContent: `Gold labels by answers of ${column.label}` }),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("th", { scope: "col", textContent: "gold ↓ answer →" }),
          ...matrix.answers.map((name) => make("th", { scope: "col" }, text("span", "", name))),
          make("th", { scope: "col", className: "number", textContent: "all" }),
        ),
      ),
      make("tbody", {}, ...rows),
    ),
  );
}

function confusionCell(n, share, isRight, cell, place) {
  const level = n ? Math.min(4, 1 + Math.floor(share * 4)) : 0;
  return make(
    "td",
    { className: `cell ${isRight ? "hit" : "miss"} level-${level}` },
    n
      ? link(
          addressWith({ part: null, a: String(place), cell: String(cell), only: null, cluster: null, doc: null }),
          count(n),
        )
      : text("span", "soft", "·"),
  );
}
