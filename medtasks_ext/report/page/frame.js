// The frame of a page: its head and its pages, and what draws it anew.

const main = document.getElementById("main");
const partsBar = document.getElementById("views");

// {title, facts: words or nodes, banner: [mark, words] or null}
function drawHead({ title, facts, banner }) {
  document.getElementById("top").replaceChildren(
    make("div", { className: "heading" }, make("h1", { textContent: title }), themeMenu(show)),
    make("p", { className: "facts-line" }, ...facts.flatMap((fact, place) => (place ? [" · ", fact] : [fact]))),
    banner ? make("div", { className: "banner", role: "note" }, text("strong", "", banner[0]), text("span", "", banner[1])) : "",
  );
}

// [{title, href, current: for aria-current, id}]
function drawPages(pages) {
  const item = ({ title, href, current, id }) =>
    make("li", {}, link(href, title, { "aria-current": current, "data-part": id, "data-key": `page ${title}` }));
  const list = make("ul", {}, ...pages.map(item));
  partsBar.replaceChildren(list);
  // where the pages do not fit beside each other, the current one is in sight
  const current = list.querySelector("[aria-current]");
  if (current) list.scrollLeft = current.offsetLeft - list.offsetLeft - (list.clientWidth - current.clientWidth) / 2;
}

let drawnPage = null; // name of what stands in `main`

// Draw `main` anew. On a page that stays, what had the focus, was unfolded or scrolled stays so.
function redraw(name, build) {
  const same = name === drawnPage;
  const held = document.activeElement;
  const [key, caret] = [held?.dataset?.key, held?.selectionStart];
  const open = same ? [...main.querySelectorAll("figure details")].map((item) => item.open) : [];
  const scrolled = same ? (main.querySelector(".scroll")?.scrollLeft ?? 0) : 0;
  drawnPage = name;
  hideTip();
  forgetPictures();
  main.replaceChildren(...build().filter(Boolean));
  main.querySelectorAll(".scroll:not(.sideways)").forEach(settle);
  main.querySelectorAll("figure details").forEach((item, place) => { item.open = open[place] ?? item.open; });
  if (scrolled) main.querySelector(".scroll")?.scrollTo(scrolled, 0);
  if (!key || held.isConnected) return;
  const next = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  next?.focus({ preventScroll: true });
  if (isNumber(caret) && next?.setSelectionRange) next.setSelectionRange(caret, caret);
}

// A table that is too wide scrolls in its box, which then takes the focus; another stands free.
function settle(box) {
  if (box.scrollWidth > box.clientWidth) box.classList.remove("steady");
  else if (box.scrollHeight <= box.clientHeight) box.removeAttribute("tabindex");
}

// Begin to draw the page anew as its address, its colours, its width change, or it is printed: on paper a page stands in
// light colours, unfolded.
function listen(route) {
  const printing = (on) => {
    if (on === onPaper) return;
    onPaper = on;
    document.documentElement.classList.toggle("on-paper", on);
    show();
  };
  addEventListener("hashchange", route);
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));
  matchMedia("print").addEventListener("change", (event) => printing(event.matches));
  prefersDark.addEventListener("change", () => {
    if (theme === "auto") show();
  });
  let lastWidth = innerWidth;
  let resizing = 0;
  addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => {
      if (innerWidth === lastWidth || onPaper) return;
      const folds = document.getElementById("more-filters");
      if (folds && innerWidth >= WIDE !== lastWidth >= WIDE) folds.open = innerWidth >= WIDE;
      lastWidth = innerWidth;
      show();
    }, 150);
  });
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address holds what is shown
    main.focus();
  });
}
