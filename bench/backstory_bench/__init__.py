"""Measures provenance collectors in front of real commands, in paired and interleaved rounds.

One round runs a workload once under every collector and once natively, in random order. The result
for a collector is the ratio of its median to the native median, with a bootstrap interval over the
rounds. Absolute times are stored but never compared.
"""
