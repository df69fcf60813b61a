// Pictures by Vega-Lite. `report/pictures/kinds` has a spec for each kind; it is filled here by the rules of
// `report/pictures/spec.py`.

const LEFT_OUT = Symbol("left out");
let shownViews = []; // of the part that is shown

function filledSpec(part, words) {
  if (typeof part === "string" && part.startsWith("$")) {
    const value = words[part.slice(1)];
    return value === undefined ? LEFT_OUT : value;
  }
  if (Array.isArray(part)) return part.map((item) => filledSpec(item, words)).filter((item) => item !== LEFT_OUT);
  if (part === null || typeof part !== "object") return part;
  if ("$if" in part && !given(words[part.$if])) return LEFT_OUT;
  return Object.fromEntries(
    Object.entries(part)
      .filter(([name]) => name !== "$if")
      .map(([name, value]) => [name, filledSpec(value, words)])
      .filter(([, value]) => value !== LEFT_OUT),
  );
}

const given = (value) => (Array.isArray(value) ? value.length > 0 : Boolean(value));
const places = (names) => (names ?? []).map((_, place) => place);

function pictureSpec(kind, rows, words, dark) {
  const { kinds, themes, font } = report.pictures;
  const colours = themes[dark ? "dark" : "light"];
  const { colours: scale = "series", ...own } = words;
  const known = {
    ...colours,
    background: colours.ground,
    own_ink: colours.own,
    font,
    own: [],
    own_columns: [],
    gradient: isNarrow() ? 120 : 180,
    shapes: themes.shapes,
    colours: Array.isArray(scale) ? scale : colours[scale],
    beside: 12,
    ...own,
    line_places: places(own.lines),
    column_places: places(own.columns),
  };
  const spec = filledSpec({ ...kinds.config, ...kinds[kind] }, known);
  return { ...spec, datasets: { rows }, data: { name: "rows" } };
}

const SOFT_LIMIT = 2500; // marks that the page draws one by one; more go on a canvas

function viewOf(spec, renderer = "none") {
  const { spec: compiled } = vegaLite.compile(spec, { logger: vega.logger(vega.Error) });
  return new vega.View(vega.parse(compiled, null, { ast: true }), {
    expr: vegaInterpreter.expressionInterpreter,
    renderer,
    logLevel: vega.Error,
    loader: vega.loader({ target: "_self" }),
  });
}

// {kind, label: what it shows, rows, words, pick(row): what a click does, values: node of the
// same figures as a table, scrolls: whether it is wider than the page}
function picture({ kind, label, rows, words, pick, values, scrolls = false }) {
  const place = make("div", { className: `drawing ${kind === "dots" ? kind : ""}` });
  const many = rows.length > SOFT_LIMIT && !onPaper;
  const view = viewOf(pictureSpec(kind, rows, words, isDark()), many ? "canvas" : "svg");
  view.tooltip((_, event, item, value) => {
    if (value) showTip(String(value).split("\n"), event.clientX, event.clientY);
    else hideTip();
  });
  if (pick) {
    let touched = null; // a finger first asks for the value; a second touch opens it
    view.addEventListener("click", (event, item) => {
      if (!item?.datum) return;
      if (event.pointerType !== "touch" || touched === item.datum) pick(item.datum);
      else if (item.tooltip) showTip(String(item.tooltip).split("\n"), event.clientX, event.clientY);
      touched = item.datum;
    });
    place.classList.add("picks");
  }
  view.initialize(place).hover().run();
  shownViews.push(view);
  const box = make("div", { className: "picture", role: "img", "aria-label": label }, place);
  const title = wrapped(label, Math.max(40, Math.floor((words.width ?? 640) / 8)));
  const alone = { ...words, caption: title, heading: title };
  const light = () => viewOf(pictureSpec(kind, rows, alone, false));
  const save = (name, action) => button(name, action, { title: `Save this picture as ${name}` });
  const svg = () => light().toSVG().then((image) => saveFile(image, "image/svg+xml", label, "svg"));
  const png = () =>
    light().toCanvas(2).then((canvas) => canvas.toBlob((image) => saveFile(image, "image/png", label, "png")));
  const table_ = values ? folded("The same values as a table", values, { className: "as-table" }) : null;
  return make(
    "figure",
    {},
    scrolls ? scrollBox(`${label}, picture`, "sideways", box) : box,
    make("div", { className: "under" }, table_, make("div", { className: "tools" }, save("SVG", svg), save("PNG", png))),
  );
}

