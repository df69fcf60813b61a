// The frame: header, routes, keyboard, looking again while a run goes on, paper.

const said = document.getElementById("said");
const POLL = 2000; // milliseconds
const FIRST_POLL = 500; // before the first answer
const SAMPLE_WORDS =
  "Answers to synthetic rows are here. Their scores show how the software works; they say nothing about any model.";
const KEYS = [
  ["j", "next document"],
  ["k", "document before"],
  ["/", "search"],
  ["0 – 9", "filters, as their hints say"],
  ["s", "the other run's answers first"],
  ["Esc", "leave the search; back to the list"],
];
let overviewOf = null;
let drawing = 0; // number of the last drawing that was begun
let polling = 0;

function buildHeader() {
  const keys = () => termList(KEYS.map(([key, words]) => [text("kbd", "", key), words]), "keys");
  const where = data.live ? "On this machine alone" : "A file that asks no server";
  drawHead({
    title: "medtasks view",
    facts: [`${where}; the address holds what is shown`],
    actions: [folded("Keys", keys, { className: "keys-box" })],
    banner: overviewOf.sample ? ["SAMPLE DATA", SAMPLE_WORDS] : null,
  });
}

// ------------------------------------------------------------------ drawing

async function show() {
  applyTheme();
  drawing += 1;
  const mine = drawing;
  const content = await drawn().catch((error) => [
    make("h2", {}, link(overviewAddress(), "Answers /", { className: "back" }), " This cannot be shown"),
    text("p", "fault", error.message),
  ]);
  if (mine !== drawing) return; // a later drawing is under way
  main.classList.toggle("reading", Boolean(option("doc")) && !option("part"));
  const scrolled = main.querySelector(".documents")?.scrollTop ?? 0;
  redraw([option("dataset"), option("part")].join(), () => content);
  keepInSight(scrolled);
  main.dataset.shown = location.hash;
  pollAgain();
}

async function drawn() {
  const dataset = data.live ? option("dataset") : (data.dataset?.id ?? "");
  if (!overviewOf || !dataset) {
    overviewOf = await ask("overview");
    buildHeader();
  }
  document.title = dataset ? `${dataset} · answers` : "Answers";
  if (dataset) return drawDataset(await ask("dataset", { dataset }));
  headOf = null;
  return drawOverview(overviewOf);
}

// The list stays where it was scrolled to, unless the open document would be out of sight.
function keepInSight(scrolled) {
  const list = main.querySelector(".documents");
  const current = list?.querySelector(".current");
  if (!current) return;
  list.scrollTop = scrolled;
  const [top, bottom] = [current.offsetTop, current.offsetTop + current.offsetHeight];
  if (top < scrolled || bottom > scrolled + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
}

// ------------------------------------------------------------------ while a run goes on

function pollAgain() {
  clearTimeout(polling);
  const isWaiting = (column) => column.state === "waiting";
  const unfinished = headOf ? !headOf.complete || headOf.columns.some(isWaiting) : overviewOf?.live;
  const waits = overviewOf?.runs.some((run) => run.live?.worker && !run.live.speed) ? FIRST_POLL : POLL;
  if (data.live && unfinished) polling = setTimeout(look, headOf && !headOf.complete ? 100 : waits);
}

async function look() {
  if (document.hidden) return pollAgain();
  try {
    return (await hasChanged()) ? show() : pollAgain();
  } catch (error) {
    said.textContent = error.message;
    return undefined;
  }
}

async function hasChanged() {
  if (!headOf) return JSON.stringify(await ask("overview")) !== JSON.stringify(overviewOf);
  if (headOf.complete) await ask("overview"); // a task may have become complete
  return worthDrawing(await ask("progress", { dataset: headOf.id }));
}

// A large file is drawn anew when all is read, or twice as much as is shown.
function worthDrawing(progress) {
  const read = ({ columns }) => sum(columns.map((column) => column.read));
  const states = ({ complete, columns }) => `${complete} ${columns.map((column) => `${column.state} ${column.score}`)}`;
  if (states(progress) !== states(headOf)) return true;
  return read(progress) > read(headOf) && (headOf.complete || read(progress) >= 2 * read(headOf));
}

// ------------------------------------------------------------------ keyboard

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else if (option("doc")) change({ doc: null });
    return;
  }
  if (typing) return;
  const search = document.getElementById("search") ?? document.getElementById("find");
  if (event.key === "/" && search) {
    event.preventDefault();
    search.focus();
    return;
  }
  if (!headOf || option("part")) return;
  if (event.key === "j") stepBy(1);
  if (event.key === "k") stepBy(-1);
  const { first, other } = chosenColumns(headOf);
  if (event.key === "s" && other !== null) change({ a: String(other), b: String(first) });
  const filter = FILTERS.find((item) => item.key === event.key);
  if (filter) change({ only: filter.id, cell: null, doc: null });
});

// ------------------------------------------------------------------ paper, and the start

let openedForPaper = [];
function drawForPaper() {
  applyTheme();
  if (onPaper) openedForPaper = [...main.querySelectorAll("details:not([open])")];
  for (const details of openedForPaper) details.open = onPaper;
}

readAddress();
show();
listen(async () => {
  const before = [option("dataset"), option("part")].join();
  readAddress();
  await show();
  if (before !== [option("dataset"), option("part")].join()) scrollTo(0, 0);
  else if (option("doc") && innerWidth < 736) document.getElementById("document")?.scrollIntoView();
}, drawForPaper);
