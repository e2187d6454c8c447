"""Reconstructs requests of real servers, and runs of real clients, from deep records."""

from .run import main_scenes
from .cases import CASES

__all__ = ["CASES", "main_scenes"]