function forgetPictures() {
  for (const view of shownViews) view.finalize();
  shownViews = [];
}

// Pixels for a picture's width: that of the page.
function roomOf(most = Infinity) {
  const { paddingLeft, paddingRight } = getComputedStyle(main);
  const free = main.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  return onPaper ? 940 : Math.max(280, Math.min(most, free));
}

// The same in the first column of `.beside-it`.
const besideRoom = () => (!onPaper && matchMedia("(min-width: 64rem)").matches ? Math.floor((roomOf() - 32) * 0.6) : roomOf());

const isNarrow = () => !onPaper && innerWidth < 600;
const nameRoom = () => (onPaper ? 170 : isNarrow() ? Math.min(140, Math.floor(0.36 * innerWidth)) : 240);

// The names of series above a picture, where there are several.
const legendOf = (names) => (names.length > 1 ? { title: null, columns: isNarrow() ? 1 : 0 } : null);

// Names of lines as pictures show them, whole, on as many lines as they take: {names, deep: the most of these}.
function namesOf(rows) {
  const names = rows.map(({ title }) => wrapped(String(title), Math.floor(nameRoom() / 7.2)));
  return { names, deep: Math.max(1, ...names.map((lines) => lines.length)) };
}

// ------------------------------------------------------------------ matrices

const NAME_LINE = 14; // pixels of a line of a name
const LETTER = 6.4; // pixels of a letter of a name
const LEAST_STEP = 13; // pixels of a column on a screen
const MOST_LINES = 40; // of a matrix, until all are asked for

// {label, heading: of the table's first column, rows and columns: [{title, node, own}], columns have no `own`,
//  cell(row, column) -> {value, words, tip, said: in the table, go, pick} or null, words: of the kind}. A narrow screen
//  turns what has more columns than rows, and leaves out what has no room.
function heat({ label, heading, rows, columns, cell, words }) {
  if (!rows.length || !columns.length) return note("Nothing to show for this selection.");
  const fits = isNarrow() ? Math.floor((roomOf() - nameRoom() - 16) / LEAST_STEP) : Infinity;
  const turned = columns.length > fits && rows.length < columns.length;
  const [down, across] = turned ? [columns, rows] : [rows, columns];
  const lines = linesShown(down);
  const beside = keptOf(across, fits);
  const at = (line, column) =>
    turned ? cell(rows.indexOf(column), columns.indexOf(line)) : cell(rows.indexOf(line), columns.indexOf(column));
  const cells = lines.map((line) => beside.map((column) => at(line, column)));
  const shownOf = ({ tip, go, pick, said, ...shown }, x, y) => ({ ...shown, x, y, tip: tip.filter(Boolean).join("\n") });
  const found = cells.flatMap((line, y) => line.flatMap((item, x) => (item ? [shownOf(item, x, y)] : [])));
  const size = matrixSize(lines, beside, Math.max(0, ...found.map((item) => item.words?.length ?? 0)));
  const measure = words.measure ? { measure: wrapped(words.measure, isNarrow() ? 24 : 80) } : {};
  const said = (row, column) => cell(row, column)?.said ?? cell(row, column)?.words ?? null;
  const drawn = picture({
    kind: "heat",
    label,
    rows: found,
    words: { ...size, own: ownPlaces(lines), own_columns: ownPlaces(beside), ...words, ...measure },
    pick: ({ x, y }) => act(cells[y]?.[x]),
    values: () => matrixTable({ label, heading, rows, columns, cell: said }),
    scrolls: size.width > roomOf(),
  });
  const part = `${count(beside.length)} of ${count(across.length)} columns have room here; the table has all.`;
  return make(
    "div",
    {},
    drawn,
    beside.length < across.length ? note(part) : "",
    lines.length < down.length ? smallButton(`Show all ${count(down.length)} rows`, { lines: "all" }) : "",
  );
}

// The first lines of many, and own ones, until all are asked for.
function linesShown(lines) {
  const all = option("lines") === "all" || onPaper;
  return lines.filter((line, place) => all || place < MOST_LINES || line.own);
}

const ownPlaces = (names) => names.flatMap(({ own }, place) => (own ? [place] : []));

// The first of some, own ones before others, in their order.
function keptOf(names, most) {
  const first = new Set([...names].sort((one, other) => Boolean(other.own) - Boolean(one.own)).slice(0, most));
  return names.filter((name) => first.has(name));
}

