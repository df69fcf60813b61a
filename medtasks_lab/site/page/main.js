// Draws the page, and again when the address changes; the focus stays where it was.

const main = document.getElementById("main");
const DRAW = { front: drawFront, board: drawBoard, model: drawModel, dataset: drawDataset, datasets: drawDatasets, picture: drawPaper, pictures: drawPapers, mine: drawMine, about: drawAbout };

function show() {
  applyTheme();
  forgetPictures();
  const key = document.activeElement?.getAttribute?.("data-key");
  const caret = document.activeElement?.selectionStart;
  const scrolled = main.querySelector(".scroll")?.scrollLeft ?? 0;
  const open = [...main.querySelectorAll("figure details")].map((item) => item.open);
  main.replaceChildren(...DRAW[site.kind]().filter(Boolean));
  main.querySelectorAll("figure details").forEach((item, place) => { item.open = open[place] ?? false; });
  document.documentElement.classList.toggle("on-paper", onPaper);
  if (onPaper) fitOnPaper();
  const table_ = main.querySelector(".scroll");
  if (table_) table_.scrollLeft = scrolled;
  if (!key) return;
  const again = [...main.querySelectorAll("[data-key]")].find((element) => element.getAttribute("data-key") === key);
  again?.focus({ preventScroll: true });
  if (again?.type === "search") again.setSelectionRange(caret, caret);
}

const PAPER = 1030; // pixels of A4 on its side between its margins

// A table that is wider than paper is drawn smaller.
function fitOnPaper() {
  main.style.width = `${PAPER}px`;
  for (const wide of main.querySelectorAll("table")) {
    const share = wide.parentElement.clientWidth / wide.offsetWidth;
    if (share < 1) wide.style.zoom = share;
  }
  main.style.width = "";
}

async function begin() {
  main.setAttribute("aria-busy", "true");
  try {
    site = await readSite();
  } catch (error) {
    main.replaceChildren(note(`This page could not be read (${error.message}). It needs a browser of 2023 or later; the tables for programs lie in the folder data.`));
    return;
  } finally {
    main.removeAttribute("aria-busy");
  }
  readAddress();
  drawFrame();
  show();
  listen();
}

// What makes the page draw itself anew.
function listen() {
  addEventListener("hashchange", () => {
    readAddress();
    show();
  });
  prefersDark.addEventListener("change", show);

  // Paper is light, and has all rows.
  for (const [name, value] of [["beforeprint", true], ["afterprint", false]])
    addEventListener(name, () => {
      onPaper = value;
      show();
    });

  // Pictures have the width of their place.
  let lastWidth = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === lastWidth || onPaper) return;
    lastWidth = innerWidth;
    show();
  });
}

begin();
