"""A collector given on the command line: `--collector NAME='words {log} {cmd}'`."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from .base import Collector


class BadTemplate(ValueError):
    """A `--collector` option that cannot be used; the text says why."""


def from_template(text: str) -> Collector:
    """Parses `NAME=TEMPLATE` into a collector.

    In the template, `{cmd}` is replaced by the words of the command, and `{log}` by a directory for
    the log.

    # Errors
    `BadTemplate` if there is no name, no `{cmd}` as a separate word, or no first word.
    """
    name, equals, template = text.partition("=")
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise BadTemplate(f"--collector {text!r}: {error}") from error
    if not name or not equals or "{cmd}" not in words:
        raise BadTemplate(f"--collector {text!r}: write NAME='words {{log}} {{cmd}}', with {{cmd}} as a separate word")

    def whole(argv: Sequence[str], log: Path) -> list[str]:
        line: list[str] = []
        for word in words:
            line.extend(argv if word == "{cmd}" else [word.replace("{log}", str(log))])
        return line

    def missing() -> str | None:
        return None if words[0] == "{cmd}" or shutil.which(words[0]) else f"{words[0]} is not on the path"

    return Collector(name, lambda _: [], missing, what=template, whole=whole)
