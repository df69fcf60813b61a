"""Studies beside the scores: contamination, difficulty levels, samples, a model that judges.

The contamination probe follows BRIDGE (Methods, "Data Contamination Analysis"): an input is stopped at
tokens 10, 15, 20, 25 and 30 of the model's own tokenizer, and five tokens are predicted; it counts as leaked
if three of five predictions match exactly. Inputs with fewer than 35 tokens are not probed. A stop inside a
character moves left (`n_cuts_moved`), which can hide a match and never creates one. The released code takes
64 rows and reports the mean share of matching stops; the text of the paper is followed here.
"""
