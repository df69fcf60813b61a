// Results of one's own, placed among published models inside this page: the file is read here and goes nowhere.

const MOST_BYTES = 64_000_000;
const NAMES = ["submission.json", "results.json"];
let mine = null; // {name, said: one line, model, places}

function drawMine() {
  const file = make("input", { type: "file", id: "file", accept: ".json,application/json", "data-key": "file", onchange: (event) => takeFiles([...event.target.files]) });
  const folder = make("input", { type: "file", id: "folder", multiple: true, "data-key": "folder", onchange: (event) => takeFiles([...event.target.files]) });
  folder.webkitdirectory = true;
  const zone = make(
    "div",
    { className: "drop", ondragover: (event) => event.preventDefault(), ondrop: (event) => { event.preventDefault(); takeDropped(event.dataTransfer); } },
    text("p", "", "Drop results.json of a run, or the folder of a submission, here. It is read in this page, and sent nowhere."),
    make("div", { className: "controls" }, make("label", { className: "select" }, "File ", file), make("label", { className: "select" }, "Folder ", folder)),
  );
  return [
    text("h2", "", site.title),
    zone,
    make("div", { id: "placed", role: "status" }, ...(mine ? placed(mine) : [...published(), note("A rank needs the record of conditions that medtasks run writes. Ranks here are those that the file would have once its answers are checked.")])),
  ];
}

// What a file will stand among: every published model a line on the scale of scores.
function published() {
  const [[strategy]] = site.strategies;
  return Object.values(site.suites).flatMap((suite) => {
    const rivals = suite.published
      .map(([label, page, , scores]) => ({ label, page, value: scores[strategy][0] }))
      .filter(({ value }) => value !== null)
      .sort((one, other) => other.value - one.value);
    if (rivals.length < 2) return [];
    const [best, worst] = [rivals[0], rivals.at(-1)];
    return [
      make("section", { className: "published-strip" },
        make("p", {}, make("b", {}, suite.title), `: ${plural(rivals.length, "published model")}, from ${score(worst.value)} to ${score(best.value)} (`, link(`${site.home}models/${best.page}`, best.label), ")"),
        strip({ rivals, on: null }, true),
      ),
    ];
  });
}

// ------------------------------------------------------------------ reading

async function takeFiles(files) {
  const file = files.find(({ name }) => NAMES.includes(name)) ?? files[0];
  if (!file) return;
  if (file.size > MOST_BYTES) mine = { name: file.name, said: `is larger than ${count(MOST_BYTES)} bytes` };
  else mine = readMine(file.name, await file.text());
  show();
}

// What was dropped: a folder is looked through for a file of results. All of it is asked for before the first
// wait, behind which the browser has forgotten it.
async function takeDropped(transfer) {
  const items = [...transfer.items].filter(({ kind }) => kind === "file");
  const entries = items.map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const handles = items.map((item) => item.getAsFileSystemHandle?.()).filter(Boolean);
  const files = [...transfer.files];
  const folder = entries.find((entry) => entry.isDirectory);
  if (!folder) return takeFiles(files);
  let found;
  try {
    // Chromium opens no `entry` for a page that is a file itself; Firefox and Safari have no handles
    found = handles.length ? await filesBelow(await Promise.all(handles), insideOfHandle) : await filesBelow(entries, insideOfEntry);
  } catch {
    mine = { name: folder.name, said: "could not be opened: choose it by the button Folder" };
    return show();
  }
  if (found.length) return takeFiles(found);
  mine = { name: folder.name, said: `holds no ${NAMES.join(" and no ")}: no rank` };
  return show();
}

const DEEPEST = 4; // folders below the one that was dropped

// Files of results below some places, the nearest first. `inside(place)` gives {files, folders}.
async function filesBelow(places, inside, depth = DEEPEST) {
  const every = await Promise.all(places.map(inside));
  const files = every.flatMap((one) => one.files);
  const folders = every.flatMap((one) => one.folders);
  return files.length || !depth || !folders.length ? files : filesBelow(folders, inside, depth - 1);
}

async function insideOfHandle(handle) {
  const [files, folders] = [[], []];
  const members = handle.kind === "directory" ? handle.values() : [handle];
  for await (const one of members)
    if (one.kind === "directory") folders.push(one);
    else if (NAMES.includes(one.name)) files.push(await one.getFile());
  return { files, folders };
}

async function insideOfEntry(entry) {
  const members = entry.isDirectory ? await membersOf(entry.createReader()) : [entry];
  const named = members.filter(({ isFile, name }) => isFile && NAMES.includes(name));
  const files = await Promise.all(named.map((one) => new Promise((done, failed) => one.file(done, failed))));
  return { files, folders: members.filter((one) => one.isDirectory) };
}

// A reader gives some members at a time, and none at the end.
async function membersOf(reader) {
  const found = [];
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!some.length) return found;
    found.push(...some);
  }
}

