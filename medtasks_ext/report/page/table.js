// Tables that sort. A column is {key, title, hint, value(row), cell(row), numeric, sort: "asc"|"desc"}; `value` sorts, `cell`
// (text, node or the whole `td`) is shown. Rows may be split into sections, which keep their order whatever the sort.

// A column of numbers, and one of words; what else it has, and how it differs, is given by name.
const numberColumn = (key, title, { value = (row) => row[key], format = fixed, ...more } = {}) => ({
  key,
  title,
  numeric: true,
  value,
  cell: (row) => format(value(row)),
  ...more,
});
const wordColumn = (key, title, { value = (row) => row[key], ...more } = {}) => ({
  key,
  title,
  value,
  cell: (row) => value(row) || NONE,
  ...more,
});

// A share of 1 as a bar in a cell, with its interval as a line over it.
function meter(value, { low, high } = {}) {
  const part = (name, ...ends) => {
    const element = make("span", { className: name });
    const [from, to] = ends.map((end) => Math.min(Math.max(end, 0), 1));
    element.style.left = `${100 * from}%`;
    element.style.width = `${100 * (to - from)}%`;
    return element;
  };
  const range = isNumber(low) && isNumber(high) ? part("range", low, high) : null;
  return make("span", { className: "meter", "aria-hidden": "true" }, part("fill", 0, value), range);
}

const severalStrategies = (rows) => new Set(rows.map((row) => row.strategy)).size > 1;

function compareValues(one, other) {
  if (one === other) return 0;
  if (!isGiven(one)) return 1; // what is unknown stands last, both ways
  if (!isGiven(other)) return -1;
  if (typeof one === "string") return one.localeCompare(other, "en", { numeric: true, sensitivity: "base" });
  return one - other;
}

function sortedRows(rows, column, descending) {
  return rows
    .map((row, index) => [row, column.value(row), index])
    .sort(([, one, first], [, other, second]) => {
      const order = compareValues(one, other);
      return (descending && isGiven(one) && isGiven(other) ? -order : order) || first - second;
    })
    .map(([row]) => row);
}

// {name, caption, columns, rows, sort: default such as "-score", or null; sections: [[id, heading]], sectionOf, limit: rows of a
// section that are shown at first, keep(row): those shown beyond it, classOf(row), pinned: {heading, rows} that stand above all,
// and at their place, too; className: of the table, box and region: class and name of what it scrolls in, plain: without a
// file to save}
function table({
  name,
  className = "",
  box = "",
  caption,
  region = caption,
  columns,
  rows,
  sort = null,
  sections = [["", null]],
  sectionOf = () => "",
  limit = Infinity,
  keep = () => false,
  classOf = () => "",
  pinned = null,
  plain = false,
}) {
  const key = `sort-${name}`;
  const current = sort && option(key, sort);
  const descending = Boolean(current?.startsWith("-"));
  const column = sort && (columns.find((item) => item.key === current.replace("-", "")) ?? columns[0]);
  const heads = columns.map((item) =>
    headCell(item, sort && item === column ? (descending ? "descending" : "ascending") : null, key, Boolean(sort)),
  );
  const head = make("thead", {}, make("tr", {}, ...heads));
  const element = make("table", { className }, make("caption", { textContent: caption }), head);
  const ordered = sort ? sortedRows(rows, column, descending) : rows;
  const draw = (some) => some.map((row) => tableRow(row, columns, classOf(row)));
  if (pinned?.rows.length) {
    const above = ordered.filter((row) => pinned.rows.includes(row));
    element.append(make("tbody", { className: "pinned" }, sectionRow(pinned.heading, columns), ...draw(above)));
  }
  for (const [id, heading] of sections) {
    const members = ordered.filter((row) => sectionOf(row) === id);
    if (!members.length) continue;
    const shown = onPaper ? members : members.filter((row, index) => index < limit || keep(row));
    const body = make("tbody", {}, heading ? sectionRow(heading, columns) : null, ...draw(shown));
    if (shown.length < members.length)
      body.append(moreRow(members.length - shown.length, columns, () => body.replaceChildren(...draw(members))));
    element.append(body);
  }
  const scrolls = scrollBox(region, box, element);
  if (plain) return scrolls;
  const lines = () => [columns.map(titleOf), ...ordered.map((row) => columns.map((item) => plainValue(item, row)))];
  return make("div", {}, scrolls, csvButton(caption, lines));
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
  const content = () => `\ufeff${lines().map((line) => line.map(csvCell).join(",")).join("\r\n")}\r\n`;
  const save = () => saveFile(content(), "text/csv", caption, "csv");
  return make("div", { className: "tools" }, button("CSV", save, { title: "Save this table as CSV" }));
}

function saveFile(content, type, label, ending) {
  const name = label.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80) || "medtasks";
  const address = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href: address, download: `${name}.${ending}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// A text that a spreadsheet would take for a formula gets an apostrophe.
function csvCell(value) {
  if (!isGiven(value) || value === NONE) return "";
  const words = typeof value === "string" && /^[=+@\t\r]|^-(?![\d.])/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
}

// {label, heading: of the first column, rows and columns: [{title, node}], cell(row, column) -> text or null}
function matrixTable({ label, heading = "", rows, columns, cell }) {
  const nameOf = ({ node, title }) => node?.cloneNode?.(true) ?? node ?? title;
  return table({
    className: "values",
    box: "tall",
    caption: label,
    region: `${label}, values`,
    rows: [...rows.keys()],
    columns: [
      { title: heading, head: true, cell: (row) => nameOf(rows[row]) },
      ...columns.map((column, place) => ({ title: nameOf(column), numeric: true, cell: (row) => cell(row, place) ?? NONE })),
    ],
  });
}

const classOfCell = ({ numeric, className = "" }) => `${numeric ? "number" : ""} ${className}`.trim();

function headCell(column, sorted, key, sorts) {
  const cell = make("th", { scope: "col", className: classOfCell(column) });
  if (!sorts || !column.value || onPaper) {
    cell.append(column.title);
    return cell;
  }
  const falling = sorted ? sorted === "ascending" : column.sort === "desc" || (column.numeric && column.sort !== "asc");
  const arrow = { ascending: "▲", descending: "▼" }[sorted] ?? "";
  cell.append(
    make(
      "button",
      {
        type: "button",
        "data-key": `${key} ${column.key}`,
        title: column.hint,
        onclick: () => change({ [key]: `${falling ? "-" : ""}${column.key}` }),
      },
      column.title,
      make("span", { className: "arrow", "aria-hidden": "true", textContent: arrow }),
    ),
  );
  if (sorted) cell.setAttribute("aria-sort", sorted);
  return cell;
}

function sectionRow(heading, columns) {
  const cell = make("th", { colSpan: columns.length, scope: "rowgroup" }, text("span", "", heading));
  return make("tr", { className: "section" }, cell);
}

function tableRow(row, columns, className) {
  const first = columns.findIndex((column) => column.head);
  const cells = columns.map((column, place) => {
    const content = column.cell(row);
    if (content instanceof HTMLTableCellElement) return content;
    const kind = place === first ? "th" : "td";
    return make(kind, { className: classOfCell(column), scope: place === first ? "row" : null }, content);
  });
  return make("tr", { className }, ...cells);
}

function moreRow(n, columns, all) {
  const more = button(`Show ${plural(n, "more row")}`, all, { className: "" });
  return make("tr", { className: "more" }, make("td", { colSpan: columns.length }, more));
}
