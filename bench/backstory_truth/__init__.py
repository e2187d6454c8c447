"""The generator and oracle of `scripts/truth`: random programs, executed again without backstory.

Goes in: a seed, a number of programs, and the program `backstory`. Comes out: a table of verdicts
for each question, the smallest program for each failure, and a summary as JSON. `judge.py` says
what is called right and wrong.
"""
