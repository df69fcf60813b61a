// Scores as words and bars, and pictures that wait for their library.

// Numbers are cut off behind their fourth digit: half up from there is the nearest with three.
const nearest = (value) => Math.floor((value + 5) / 10) / 1000;
const score = (value) => (isNumber(value) ? nearest(value).toFixed(3) : NONE);

// A score beside its bar, on the whole scale from 0 to 1.
const barred = (value, ends_ = null) => {
  const [low, high] = (ends_ ?? []).map((end) => end / UNIT);
  return make("span", { className: "share-cell" }, meter(value / UNIT, { low, high }), text("span", "", score(value)));
};
const ends = (found) => (found ? `[${score(found[0])}, ${score(found[1])}]${found[2] ? "p" : ""}` : "");

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
