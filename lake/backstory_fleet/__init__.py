"""Fleets of machines that never existed, made from recorded runs, and what questions cost there.

In: a corpus, which is a lake of recorded runs. Out: lakes of any size, measurements, a cost model
and the page `docs/scale.md`.
"""
