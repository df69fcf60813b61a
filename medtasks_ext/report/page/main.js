// The report's head, filters and routes.

const PAGES = {
  task: { title: () => datasets[datasetAt.get(viewId)]?.name ?? viewId, draw: drawTask, parent: "tasks" },
  answers: { title: () => datasets[datasetAt.get(viewId)]?.name ?? viewId, draw: drawDataset, parent: "tasks" },
  model: { title: () => viewId, draw: drawModel, parent: "leaderboard" },
};
const ALL_SAMPLE =
  "All own runs here were made on synthetic rows. Their scores show how the software works; they say nothing about any model.";
const SOME_SAMPLE =
  "Some runs here were made on synthetic rows. They are marked SAMPLE, are never ranked beside real ones, and their " +
  "scores say nothing about any model.";

function drawReportHead() {
  const kinds = [["own run", ownEntries.length], ["published model", entries.length - ownEntries.length]];
  const notices = report.differences.length + report.faults.length;
  const words = link(address("overview"), plural(notices, "thing to know", "things to know"), { className: "know" });
  words.addEventListener("click", () => setTimeout(() => document.getElementById("know")?.scrollIntoView()));
  const isSample = ownEntries.length > 0 && ownEntries.every((entry) => entries[entry].sample);
  drawHead({
    title: report.title,
    facts: [
      `made ${report.made}`,
      `medtasks ${report.version}`,
      ...kinds.filter(([, n]) => n).map(([name, n]) => plural(n, name)),
      plural(expected.length, "task"),
      ...(notices ? [words] : []),
    ],
    banner: report.sample ? ["SAMPLE DATA", isSample ? ALL_SAMPLE : SOME_SAMPLE] : null,
  });
}

function buildReportFilters() {
  const common = make("input", { type: "checkbox", id: "common", onchange: () => change({ common: common.checked ? "1" : null }) });
  const hint = "Compare on the tasks that every model shown has a score for";
  const label = make("label", { className: "check", title: hint }, common, "only tasks that all have");
  buildFilters({ found: reportFilters(), placeholder: "Search models", more: [label] });
}

// ------------------------------------------------------------------ drawing

function show() {
  applyTheme();
  const page = viewId ? PAGES[view] : null;
  const part = PARTS.find((item) => item.id === view) ?? PARTS[0];
  const shown = page ? { ...page, title: page.title(), filters: false } : part;
  const here = page ? page.parent : part.id;
  drawPages(
    PARTS.map((item) => {
      const current = item.id === here ? (page ? "true" : "page") : null;
      return { id: item.id, title: item.title, href: addressOfPart(item), current };
    }),
  );
  filterBar.hidden = !shown.filters || onPaper;
  showFilters(`${selectionInWords()}: ${plural(selectedTasks().length, "task")}`);
  document.getElementById("common").checked = option("common") === "1";
  redraw([view, viewId].join("/"), () => [section(shown, page)]);
  document.title = shown === PARTS[0] ? report.title : `${shown.title} · ${report.title}`;
}

function section(part, page) {
  const parent = page && `${PARTS.find((item) => item.id === page.parent).title} /`;
  const back = page ? [link(address(page.parent), parent, { className: "back" }), " "] : [];
  return make(
    "section",
    { className: "part", id: `part-${part.id ?? view}` },
    make("h2", {}, ...back, part.title),
    part.about ? text("p", "about", part.about) : null,
    onPaper && part.filters ? text("p", "selection", selectionInWords()) : null,
    ...part.draw(),
  );
}

function route() {
  const before = [view, viewId].join("/");
  readAddress();
  show();
  if (before === [view, viewId].join("/")) return;
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

// ------------------------------------------------------------------ start

readAddress();
drawReportHead();
buildReportFilters();
show();
listen(route);
