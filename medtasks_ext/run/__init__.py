"""The LM that remembers: it looks each request up in the folder of the run, and asks only what has no answer
yet.

`store` is the file of outcomes, `lock` keeps two processes from writing it, `asker` asks an engine for who
waits, `charge` says what that costs, and `lm` is the class that lm-eval calls, beside lm-eval's own models.
"""
