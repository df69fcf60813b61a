"""One tolerant reader: what a careful person would take a response's answer to be.

The suites' own readers stand beside this package, in `medtasks_ext.answers`, and stay as the suites
released them. Here a response is cut to its reply (`reply`), the places where an answer is announced
are found (`markers`), and a reader for each shape of answer looks there: `letters`, `words`, `numbers`,
`lists`, `json_text`. A reader gives the answer, where it stands in the response, and why it
was taken. Two answers that are equally good are none: the reading is then ambiguous. Every reader needs
time proportional to the length of a response.

1. Reasoning traces, tokens that end a turn, and a next question that the model asks itself are removed.
2. Full-width forms count as ASCII; bold, headings, fences, brackets and LaTeX around an answer are ignored.
3. An answer is looked for after the last strong announcement (a word for an answer with a colon, a heading,
   a box of LaTeX, `<answer>`), then at the beginning of the reply, then after the last weak announcement
   (`The answer is`, `故选`, `Therefore`).
4. An announcement replaces an earlier one if a word of correction stands between the two (`Wait`, `更正`).
5. Two equally good answers count as unreadable: `A or B`, a letter with another option's text, a list of all
   options.

Accepted: an option's text instead of its letter, or after it; a reason after a label (a label in the middle
of a sentence does not count); units, `≈`, thousands, powers of ten, the last result of a calculation, dates
in words, `14w2d`; bullets, numbers, commas, arrays; events and relations as JSON, tables or lines; JSON with
comments, single quotes, trailing commas or a cut end; sentences and fences around SQL. Of a response with
more than 40,000 characters (MLB's tuples: 150,000), half of these are read from the beginning and half from
the end.

Silent errors that stay; these count as read, and may be wrong:

- of two announced answers the last strong one counts, even if the first was meant;
- a letter with a full stop at the beginning counts (`A. 50-year-old patients …`), and MedHELM's first token:
  `A patient with …` is A;
- an option that is called correct counts: `A is correct only in children` is A; `No bias was found` is no,
  even if it means yes;
- a number after an announcement counts with any unit, the only number of a reply even in a refusal;
- in a list of entities or drugs, a line of prose without a full stop is an item, and `breast cancer and
  ovarian cancer` is one mention if the prompt has these words in a row;
- all codes of a reply count: `E11.9 not I10` are two; text in brackets after the last semicolon of an event
  is a remark;
- a label after an unknown word of denial counts (`scarcely neutral`); of a truncated JSON answer all records
  count.

`python benchmarks/readings.py counts` counts errors by kind and language; tests/answers/first_readings.csv
keeps what readers made of replies before they were mended on them, which is the honest figure.
"""

from medtasks_ext.answers.tolerant.reply import Extraction, Reply, reply_of

__all__ = ["Extraction", "Reply", "reply_of"]
