"""One tolerant reader: what a careful person would take a response's answer to be.

The suites' own readers stand beside this package, in `medtasks_ext.answers`, and stay as the suites
released them. Here a response is cut to its reply (`reply`), the places where an answer is announced
are found (`markers`), and a reader for each shape of answer looks there: `letters`, `words`, `numbers`,
`lists`, `json_text`. A reader gives the answer, where it stands in the response, and why it
was taken. Two answers that are equally good are none: the reading is then ambiguous. Every reader needs
time proportional to the length of a response.
"""

from medtasks_ext.answers.tolerant.reply import Extraction, Reply, reply_of

__all__ = ["Extraction", "Reply", "reply_of"]
