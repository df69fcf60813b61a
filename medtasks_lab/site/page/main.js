// Draws the page, and again when the address changes; the focus stays where it was.

const DRAW = { board: () => drawBoard(), model: () => drawModel(), about: () => drawAbout() }; // one of them is here

function show() {
  const main = document.getElementById("main");
  const key = document.activeElement?.getAttribute?.("data-key");
  const caret = document.activeElement?.selectionStart;
  const scrolled = main.querySelector(".scroll")?.scrollLeft ?? 0;
  main.replaceChildren(...DRAW[site.kind]().filter(Boolean));
  const table_ = main.querySelector(".scroll");
  if (table_) table_.scrollLeft = scrolled;
  if (!key) return;
  const again = [...main.querySelectorAll("[data-key]")].find((element) => element.getAttribute("data-key") === key);
  again?.focus({ preventScroll: true });
  if (again?.type === "search") again.setSelectionRange(caret, caret);
}

addEventListener("hashchange", () => {
  readAddress();
  show();
});
prefersDark.addEventListener("change", applyTheme);
readAddress();
drawFrame();
show();
