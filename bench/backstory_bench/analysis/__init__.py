"""Computes ratios, a subset of workloads, and a cost model from the rows of a matrix.

The statistics come from SciPy and scikit-learn. Nothing in this package measures or prints.
"""
