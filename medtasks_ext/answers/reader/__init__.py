"""The shared reader: what a response announces as its answer, where a suite has released no reader of its
own. It never guesses, and needs time proportional to the length of a response.
"""