function act(item) {
  if (item?.pick) item.pick();
  else if (item?.go) location.hash = item.go;
}

// As wide as the screen allows, with words in cells where they fit; names of columns on several lines, aslant or upright.
function matrixSize(rows, columns, longest) {
  const { names: lines, deep } = namesOf(rows);
  const free = roomOf() - nameRoom() - 16;
  const stepIn = (room) => Math.max(onPaper ? 6 : LEAST_STEP, Math.min(150, Math.floor(room / columns.length)));
  const titles = columns.map(({ title }) => String(title));
  const letters = Math.floor((stepIn(free) - 6) / LETTER); // that fit beside each other
  const level = Math.max(...titles.flatMap((title) => title.split(" ")).map((word) => word.length)) <= letters;
  const aslant = 12 + 0.77 * LETTER * Math.max(...titles.map((title) => title.length)); // pixels that a name takes to the right
  const upright = !level && (stepIn(free) < 40 || aslant > 0.3 * free);
  const step = stepIn(level || upright ? free : free - aslant);
  const names = level ? titles.map((title) => wrapped(title, letters)) : titles;
  return {
    step,
    lines,
    columns: names,
    height: Math.max(rows.length > 60 ? 18 : 24, NAME_LINE * deep + 4),
    angle: level ? 0 : upright ? -90 : -40,
    above: level ? 14 * Math.max(...names.map((lines) => lines.length)) - 8 : 6,
    gap: step > 10 ? 1 : 0.3,
    numbers: step >= 4 + 6 * longest,
    width: nameRoom() + step * columns.length + (level || upright ? 12 : aslant),
  };
}

// On several lines, broken behind spaces and the marks that names of models have; a longer word anywhere.
function wrapped(title, letters) {
  const lines = [""];
  for (const word of title.split(/(?<=[ /_-])/)) {
    if (`${lines.at(-1)}${word}`.trim().length <= letters) lines.push(lines.pop() + word);
    else for (let at = 0; at < word.length; at += letters) lines.push(word.slice(at, at + letters));
  }
  return lines.map((line) => line.trim()).filter(Boolean);
}

// ------------------------------------------------------------------ dots

// {label, heading, series: names, rows: [{title, node, own, points: [{series: place, value, low, high, tip}]}], words: of
// the kind `dots`, format}
function dots({ label, heading = "Model", series, rows, words, format = fixed }) {
  if (!rows.length) return note("Nothing to show for this selection.");
  const pointOf = (line, { series: at, value, low = null, high = null, tip }) => {
    return { line, series: series[at], value, low, high, tip: tip.filter(Boolean).join("\n") };
  };
  const points = rows.flatMap((row, line) =>
    row.points.filter((point) => isNumber(point.value)).map((point) => pointOf(line, point)),
  );
  const step = series.length > 4 ? 10 : 13;
  const { names, deep } = namesOf(rows);
  const height = Math.max(26, series.length * step + 12, NAME_LINE * deep + 4);
  const cell = (row, column) => {
    const point = rows[row].points.find((item) => item.series === column);
    return point && isNumber(point.value) ? `${format(point.value)} ${interval(point, format)}` : null;
  };
  return picture({
    kind: "dots",
    label,
    rows: points,
    words: {
      width: roomOf(),
      height,
      tick: Math.round(0.7 * height),
      size: series.length > 4 ? 45 : 65,
      lines: names,
      own: ownPlaces(rows),
      series,
      legend: legendOf(series),
      format: ".4~f",
      ...words,
    },
    values: () => matrixTable({ label, heading, rows, columns: series.map((title) => ({ title })), cell }),
  });
}

// ------------------------------------------------------------------ shares of others below

const PERCENTILES = 420; // pixels where several stand beside each other

// {label, heading, rows: [{title, value: share below, lead, words: behind the line, tip}], beside: pixels for these, values}
function percentiles({ label, heading, rows, beside, values }) {
  const room = isNarrow() ? 130 : 190;
  const lines = rows.map(({ title }) => wrapped(title, Math.floor(room / 6.5)));
  return picture({
    kind: "percentiles",
    label,
    rows: rows.map((row, line) => ({ ...row, line })),
    words: {
      heading,
      lines,
      step: Math.max(24, NAME_LINE * Math.max(...lines.map((parts) => parts.length))),
      width: onPaper || innerWidth > 1000 ? PERCENTILES : roomOf(620) - 44,
      beside,
    },
    values,
  });
}
