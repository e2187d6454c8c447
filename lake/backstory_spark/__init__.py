"""Lineage over a lake of backstory, on Spark."""

from .engine import SparkEngine
from .lineage import Lineage
from .tables import configured, open_views

__all__ = ["Lineage", "SparkEngine", "configured", "open_views"]