// What a file says, and its places; `said` is the line that tells why it has none.
function readMine(name, content) {
  let read;
  try {
    read = JSON.parse(content);
  } catch {
    return { name, said: "is no JSON, or not whole: no rank" };
  }
  try {
    const { model, results, said } = resultsOf(read);
    if (said) return { name, said };
    const places = placesOf(results);
    return { name, model, places, said: places.length ? "" : "holds no task of a paper with published scores: no rank" };
  } catch {
    return { name, said: "does not hold what a file of medtasks holds: no rank" };
  }
}

const isMapping = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// {model, results: [{dataset, strategy, score, n, record}]}, or {said: why not}
function resultsOf(content) {
  if (!isMapping(content)) return { said: "is no results file of medtasks: no rank" };
  const isSubmission = isMapping(content.tasks) && "schema" in content;
  if (isSubmission && content.schema !== site.submission_schema)
    return { said: `is a submission of version ${String(content.schema).slice(0, 40)}, and this page reads ${site.submission_schema}: no rank` };
  if (!isSubmission && !(isMapping(content.results) && isMapping(content.configs))) return { said: "is no results file of medtasks: no rank" };
  const records = isSubmission ? content.tasks : content.medtasks?.conditions;
  if (!isMapping(records)) return { said: "has no record of conditions, as medtasks run writes it: no rank" };
  const results = [];
  for (const [task, item] of Object.entries(records)) {
    if (!Object.hasOwn(site.tasks, task)) continue;
    const record = isSubmission ? item.conditions : item;
    const score_ = isSubmission ? item.score : content.results[task]?.["score,answer"];
    const n = isSubmission ? item.n : content["n-samples"]?.[task]?.effective;
    if (!isMapping(record)) return { said: `${task} has no record of conditions: no rank` };
    if (record.schema !== undefined && record.schema !== site.table.schema)
      return { said: `has conditions of version ${String(record.schema).slice(0, 40)}, and this page reads ${site.table.schema}: medtasks rescore RUN` };
    if (typeof score_ !== "number" || !Number.isFinite(score_) || !Number.isInteger(n)) continue;
    results.push({ dataset: site.tasks[task][0], strategy: record.asked?.strategy ?? "zero_shot", score: score_, n, record });
  }
  const said = content.medtasks?.manifest?.identity?.model?.model_args ?? {};
  const model = isSubmission ? content.model : (said.pretrained ?? said.model ?? content.medtasks?.manifest?.identity?.model?.model);
  return { model: String(model ?? "your model").slice(0, 120), results };
}

// ------------------------------------------------------------------ places

// A score as pages have it: whole ten-thousandths, cut off (`boards.whole_of`).
function cutOff(value) {
  const product = value * UNIT;
  const found = Math.floor(product);
  if (found !== product) return found;
  let [mantissa, power] = [value, 0n];
  while (!Number.isInteger(mantissa)) [mantissa, power] = [mantissa * 2, power + 1n];
  return BigInt(found) * (1n << power) > BigInt(mantissa) * BigInt(UNIT) ? found - 1 : found;
}

const rounded = (value) => Number(value.toFixed(12));

// What keeps a result from standing beside those of the paper; none where it may.
function againstThePaper({ dataset, strategy, n, record }) {
  const [, , version, asked, room] = site.datasets[dataset];
  const facts = factsOf(site.table, record, room);
  if (!Object.hasOwn(asked, strategy)) return ["strategy"];
  const paper = site.ways[asked[strategy]];
  const { moving } = comparable(site.table, facts, paper);
  const part = isWhole(record, n) ? [] : ["a part of the rows, answers or judgements"];
  const older = facts.version === version ? [] : ["another version of the task"];
  return [...moving, ...part, ...older];
}

function placesOf(results) {
  const found = [];
  for (const [id, suite] of Object.entries(site.suites))
    for (const [strategy, title] of site.strategies) {
      const own = results.filter((item) => item.strategy === strategy && site.datasets[item.dataset][0] === id);
      if (own.length) found.push({ id, suite, strategy, title, ...placeOf(suite, strategy, own) });
    }
  return found.sort((one, other) => (one.rank === null) - (other.rank === null) || other.tasks - one.tasks);
}

