"""Figures of papers, each file with its source, and the chosen subset of workloads."""
