"""Measures every collector on every workload, in random order. A matrix can be resumed."""
