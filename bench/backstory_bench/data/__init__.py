"""Figures of the papers, each file with its source, and the chosen subset."""
