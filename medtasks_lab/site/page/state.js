// A page of the leaderboard is data: medtasks_lab/site says what is in it. Its texts only ever become text
// nodes. What is shown lives in the address, `#key=value`, so that a view can be linked; defaults are left out.

let site = null; // as soon as it is read
const report = { pictures: PICTURES }; // the report's scripts of pictures read their data by this name
const isNumber = (value) => typeof value === "number";
const UNIT = 10000; // scores are whole numbers
let parameters = new Map();

// Long data stands packed, gzip as base64, which only opens as time passes.
async function readSite() {
  const place = document.getElementById("data");
  if (!("packed" in place.dataset)) return JSON.parse(place.textContent);
  const bytes = Uint8Array.from(atob(place.textContent), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).json();
}

function readAddress() {
  parameters = new Map(new URLSearchParams(location.hash.slice(1)));
}

function option(key, fallback = "") {
  return parameters.get(key) ?? fallback;
}

// One of the allowed values, or the first of them.
function choice(key, allowed) {
  const value = option(key);
  return allowed.includes(value) ? value : allowed[0];
}

// Change what is shown without a new step in the browser's history; null removes a key.
function change(changes) {
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") parameters.delete(key);
    else parameters.set(key, value);
  }
  const query = new URLSearchParams([...parameters]).toString();
  history.replaceState(null, "", `#${query}`);
  show();
}
