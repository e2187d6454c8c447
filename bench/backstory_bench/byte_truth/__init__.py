"""Compares the byte engine with programs whose dependence is known (`backstory-bench bytes`)."""
