"""The complete matrix: every collector on every workload, in random order, resumable, never overwritten."""
