"""Errors that the command line reports in one line."""


class LakeError(Exception):
    """A failure: the message says what failed, on what, and what to do."""

    status = 1


class MisuseError(LakeError):
    """A wrong question or option."""

    status = 2
