"""Provenance of many machines in one lake: Iceberg tables, and SQL over them."""
