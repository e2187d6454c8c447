"""Errors that the command line reports in one line."""


class LakeError(Exception):
    """A failure: the message says what failed, on what, and what to do."""

    status = 1


class MisuseError(LakeError):
    """A wrong question or option."""

    status = 2


def first_line(error: Exception) -> str:
    """The first line of an error's message, without characters that do not print."""
    line = (str(error) or type(error).__name__).splitlines()[0]
    return "".join(c if c.isprintable() else "?" for c in line)
