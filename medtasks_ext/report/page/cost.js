// What a score costs.

function drawCost() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  rankedRows(rows);
  const scored = rows.filter((row) => isNumber(row.score));
  const known = scored.filter((row) => isNumber(row.usd) && row.usd > 0);
  const free = scored.filter((row) => !(isNumber(row.usd) && row.usd > 0));
  const several = severalStrategies(scored);
  const rules = [...new Set(known.map((row) => entries[row.entry].price).filter(Boolean))];
  return [
    known.length ? scatter(known, several) : note("No model of this selection has a known cost."),
    known.length ? folded("The same values as a table", () => costTable(known), { className: "as-table" }) : null,
    rules.length ? make("ul", { className: "rules" }, ...rules.map((rule) => make("li", { textContent: rule }))) : null,
    free.length
      ? make(
          "div",
          {},
          note(
            `${plural(free.length, "row")} without a known cost ${free.length === 1 ? "is" : "are"} not in the picture: no price is on record, tokens were not counted, or they are not known for the selected tasks alone.`,
          ),
          folded(
            "Which ones",
            () =>
              make(
                "ul",
                { className: "columns" },
                ...free.map((row) =>
                  make(
                    "li",
                    {},
                    modelLink(row.entry),
                    several ? ` · ${strategies[row.strategy][1]}` : "",
                    ` ${fixed(row.score)}`,
                  ),
                ),
              ),
            { open: onPaper },
          ),
        )
      : null,
  ];
}

function costTable(rows) {
  return table({
    name: "cost",
    caption: "Cost and score",
    rows,
    sort: "usd",
    columns: [
      MODEL_COLUMN,
      ...strategyColumns(rows),
      {
        key: "usd",
        title: "Cost (USD)",
        numeric: true,
        sort: "asc",
        value: (row) => row.usd,
        cell: (row) => dollars(row.usd),
      },
      {
        key: "score",
        title: "Score",
        numeric: true,
        value: (row) => row.score,
        cell: (row) => `${fixed(row.score)} ${interval(row)}`,
      },
      COVERAGE_COLUMN,
    ],
  });
}

function scatter(rows, several) {
  const width = onPaper ? 960 : Math.max(300, Math.min(1100, document.getElementById("main").clientWidth));
  const height = Math.round(Math.max(300, Math.min(520, width * 0.5)));
  const area = { left: 46, right: width - 30, top: 12, bottom: height - 40 };
  const logs = rows.map((row) => Math.log10(row.usd));
  const [low, high] = [Math.floor(Math.min(...logs) - 0.05), Math.ceil(Math.max(...logs) + 0.05)];
  const range = domainOf(rows.map((row) => ({ value: row.score, low: row.low, high: row.high })));
  const x = (usd) => area.left + ((Math.log10(usd) - low) / (high - low)) * (area.right - area.left);
  const y = (score) => area.bottom - ((score - range[0]) / (range[1] - range[0])) * (area.bottom - area.top);
  const frame = [];
  for (let power = low; power <= high; power += 1) {
    const at = x(10 ** power);
    frame.push(
      svg("line", { class: "rule", x1: at, x2: at, y1: area.top, y2: area.bottom }),
      svg(
        "text",
        { x: at, y: area.bottom + 16, "text-anchor": "middle" },
        power < 0 ? `$${10 ** power}` : `$${count(10 ** power)}`,
      ),
    );
  }
  for (const value of ticks(...range))
    frame.push(
      svg("line", { class: "rule", x1: area.left, x2: area.right, y1: y(value), y2: y(value) }),
      svg("text", { x: area.left - 6, y: y(value) + 4, "text-anchor": "end" }, tickLabel(value)),
    );
  frame.push(
    svg(
      "text",
      { x: (area.left + area.right) / 2, y: height - 4, "text-anchor": "middle", class: "axis-title" },
      "cost of the selected tasks, US dollars, logarithmic",
    ),
  );
  const names = placeNames(
    rows.map((row) => [x(row.usd), y(row.score), rowTitle(row, several)]),
    area,
  );
  const marks = rows.map((row, index) => {
    const at = [x(row.usd), y(row.score)];
    const parts = [
      svg("line", {
        class: "whisker series-0",
        x1: at[0],
        x2: at[0],
        y1: isNumber(row.low) ? y(row.low) : at[1],
        y2: isNumber(row.high) ? y(row.high) : at[1],
      }),
      marker(isOwn(row.entry) ? 0 : 7, at[0], at[1], 5),
    ];
    if (names[index]) parts.push(svg("text", { class: "name", ...names[index] }, rowTitle(row, several)));
    const target = svg(
      "a",
      {
        href: modelAddress(row.entry),
        "aria-label": `${rowTitle(row, several)}: ${dollars(row.usd)}, score ${fixed(row.score)}`,
      },
      ...parts,
    );
    return withTip(
      target,
      rowTitle(row, several),
      `${dollars(row.usd)} · ${fixed(row.score)} ${interval(row)}`,
      `${row.scored} of ${row.total} tasks${row.scored < row.total ? ", partial" : ""}`,
    );
  });
  const kinds = [
    [0, "own run"],
    [7, "published"],
  ].filter(([shape]) => rows.some((row) => isOwn(row.entry) === (shape === 0)));
  return make(
    "figure",
    {},
    make(
      "ul",
      { className: "legend" },
      ...kinds.map(([shape, name]) =>
        make("li", {}, svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, marker(shape, 7, 7, 4.6)), name),
      ),
    ),
    svg(
      "svg",
      {
        class: "chart",
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: "group",
        "aria-label": "Cost against score",
      },
      ...frame,
      ...marks,
    ),
  );
}

// A free place for each name beside its point, or none: pointing at the point tells it.
function placeNames(points, area) {
  const taken = points.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]);
  return points.map(([x, y, name]) => {
    const width = name.length * 6.2;
    const places = [
      [x + 9, y + 4, "start"],
      [x - 9, y + 4, "end"],
      [x, y - 10, "middle"],
      [x, y + 17, "middle"],
    ];
    for (const [px, py, anchor] of places) {
      const left = anchor === "start" ? px : anchor === "end" ? px - width : px - width / 2;
      const box = [left, py - 11, left + width, py + 3];
      const inside = box[0] > area.left && box[2] < area.right && box[1] > area.top && box[3] < area.bottom;
      if (
        !inside ||
        taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])
      )
        continue;
      taken.push(box);
      return { x: px, y: py, "text-anchor": anchor };
    }
    return null;
  });
}
