// Dots with intervals, a row each. A row's strip is an SVG whose places are percentages, so that it fits any width.

const shareOf = (value, [low, high]) => `${(100 * (value - low)) / (high - low)}%`;

// A range that holds all values, with round ends; `zero` keeps 0 in it.
function domainOf(points, { zero = false, symmetric = false } = {}) {
  const values = points.flatMap(({ value, low, high }) => [value, low, high]).filter(isNumber);
  if (!values.length) return [0, 1];
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  if (symmetric) {
    high = Math.max(Math.abs(low), Math.abs(high));
    low = -high;
  }
  if (low === high) [low, high] = [low - 0.05, high + 0.05];
  const marks = ticks(low, high);
  const step = marks.length > 1 ? marks[1] - marks[0] : high - low;
  const round = (value) => Number(value.toFixed(10));
  return [round(Math.floor(low / step + 1e-9) * step), round(Math.ceil(high / step - 1e-9) * step)];
}

// Places of the scale's lines; `whole` for numbers such as ranks.
function marksOf([low, high], whole) {
  if (!whole) return ticks(low, high);
  const step = Math.ceil((high - low) / 12) || 1;
  return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, index) => low + index * step);
}

function strip(height, domain, content, whole = false) {
  const lines = marksOf(domain, whole).map((value) => {
    const x = shareOf(value, domain);
    return svg("line", { x1: x, x2: x, y1: 0, y2: height, class: value === 0 ? "zero" : "rule" });
  });
  return svg("svg", { class: "strip", width: "100%", height, "aria-hidden": "true" }, ...lines, ...content);
}

function whisker(point, y, domain, className) {
  if (!isNumber(point.low) || !isNumber(point.high)) return null;
  return svg("line", {
    x1: shareOf(point.low, domain),
    x2: shareOf(point.high, domain),
    y1: y,
    y2: y,
    class: `whisker ${className}`,
    "data-approximate": point.approximate ? "" : null,
  });
}

function scaleStrip(domain, format, whole = false) {
  const labels = marksOf(domain, whole).map((value) =>
    svg("text", { x: shareOf(value, domain), y: 12, "text-anchor": "middle" }, format(value)),
  );
  return svg("svg", { class: "strip scale", width: "100%", height: 16, "aria-hidden": "true" }, ...labels);
}

// The score as a bar from 0, its interval as a line over it.
function scoreBar(row, domain) {
  const y = 9;
  return strip(18, domain, [
    svg("rect", { x: 0, y: y - 5, height: 10, width: shareOf(Math.max(row.score, 0), domain), class: "bar" }),
    whisker(row, y, domain, "over"),
    svg("line", {
      x1: shareOf(row.score, domain),
      x2: shareOf(row.score, domain),
      y1: y - 6,
      y2: y + 6,
      class: "tip-line",
    }),
  ]);
}

const tickLabel = (value) => String(Number(value.toFixed(3))).replace("-", "−");

// {name, caption, series: [label or node], rows: [{label: node, points: [{series, value, low, high, approximate, tip}]}],
//  domain, format, axis: title of the scale, heading: of the first column, whole: marks at whole numbers, values: print them beside}
function dotPlot({
  caption,
  heading = "Model",
  series,
  rows,
  domain,
  format = fixed,
  axis,
  whole = false,
  values = series.length <= 2,
}) {
  const step = series.length > 4 ? 9 : 12;
  const height = Math.max(24, series.length * step + 10);
  const columns = make(
    "tr",
    {},
    make("th", { scope: "col" }, text("span", "spoken", heading)),
    make(
      "th",
      { scope: "col", className: "plot" },
      text("span", "axis-title", axis ?? ""),
      scaleStrip(domain, tickLabel, whole),
    ),
    ...(values ? series.map((name) => make("th", { scope: "col", className: "number", textContent: name })) : []),
  );
  const body = make(
    "tbody",
    {},
    ...rows.map((row) => {
      const marks = row.points
        .filter((point) => isNumber(point.value))
        .map((point) => {
          const y = series.length === 1 ? height / 2 : 5 + step / 2 + point.series * step;
          const spot = svg(
            "svg",
            { x: shareOf(point.value, domain), y, overflow: "visible" },
            marker(point.series, 0, 0, series.length > 4 ? 3.6 : 4.6),
          );
          const group = svg("g", {}, whisker(point, y, domain, `series-${point.series % 8}`), spot);
          return withTip(group, ...point.tip);
        });
      const shown = values
        ? series.map((_, index) => {
            const point = row.points.find((item) => item.series === index);
            return make(
              "td",
              { className: "number" },
              point && isNumber(point.value)
                ? make(
                    "span",
                    {},
                    text("b", "", format(point.value)),
                    " ",
                    text("span", "interval", interval(point, format)),
                  )
                : NONE,
            );
          })
        : [];
      return make(
        "tr",
        { className: row.className ?? "" },
        make("th", { scope: "row" }, row.label),
        make("td", { className: "plot" }, strip(height, domain, marks, whole)),
        ...shown,
      );
    }),
  );
  const parts = [
    make(
      "div",
      { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
      make("table", { className: "dots" }, make("caption", { textContent: caption }), make("thead", {}, columns), body),
    ),
  ];
  if (series.length > 1) parts.unshift(legend(series));
  if (!values)
    parts.push(
      folded("The same values as a table", () => valueTable({ caption, heading, series, rows, format }), {
        className: "as-table",
      }),
    );
  return make("figure", {}, ...parts);
}

function legend(series) {
  return make(
    "ul",
    { className: "legend" },
    ...series.map((name, index) =>
      make(
        "li",
        {},
        svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, marker(index, 7, 7, 4.6)),
        text("span", "", name),
      ),
    ),
  );
}

function valueTable({ caption, heading, series, rows, format }) {
  return make(
    "div",
    { className: "scroll", tabIndex: 0, role: "region", "aria-label": `${caption}, values` },
    make(
      "table",
      {},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("th", { scope: "col", textContent: heading }),
          ...series.map((name) => make("th", { scope: "col", className: "number", textContent: name })),
        ),
      ),
      make(
        "tbody",
        {},
        ...rows.map((row) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, row.label.cloneNode(true)),
            ...series.map((_, index) => {
              const point = row.points.find((item) => item.series === index);
              return make(
                "td",
                { className: "number" },
                point && isNumber(point.value) ? `${format(point.value)} ${interval(point, format)}` : NONE,
              );
            }),
          ),
        ),
      ),
    ),
  );
}
