// Of pictures of models against a fact: the line of the best, and how series look.

// {colours, shapes} of series: groups of models and strategies have the same ones in every picture, those of the
// papers' tables too; others take the rest.
function looksOf(names) {
  const { themes } = report.pictures;
  const known = themes.groups;
  const { series } = themes[isDark() ? "dark" : "light"];
  const taken = new Set(names.map((name) => known[name]));
  const free = series.map((_, place) => place).filter((place) => !taken.has(place));
  let next = 0;
  const places = names.map((name) => known[name] ?? (free.length ? free : [...series.keys()])[next++ % (free.length || series.length)]);
  return { colours: places.map((place) => series[place]), shapes: places.map((place) => themes.shapes[place]) };
}

// The models that no other beats with as little: the line in the picture.
function frontOf(rows, fact) {
  const sorted = rows
    .filter((row) => row.scored === row.total)
    .sort((one, other) => compareValues(fact.value(one), fact.value(other)) || other.score - one.score);
  let best = -Infinity;
  return sorted.filter((row) => {
    const better = row.score > best;
    best = Math.max(best, row.score);
    return better;
  });
}

// Of the line, those that are so far below each other that their names have room: `share` of the range.
function apart(front, rows, share = 0.045) {
  const scores = rows.map((row) => row.score);
  const gap = share * (Math.max(...scores) - Math.min(...scores));
  let last = Infinity;
  return [...front].reverse().filter((row) => {
    const far = last - row.score >= gap;
    if (far) last = row.score;
    return far;
  });
}
