// Draws the page, and again when the address changes.

const DRAW = { front: drawFront, board: drawBoard, model: drawModel, dataset: drawDataset, datasets: drawDatasets, about: drawAbout };

const hasFilters = () => site.kind === "front" || site.kind === "board";

function show() {
  applyTheme();
  filterBar.hidden = !hasFilters() || onPaper;
  if (hasFilters()) showFilters(selectionInWords());
  redraw(site.kind, DRAW[site.kind]);
}

// What every page has.
function drawSiteFrame() {
  drawHead({
    title: "medtasks leaderboard",
    facts: [
      `${plural(site.published, "published result")}, ${plural(site.submitted, "submission")}`,
      site.made,
      `medtasks ${site.version}`,
    ],
  });
  const isHere = (target) => (target === site.page ? "page" : null);
  drawPages(site.links.map(([target, title]) => ({ title, href: site.home + target, current: isHere(target) })));
  document.getElementById("bottom").append(
    note(
      "Only comparable results are ranked together: same conditions, and all tasks, rows and judgements. ",
      link(`${site.home}about.html`, "How to read, cite, download and submit"),
    ),
  );
}

async function begin() {
  main.setAttribute("aria-busy", "true");
  try {
    site = await readSite();
  } catch (error) {
    main.replaceChildren(note(`This page could not be read (${error.message}). It needs a browser of 2023 or later.`));
    return;
  } finally {
    main.removeAttribute("aria-busy");
  }
  readAddress();
  drawSiteFrame();
  if (hasFilters()) buildFilters({ found: boardFilters(), placeholder: "Search models" });
  show();
  listen(() => {
    readAddress();
    show();
  });
}

begin();
