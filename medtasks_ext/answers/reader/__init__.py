"""The shared reader: what a response announces as its answer, where a suite has released no reader of its
own. It never guesses.

`words` cuts a reply into tokens and finds the words of `marks.yaml` in them. `announce` finds where an answer
is announced; `finders` says what an answer is. `items` reads lists, tables and JSON. Every reader needs time
proportional to the length of a response.
"""
