"""Judges under study: their gold, votes, calibration, and attacks on them.

ICCs below 0 count as 0, as MedHELM's paper prints them; `agreement.csv` also has each figure not clamped. 95
% intervals of an ICC are from the F distribution, which gives the paper's nine intervals, and from the
bootstrap over answers. "Much nearer" is a z-scored distance smaller by more than 0.5 s.d., "top 2" the set
of the two best: the paper defines neither, these definitions are ours. MLB's Table 5 fits 1,194 decisions
with 810 positives: its unit is the scoring point.
"""
