"""Paired, interleaved timings of provenance collectors in front of real commands.

One round runs a workload once under every collector, in random order, the native run among them; a collector's figure is
the ratio of its median to the native median, with a bootstrap interval over rounds. Absolute times are kept, never compared.
"""
