"""Exceptions with the wording of the command line."""

from __future__ import annotations


class BackstoryError(Exception):
    """A failure in one line: what failed, on what, and what to do."""


class NotFoundError(BackstoryError, LookupError):
    """The subject of the question does not exist, or the question could not be answered."""


class MisuseError(BackstoryError, ValueError):
    """The question is wrong."""


class NotObservedError(BackstoryError):
    """A block or function cannot be observed where it runs."""


class BackstoryWarning(UserWarning):
    """An answer leaves something out. The warning says what."""
