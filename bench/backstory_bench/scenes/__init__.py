"""Reconstructs requests of real servers, and runs of real clients, from deep records."""

from .cases import CASES
from .run import main_scenes

__all__ = ["CASES", "main_scenes"]
