"""Lineage over a lake of backstory, on Spark."""

from .lineage import Lineage
from .tables import configured, open_views

__all__ = ["Lineage", "configured", "open_views"]