// {score: on all tasks that it has, alike, rank, of, on: score on what is ranked, rivals, reasons}
function placeOf(suite, strategy, own) {
  const reasons = new Map();
  const alike = own.filter((item) => {
    const why = againstThePaper(item);
    for (const reason of new Set(why)) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    return !why.length;
  });
  const scoreOn = (items) => {
    const scores = Object.fromEntries(items.map(({ dataset, score: value }) => [dataset, value]));
    return rounded(meanOf(weightsOf(suite, new Set(Object.keys(scores))), scores));
  };
  const ids = new Set(alike.map(({ dataset }) => dataset));
  const whole = suite.counted.every((name) => ids.has(name));
  const documents_ = alike.reduce((sum, { n }) => sum + n, 0);
  const enough = whole || (alike.length >= site.fewest[0] && documents_ >= site.fewest[1]);
  const base = { score: scoreOn(own), tasks: own.length, alike: alike.length, reasons: [...reasons], whole, documents: documents_ };
  if (!enough) return { ...base, rank: null, of: null, on: null, rivals: [] };
  const on = scoreOn(alike);
  const rivals = suite.published
    .map(([label, page, size, scores]) => ({ label, page, size, value: valueOn(suite, scores[strategy], ids, whole) }))
    .filter(({ value }) => value !== null)
    .sort((one, other) => other.value - one.value);
  const mark = whole ? cutOff(on) : on + 1e-12;
  const better = rivals.filter(({ value }) => value > mark).length;
  return { ...base, on, rivals, rank: rivals.length ? better + 1 : null, of: rivals.length + 1 };
}

// A published model's score: of the whole suite as it is ranked there, or on the same tasks.
function valueOn(suite, [all, values], ids, whole) {
  if (whole) return all;
  const scores = Object.fromEntries(suite.datasets.map((name, place) => [name, values[place]]));
  return [...ids].every((name) => isNumber(scores[name])) ? rounded(meanOf(weightsOf(suite, ids), scores)) : null;
}

// ------------------------------------------------------------------ what is said

function placed({ name, said, model, places = [] }) {
  if (said) return [make("p", { className: "refused" }, make("b", {}, name), ` ${said}`)];
  return places.map((place) => placeCard(model, place));
}

function placeCard(model, place) {
  const { suite, title, rank, of, on, whole, alike, tasks, reasons, documents: documents_ } = place;
  const shown = (value) => fixed(value);
  const why = reasons.map(([reason, n]) => `${reason} in ${n}`).join(", ");
  const sentence =
    rank === null
      ? `${shown(place.score)} on ${plural(tasks, "task")}: no rank. ${plural(alike, "task")} with ${plural(documents_, "document")} under the paper’s conditions; ${site.fewest[0]} with ${site.fewest[1]} are needed${why ? ` (${why})` : ""}.`
      : whole
        ? `${shown(on)}: rank ${rank} of ${of}, once its answers are checked.`
        : `${shown(on)} on ${plural(alike, "task")} of ${suite.counted.length}: rank ${rank} of ${of} on these tasks alone, once its answers are checked${why ? `; left out: ${why}` : ""}.`;
  return make(
    "section",
    { className: "standing" },
    make("h3", {}, model, ` · ${suite.title}, ${title}`),
    text("p", "sentence", sentence),
    rank === null ? null : strip(place, whole),
    rank === null ? null : around(model, place, whole),
  );
}

function strip({ rivals, on }, whole) {
  const own = on === null ? null : whole ? cutOff(on) : on;
  const every = [...rivals.map(({ value }) => value), ...(own === null ? [] : [own])];
  const [least, most] = [Math.min(...every), Math.max(...every)];
  const at = (value) => `${2 + (96 * (value - least)) / (most - least || 1)}%`;
  return shape(
    "svg",
    { class: "strip", width: "100%", height: 30, role: "img", "aria-label": own === null ? "Published models" : "Published models, and your results above them" },
    shape("line", { class: "base", x1: "2%", x2: "98%", y1: 26, y2: 26 }),
    ...rivals.map(({ value }) => shape("line", { class: "rival", x1: at(value), x2: at(value), y1: 16, y2: 26 })),
    own === null ? null : shape("circle", { class: "own", cx: at(own), cy: 8, r: 6 }),
  );
}

function around(model, { rivals, rank, on }, whole) {
  const shown = (value) => (whole ? score(value) : fixed(value));
  const first = Math.max(0, rank - 4);
  const better = rivals.slice(first, rank - 1).map((item, index) => ({ ...item, rank: first + index + 1 }));
  const worse = rivals.slice(rank - 1, rank + 3).map((item, index) => ({ ...item, rank: rank + index + 1 }));
  const own = { label: model, page: null, size: null, value: whole ? cutOff(on) : on, rank };
  return table({
    name: "around",
    caption: "Models around yours",
    rows: [...better, own, ...worse],
    sort: "rank",
    classOf: (row) => (row === own ? "own" : ""),
    columns: [
      { key: "rank", title: "Rank", numeric: true, sort: "asc", value: (row) => row.rank, cell: (row) => String(row.rank) },
      { key: "model", title: "Model", head: true, value: (row) => row.label, cell: (row) => (row.page ? link(`${site.home}models/${row.page}`, row.label, { className: "name" }) : text("span", "name", row.label)) },
      { key: "size", title: "Size, B", numeric: true, value: (row) => row.size, cell: (row) => sizeText(row.size) },
      { key: "score", title: "Score", numeric: true, value: (row) => row.value, cell: (row) => shown(row.value) },
    ],
  });
}
