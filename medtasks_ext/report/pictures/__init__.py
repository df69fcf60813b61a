"""Pictures: one declarative spec a kind, filled alike by the page of a report and by the commands.

`kinds/KIND.yaml` is a Vega-Lite spec with places to fill: a value `$name` is replaced by what is given under
that name, and left out where nothing is; a part with `$if: name` stands only where something is given. What
a kind takes, and its rows, stand at its head. `page/picture.js` fills them by the same rules.
"""
