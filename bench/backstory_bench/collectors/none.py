"""No collector: the native run that all others are compared with."""

from .base import Collector

COLLECTORS = [Collector("none", lambda _: [], what="nothing: the native run")]
