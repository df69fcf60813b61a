// A matrix of coloured cells on a canvas, with names that stay in sight, a cursor for the keyboard and a table of the same values.

const LONGEST_PAGE = 34; // rows of a matrix on one sheet of paper
const CANVAS_AREA = 16e6; // pixels that every browser can draw

// {label, rows: [{title, node}], columns: [{title, node, group}], cell(row, column) -> {colour: [r, g, b], text, mark, tip: [..],
//  go: address, pick: function} or null, legend: node, wide: smallest width of a cell, heading: of the table's first column}
function grid(options) {
  const { rows, columns } = options;
  if (!rows.length || !columns.length) return note("Nothing to show for this selection.");
  const chunks = [];
  const size = onPaper ? LONGEST_PAGE : rows.length;
  for (let start = 0; start < rows.length; start += size) chunks.push([start, rows.slice(start, start + size)]);
  const parts = chunks.map(([start, members]) =>
    gridPart({ ...options, rows: members, cell: (row, column) => options.cell(start + row, column) }),
  );
  const values = folded("The same values as a table", () => gridTable(options), { className: "as-table" });
  return make("figure", {}, options.legend, ...parts, values);
}

function gridSize(rows, columns, wide) {
  const names = onPaper ? 190 : innerWidth < 600 ? 120 : 230;
  const space = (onPaper ? 1020 : document.getElementById("main").clientWidth - 22) - names;
  const smallest = onPaper ? 3 : wide;
  const width = Math.max(smallest, Math.min(onPaper ? 60 : 72, Math.floor((10 * space) / columns.length) / 10));
  return { names, width: onPaper ? width : Math.floor(width), height: onPaper ? 14 : rows.length > 60 ? 18 : 22 };
}

function gridPart({ label, rows, columns, cell, wide = 14 }) {
  const { names, width, height } = gridSize(rows, columns, wide);
  const cells = rows.map((_, row) => columns.map((_, column) => cell(row, column)));
  const canvas = make("canvas");
  const cursor = make("div", { className: "cursor", hidden: true });
  const spoken = make("div", { className: "spoken", "aria-live": "polite" });
  const field = make(
    "div",
    {
      className: "field",
      tabIndex: 0,
      role: "application",
      "aria-roledescription": "matrix",
      "aria-label": `${label}. Arrow keys move, Enter opens. The same values follow as a table.`,
      "data-key": `grid ${label}`,
    },
    canvas,
    cursor,
  );
  const part = make(
    "div",
    { className: "grid" },
    make("div", { className: "corner" }),
    columnNames(columns, width),
    rowNames(rows, height),
    field,
  );
  part.style.gridTemplateColumns = `${names}px ${width * columns.length}px`;
  paint(
    canvas,
    cells,
    width,
    height,
    columns.map((column, index) => index > 0 && column.group !== columns[index - 1].group),
  );
  moveOver(field, canvas, cursor, spoken, cells, width, height);
  return make("div", { className: "grid-frame" }, make("div", { className: "grid-scroll" }, part), spoken);
}

