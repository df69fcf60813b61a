// What the papers print: a page for each table and picture, and the page that lists them.

// A drawing of medtasks_lab/atlas/picture.py, in the width and the colours of the page.
function paperPicture({ kind, says, rows, words }, label, values) {
  const width = Math.min(words.width ?? Infinity, roomOf());
  const caption = wrapped(words.caption.join(" "), Math.floor(width / 7.5));
  if (kind === "heat") return paperMatrix({ says, rows, words: { ...words, caption } }, label, values);
  const named = words.groups ?? words.series;
  const { names, deep } = namesOf((words.lines ?? []).map((title) => ({ title })));
  const few = { x_ticks: 4, legend: words.legend && { ...words.legend, columns: 1 } };
  return picture({
    kind,
    label,
    says,
    rows: isNarrow() ? rows.map((row) => ({ ...row, label: null })) : rows,
    words: {
      ...words,
      ...(named ? looksOf(named) : {}),
      ...(isNarrow() ? few : {}),
      caption,
      width,
      ...(words.lines ? { lines: names, height: Math.max(words.height, NAME_LINE * deep + 2) } : {}),
    },
    values,
  });
}

function paperMatrix({ says, rows, words }, label, values) {
  const { lines, columns, own, caption, domain, measure, format } = words;
  const at = new Map(rows.map((row) => [`${row.y} ${row.x}`, row]));
  return heat({
    label,
    says,
    rows: lines.map((title, place) => ({ title, own: own.includes(place) })),
    columns: columns.map((names) => ({ title: [names].flat().join(" ") })),
    cell: (row, column) => {
      const item = at.get(`${row} ${column}`);
      return item ? { value: item.value, words: item.words, tip: item.tip.split("\n") } : null;
    },
    words: { caption, domain, measure, format, colours: "sequential" },
    values,
    most: Infinity,
  });
}

function drawPaper() {
  const back = make("p", {}, link(`${site.home}pictures.html`, "All tables and pictures of the papers"));
  const title = `${site.title} (${site.suite[1]}, ${site.source})`;
  return [
    text("h2", "", site.title),
    text("p", "note", [site.suite[1], site.source, `figures ${site.state}`].join(" · ")),
    site.check ? text("p", "lead", `${site.check}.`) : null,
    make("div", { className: "drawings" }, ...site.drawings.map((drawing, number) => drawnLater(420, () => oneOf(drawing, number, title)))),
    site.wanted && !site.drawings.length ? note(`This picture is of own runs: medtasks reproduce ${site.key} RUN -o atlas`) : null,
    site.note ? note(site.note) : null,
    make("p", {}, link(`${site.home}${site.csv}`, "All figures as CSV", { download: "" }), `, printed and recomputed. The same with own runs beside: medtasks reproduce ${site.key} RUN -o atlas`),
    site.drawings.length || !site.rows.length ? null : paperTable(title),
    back,
  ];
}

// One of the pictures of a block; where there are several, each says what it is of.
function oneOf(drawing, number, title) {
  const { x_title, measure, caption } = drawing.words;
  const several = site.drawings.length > 1;
  const what = several ? [x_title ?? measure].filter(Boolean) : [];
  const words = { ...drawing.words, caption: [...caption, ...what] };
  return paperPicture({ ...drawing, words }, [title, ...what, ...(several ? [number + 1] : [])].join(", "), number ? null : () => paperTable(title));
}

function paperTable(title) {
  return matrixTable({
    label: title,
    heading: "",
    rows: site.rows.map(([name]) => ({ title: name })),
    columns: site.columns.map((name) => ({ title: name })),
    cell: (row, column) => site.rows[row][column + 1] || null,
  });
}

function drawPapers() {
  const suites = [...new Set(site.blocks.map(([suite]) => suite))];
  const shown = option("suite") ? [option("suite")] : suites;
  const drawn = site.blocks.filter((row) => row[6]);
  const [first, title, drawing] = site.first ?? [];
  return [
    text("h2", "", site.title),
    note(`${count(drawn.length)} of ${plural(site.blocks.length, "table, figure or set of claims", "tables, figures and sets of claims")} have a picture, each with its figures as CSV and as SVG and PNG. Figures are recomputed from published data where these are there.`),
    make("div", { className: "controls" }, switcher("Paper", "suite", [["", "all"], ...suites.map((name) => [name, name])], option("suite"))),
    make(
      "div",
      { className: "papers" },
      first ? make("div", {}, drawnLater(300, () => paperPicture(drawing, title, null)), make("p", {}, link(`${site.home}${first}.html`, title))) : null,
      make("div", { className: "papers-lists" }, ...suites.filter((suite) => shown.includes(suite)).map(paperList)),
    ),
    site.left_out.length
      ? titled("Without data", make("ul", {}, ...site.left_out.filter(([suite]) => shown.includes(suite)).map(([suite, name, why]) => text("li", "", `${suite}, ${name}: ${why}`))))
      : null,
  ];
}

function paperList(suite) {
  const rows = site.blocks.filter(([name]) => name === suite);
  const item = ([, title, source, page, state, n, wanted]) =>
    make("li", {}, link(`${site.home}${page}`, title), text("span", "facts-line", ` ${source} · ${state}${n ? "" : wanted ? ", picture of own runs" : ", table"}`));
  return titled(suite, make("ul", { className: "listed" }, ...rows.map(item)));
}
