// A page of the leaderboard is data: medtasks_ext/report/site says what is in it. Its texts only ever become text
// nodes.

let site = null; // as soon as it is read
const report = { pictures: PICTURES }; // the report's scripts of pictures read their data by this name
const UNIT = 10000; // scores are whole numbers

// Data stands packed, gzip as base64, which only opens as time passes.
async function readSite() {
  const place = document.getElementById("data");
  const bytes = Uint8Array.from(atob(place.textContent), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).json();
}