function paint(canvas, cells, width, height, starts) {
  const [w, h] = [width * cells[0].length, height * cells.length];
  const scale = Math.min(onPaper ? 2 : devicePixelRatio || 1, Math.sqrt(CANVAS_AREA / (w * h)));
  canvas.width = Math.ceil(w * scale);
  canvas.height = Math.ceil(h * scale);
  canvas.style.width = `${w}px`;
  canvas.style.height = `${h}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const empty = cssColour("empty");
  const gap = width >= 8 ? 1 : 0.4;
  cells.forEach((line, row) =>
    line.forEach((item, column) => {
      const indent = starts[column] && width >= 6 ? 2 : 0; // a little air before each group
      const [x, y] = [column * width + indent, row * height];
      pen.fillStyle = item ? rgb(item.colour) : empty;
      if (item) pen.fillRect(x, y, width - gap - indent, height - 1);
      else pen.fillRect(x + width / 2 - 1.5, y + height / 2 - 1, 3, 2); // nothing there: a dash
      if (!item) return;
      pen.fillStyle = inkOn(item.colour);
      if (item.text && width >= 34) {
        pen.font = `${width >= 44 ? 11 : 10}px system-ui, sans-serif`;
        pen.fillText(item.text, x + width / 2 - (item.mark ? 3 : 0), y + height / 2);
      } else if (item.glyph && width >= 8) {
        pen.font = "bold 11px system-ui, sans-serif";
        pen.fillText(item.glyph, x + width / 2, y + height / 2);
      }
      if (item.mark) {
        const beside = item.text && width >= 34;
        pen.beginPath();
        pen.arc(x + (beside ? width - 5 : width / 2), y + (beside ? 5 : height / 2), 2, 0, 7);
        pen.fill();
      }
    }),
  );
}

function columnNames(columns, width) {
  if (onPaper)
    return make("div", { className: "column-names" }, columnGroups(columns, width), namesOnPaper(columns, width));
  const names = columns.map((column) => {
    const item = make("div", { className: "column-name", title: column.title }, column.node ?? column.title);
    item.style.width = `${width}px`;
    if (width < 9) item.classList.add("hidden-name");
    return item;
  });
  return make(
    "div",
    { className: "column-names" },
    columnGroups(columns, width),
    make("div", { className: "column-line" }, ...names),
  );
}

// Upright text in boxes is lost where Chromium breaks pages; in a drawing it is not.
function namesOnPaper(columns, width) {
  if (width < 7) return null;
  const height = 120;
  const longest = 24; // characters
  const names = columns.map(({ title }, index) => {
    const x = (index + 0.5) * width + 3;
    const shown = title.length > longest ? `${title.slice(0, longest - 1)}…` : title;
    return svg("text", { class: "name", x, y: height - 4, transform: `rotate(-90 ${x} ${height - 4})` }, shown);
  });
  return svg("svg", { class: "names-on-paper", width: width * columns.length, height }, ...names);
}

// Runs of columns of one group under one heading.
function columnGroups(columns, width) {
  if (!columns.some((column) => column.group)) return null;
  const runs = [];
  for (const column of columns) {
    if (runs.length && runs[runs.length - 1].group === column.group) runs[runs.length - 1].n += 1;
    else runs.push({ group: column.group, n: 1 });
  }
  return make(
    "div",
    { className: "column-groups" },
    ...runs.map((run) => {
      const item = make("div", { textContent: run.group, title: run.group });
      item.style.width = `${run.n * width}px`;
      return item;
    }),
  );
}

function rowNames(rows, height) {
  return make(
    "div",
    { className: "row-names" },
    ...rows.map((row) => {
      const item = make("div", { title: row.title }, row.node ?? row.title);
      item.style.height = `${height}px`;
      return item;
    }),
  );
}

function moveOver(field, canvas, cursor, spoken, cells, width, height) {
  let at = [0, 0];
  const clamp = (value, limit) => Math.min(Math.max(value, 0), limit - 1);
  const place = ([row, column]) => {
    at = [clamp(row, cells.length), clamp(column, cells[0].length)];
    cursor.hidden = false;
    Object.assign(cursor.style, {
      left: `${at[1] * width}px`,
      top: `${at[0] * height}px`,
      width: `${width}px`,
      height: `${height}px`,
    });
    return cells[at[0]][at[1]];
  };
  const act = (item) => {
    if (item?.pick) item.pick();
    else if (item?.go) location.hash = item.go;
  };
  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    return [Math.floor((event.clientY - box.top) / height), Math.floor((event.clientX - box.left) / width)];
  };
  field.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    const item = place(under(event));
    if (item) showTip(item.tip, event.clientX, event.clientY);
    else hideTip();
  });
  field.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "touch") return;
    hideTip();
    cursor.hidden = document.activeElement !== field;
  });
  // a finger first asks for the value; a second touch of the cell opens it
  let finger = false;
  field.addEventListener("pointerdown", (event) => {
    finger = event.pointerType === "touch";
  });
  field.addEventListener("click", (event) => {
    const before = cursor.hidden ? "" : at.join();
    const item = place(under(event));
    if (!finger || before === at.join()) act(item);
    else if (item) showTip(item.tip, event.clientX, event.clientY);
  });
  field.addEventListener("focus", () => {
    if (field.matches(":focus-visible")) tell(place(at));
  });
  field.addEventListener("blur", () => {
    cursor.hidden = true;
    hideTip();
  });
  const tell = (item) => {
    spoken.textContent = item ? item.tip.filter(Boolean).join(", ") : "no value";
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
    const box = cursor.getBoundingClientRect();
    if (item) showTip(item.tip, box.left, box.bottom);
    else hideTip();
  };
  const steps = {
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    Home: [0, -1e6],
    End: [0, 1e6],
    PageUp: [-10, 0],
    PageDown: [10, 0],
  };
  field.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") act(cells[at[0]][at[1]]);
    else if (steps[event.key]) tell(place([at[0] + steps[event.key][0], at[1] + steps[event.key][1]]));
    else return;
    event.preventDefault();
  });
}

function gridTable({ label, rows, columns, cell, heading = "" }) {
  return make(
    "div",
    { className: "scroll tall", tabIndex: 0, role: "region", "aria-label": `${label}, values` },
    make(
      "table",
      { className: "values" },
      make("caption", { textContent: label }),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("th", { scope: "col", textContent: heading }),
          ...columns.map((column) => make("th", { scope: "col", textContent: column.title })),
        ),
      ),
      make(
        "tbody",
        {},
        ...rows.map((row, r) =>
          make(
            "tr",
            {},
            make("th", { scope: "row", textContent: row.title }),
            ...columns.map((_, c) => make("td", { className: "number", textContent: gridWords(cell(r, c)) })),
          ),
        ),
      ),
    ),
  );
}

function rampLegend(colourAt, low, high, labels) {
  const steps = 40;
  const bar = svg(
    "svg",
    { width: 160, height: 12, "aria-hidden": "true" },
    ...Array.from({ length: steps }, (_, index) =>
      svg("rect", {
        x: index * (160 / steps),
        y: 0,
        width: 160 / steps + 0.5,
        height: 12,
        fill: rgb(colourAt(low + ((high - low) * index) / (steps - 1))),
      }),
    ),
  );
  return make(
    "div",
    { className: "ramp" },
    text("span", "", labels[0]),
    bar,
    text("span", "", labels[1]),
    ...labels.slice(2).map((item) => text("span", "more", item)),
  );
}

function gridWords(item) {
  return item ? (item.words ?? item.text) : NONE;
}
