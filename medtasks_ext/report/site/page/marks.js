// Scores as words and bars, and pictures that wait for their library.

function shape(tag_, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag_);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

// Numbers are cut off behind their fourth digit: half up from there is the nearest with three.
const nearest = (value) => Math.floor((value + 5) / 10) / 1000;
const score = (value) => (isNumber(value) ? nearest(value).toFixed(3) : NONE);

// A score on the whole scale from 0 to 1, with its interval.
function scoreBar(value, ends) {
  const at = (part) => `${(100 * part) / UNIT}%`;
  return shape(
    "svg",
    { class: "score-bar", width: 96, height: 12, "aria-hidden": "true" },
    shape("rect", { class: "track", x: 0, y: 2, width: "100%", height: 8 }),
    shape("rect", { class: "fill", x: 0, y: 2, width: at(value), height: 8 }),
    ends ? shape("line", { class: "range", x1: at(ends[0]), x2: at(ends[1]), y1: 6, y2: 6 }) : null,
  );
}

const barred = (value, range = null) => make("span", {}, scoreBar(value, range), score(value));
const ends = (found) => (found ? `${found[2] ? "paper’s own: " : ""}[${score(found[0])}, ${score(found[1])}]` : "");

// Columns that several tables have.
const scoreColumn = (key, title, more) => numberColumn(key, title, { format: score, ...more });
const intervalColumn = (of) => ({ title: "95 % interval", cell: (row) => text("span", "soft", ends(of(row)) || NONE) });
const sizeText = (size) => (isNumber(size) ? String(size) : NONE);
const modelPage = (page, label) => link(`${site.home}models/${page}`, label, { className: "name" });

// ------------------------------------------------------------------ the library of pictures

const waiting = []; // places of pictures, and what draws them once the library is there
const isHere = () => typeof vegaInterpreter !== "undefined";

// A picture, or the place that it takes as soon as the library is loaded: tables do not wait for it.
function drawnLater(height, build) {
  if (isHere()) return build();
  const place = make("div", { className: "waiting", "aria-busy": "true" });
  place.style.minHeight = `${height}px`;
  waiting.push([place, build]);
  if (waiting.length === 1) {
    const script = make("script", { src: `${site.home}assets/pictures.js`, onload: drawWaiting });
    document.head.append(script);
  }
  return place;
}

function drawWaiting() {
  for (const [place, build] of waiting.splice(0)) if (place.isConnected) place.replaceWith(build());
}
