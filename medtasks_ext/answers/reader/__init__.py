"""The shared reader: what a response announces as its answer, where a suite has released no reader of its
own.

`reply` takes reasoning off. `words` cuts a reply into tokens and finds the words of `marks.yaml` in them.
`announce` finds where an answer is announced; `letters` and `values` say what an answer is: labels and texts
of options, words and numbers. `items` reads lists, `records` lines, tables and objects of named fields,
`json_text` JSON as models write it. Every reader needs time proportional to the length of a response.

The reader never guesses. An answer counts if it is announced, in the form that the prompt asks for or in a
sentence ("the correct answer is B"), or if it is the whole reply, or a first line that is the answer alone.
The last announcement counts; two that differ cannot be read unless words of correction stand between them.
Denials, other options, conditions, refusals and prose announce nothing.
"""
