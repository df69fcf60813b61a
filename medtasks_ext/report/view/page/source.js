// Where answers come from: a server on this machine, or data inside this file.

const data = JSON.parse(document.getElementById("data").textContent);

// The answer to a question, as `medtasks_ext.report.view.viewer` gives it. Rejects with what is wrong.
async function ask(what, query = {}) {
  if (!data.live) return fromFile(what, query);
  const response = await fetch(`${what}?${new URLSearchParams(query)}`).catch(() => null);
  if (!response) throw new Error("`medtasks view` has ended: start it again, and open the address that it prints");
  const content = await response.json();
  if (!response.ok) throw new Error([content.what, content.remedy].filter(Boolean).join(". → "));
  return content;
}

function fromFile(what, query) {
  if (what === "rows") return query.places.split(",").map((place) => data.rows[Number(place)]);
  if (what === "document") return heldDocument(query.document);
  if (what === "search") return heldThatSay(query.q.toLowerCase());
  return data[what];
}

function heldDocument(key) {
  const place = data.dataset.documents.indexOf(key);
  if (place < 0) throw new Error(`There is no document ${key}`);
  if (!data.views[place])
    throw new Error(`This file holds the first ${data.views.length} documents; ${key} is none of them`);
  return data.views[place];
}

function heldThatSay(words) {
  const says = (view) =>
    [view.key, view.target, ...view.responses.flatMap((item) => (item ? textsOf(item) : []))].some((text) =>
      text.toLowerCase().includes(words),
    );
  return data.views.flatMap((view, place) => (says(view) ? [place] : []));
}

const textsOf = (response) => [...response.turns, ...response.stretches].map((part) => part.text);
