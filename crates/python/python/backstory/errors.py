"""Exceptions. Their messages are those of the command line."""

from __future__ import annotations


class BackstoryError(Exception):
    """A failure. The message is one line: what failed, on what, and what to do."""


class NotFoundError(BackstoryError, LookupError):
    """The subject of the question does not exist, or the question cannot be answered."""


class MisuseError(BackstoryError, ValueError):
    """The arguments of the question are invalid."""


class NotObservedError(BackstoryError):
    """A block or function cannot be recorded where it stands in the program."""


class BackstoryWarning(UserWarning):
    """A result is incomplete. The message says what is missing."""
