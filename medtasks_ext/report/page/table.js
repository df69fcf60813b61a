// Tables that sort. A column is {key, title, hint, value(row), cell(row), numeric, sort: "asc"|"desc"}; `value` sorts, `cell` (text or
// node) is shown. Rows may be split into sections, which keep their order whatever the sort.

function compareValues(one, other) {
  if (one === other) return 0;
  if (one === null || one === undefined) return 1; // what is unknown stands last, both ways
  if (other === null || other === undefined) return -1;
  if (typeof one === "string") return one.localeCompare(other, "en", { numeric: true, sensitivity: "base" });
  return one - other;
}

function sortedRows(rows, column, descending) {
  return rows
    .map((row, index) => [row, column.value(row), index])
    .sort(([, one, first], [, other, second]) => {
      const unknown = [one, other].some((value) => value === null || value === undefined);
      const order = compareValues(one, other);
      return (descending && !unknown ? -order : order) || first - second;
    })
    .map(([row]) => row);
}

// {name, caption, columns, rows, sort: default such as "-score", sections: [[id, heading]], sectionOf, limit: rows of a section that are
// shown at first, keep(row): those shown beyond it, classOf(row), pinned: {heading, rows} that stand above all, and at their place, too}
function table({
  name,
  className = "",
  caption,
  columns,
  rows,
  sort,
  sections = [["", null]],
  sectionOf = () => "",
  limit = Infinity,
  keep = () => false,
  classOf = () => "",
  pinned = null,
}) {
  const key = `sort-${name}`;
  const current = option(key, sort);
  const descending = current.startsWith("-");
  const column = columns.find((item) => item.key === current.replace("-", "")) ?? columns[0];
  const head = make(
    "tr",
    {},
    ...columns.map((item) => headCell(item, item === column ? (descending ? "descending" : "ascending") : null, key)),
  );
  const element = make("table", {}, make("caption", { textContent: caption }), make("thead", {}, head));
  const ordered = sortedRows(rows, column, descending);
  const draw = (some) => some.map((row) => tableRow(row, columns, classOf(row)));
  if (pinned?.rows.length) {
    const above = ordered.filter((row) => pinned.rows.includes(row));
    element.append(make("tbody", { className: "pinned" }, sectionRow(pinned.heading, columns), ...draw(above)));
  }
  for (const [id, heading] of sections) {
    const members = ordered.filter((row) => sectionOf(row) === id);
    if (!members.length) continue;
    const body = make("tbody");
    if (heading) body.append(sectionRow(heading, columns));
    const shown = onPaper ? members : members.filter((row, index) => index < limit || keep(row));
    body.append(...draw(shown));
    if (shown.length < members.length)
      body.append(moreRow(members.length - shown.length, columns, () => body.replaceChildren(...draw(members))));
    element.append(body);
  }
  const lines = () => [columns.map(titleOf), ...ordered.map((row) => columns.map((item) => plainValue(item, row)))];
  return make(
    "div",
    {},
    make("div", { className: `scroll ${className}`.trim(), tabIndex: 0, role: "region", "aria-label": caption }, element),
    csvButton(caption, lines),
  );
}

const titleOf = ({ title }) => title.textContent ?? title;

// What a cell says to a program: the number itself, else the text that is shown.
function plainValue(column, row) {
  const value = column.value?.(row);
  if (column.numeric && (isNumber(value) || value === null)) return value;
  const content = column.cell(row);
  return content?.textContent ?? content;
}

function csvButton(caption, lines) {
  const button = make("button", {
    type: "button",
    className: "small",
    textContent: "CSV",
    title: "Save this table as CSV",
    onclick: () => saveFile(`\ufeff${lines().map((line) => line.map(csvCell).join(",")).join("\r\n")}\r\n`, "text/csv", caption, "csv"),
  });
  return make("div", { className: "tools" }, button);
}

function saveFile(content, type, label, ending) {
  const name = label.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80) || "medtasks";
  const address = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href: address, download: `${name}.${ending}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// A text that a spreadsheet would take for a formula gets an apostrophe.
function csvCell(value) {
  if (value === null || value === undefined || value === NONE) return "";
  const words = typeof value === "string" && /^[=+@\t\r]|^-(?![\d.])/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
}

// {label, heading: of the first column, rows and columns: [{title, node}], cell(row, column) -> text or null}
function matrixTable({ label, heading = "", rows, columns, cell }) {
  const lines = () => [
    [heading, ...columns.map((column) => column.title)],
    ...rows.map((row, r) => [row.title, ...columns.map((_, c) => cell(r, c))]),
  ];
  const head = make(
    "tr",
    {},
    make("th", { scope: "col", textContent: heading }),
    ...columns.map((column) => make("th", { scope: "col" }, column.node?.cloneNode(true) ?? column.title)),
  );
  const body = rows.map((row, r) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, row.node?.cloneNode(true) ?? row.title),
      ...columns.map((_, c) => make("td", { className: "number", textContent: cell(r, c) ?? NONE })),
    ),
  );
  return make(
    "div",
    {},
    make(
      "div",
      { className: "scroll tall", tabIndex: 0, role: "region", "aria-label": `${label}, values` },
      make(
        "table",
        { className: "values" },
        make("caption", { textContent: label }),
        make("thead", {}, head),
        make("tbody", {}, ...body),
      ),
    ),
    csvButton(label, lines),
  );
}

function headCell(column, sorted, key) {
  const cell = make("th", {
    scope: "col",
    className: [column.numeric ? "number" : "", column.className ?? ""].join(" ").trim(),
  });
  if (column.value && !onPaper) {
    const next = sorted
      ? sorted === "ascending"
        ? `-${column.key}`
        : column.key
      : (column.numeric && column.sort !== "asc") || column.sort === "desc"
        ? `-${column.key}`
        : column.key;
    cell.append(
      make(
        "button",
        {
          type: "button",
          "data-key": `${key} ${column.key}`,
          title: column.hint,
          onclick: () => change({ [key]: next }),
        },
        column.title,
        make("span", {
          className: "arrow",
          "aria-hidden": "true",
          textContent: sorted ? (sorted === "ascending" ? "▲" : "▼") : "",
        }),
      ),
    );
    if (sorted) cell.setAttribute("aria-sort", sorted);
  } else {
    cell.append(column.title);
  }
  return cell;
}

function sectionRow(heading, columns) {
  const cell = make("th", { colSpan: columns.length, scope: "rowgroup" }, text("span", "", heading));
  return make("tr", { className: "section" }, cell);
}

function tableRow(row, columns, className) {
  return make(
    "tr",
    { className },
    ...columns.map((column, index) => {
      const content = column.cell(row);
      const head = index === columns.findIndex((item) => item.head);
      return make(
        head ? "th" : "td",
        {
          className: [column.numeric ? "number" : "", column.className ?? ""].join(" ").trim(),
          scope: head ? "row" : null,
        },
        content,
      );
    }),
  );
}

function moreRow(n, columns, all) {
  const button = make("button", { type: "button", textContent: `Show ${plural(n, "more row")}`, onclick: all });
  return make("tr", { className: "more" }, make("td", { colSpan: columns.length }, button));
}
