"""Tables for notebooks and terminals. File names are escaped, never interpreted."""

from __future__ import annotations

import datetime
import html
import unicodedata
from collections.abc import Sequence
from typing import Any

#: The greatest number of characters in a cell.
_WIDEST = 72

#: Unicode categories of characters that would change the display of the text around them.
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def visible(text: str) -> str:
    """Returns a text on one line. Control, bidirectional and undecodable characters are escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _HIDDEN
        else character
        for character in text
    )


def cell(value: Any) -> str:
    """Formats a value for display."""
    if value is None:
        return ""
    if isinstance(value, datetime.datetime):
        return value.astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    if isinstance(value, list):
        return ", ".join(cell(item) for item in value)
    return visible(str(value))


def shortened(text: str, most: int = _WIDEST) -> str:
    """Cuts a text to at most ``most`` characters, in the middle: names differ at both ends."""
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def _has_value(rows: Sequence[dict[str, Any]], name: str) -> bool:
    return any(row[name] not in (None, [], "") for row in rows)


def _shown(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the columns that have a value in at least one row."""
    return [name for name in columns if _has_value(rows, name)] or list(columns)


def table(columns: Sequence[str], rows: Sequence[dict[str, Any]], total: int, title: str) -> str:
    """Returns a table in HTML."""
    names = _shown(columns, rows)
    parts = ['<table class="dataframe backstory"><thead><tr>']
    parts += [f"<th>{html.escape(visible(name))}</th>" for name in names]
    parts.append("</tr></thead><tbody>")
    for row in rows:
        parts.append("<tr>")
        for name in names:
            whole = cell(row[name])
            short = shortened(whole)
            hint = f' title="{html.escape(whole)}"' if short != whole else ""
            number = isinstance(row[name], (int, float)) and not isinstance(row[name], bool)
            side = "right" if number else "left"
            parts.append(f'<td style="text-align:{side}"{hint}>{html.escape(short)}</td>')
        parts.append("</tr>")
    parts.append("</tbody></table>")
    parts.append(f"<p>{html.escape(_count(total, len(rows), title))}</p>")
    return "".join(parts)


def text_table(
    columns: Sequence[str], rows: Sequence[dict[str, Any]], total: int, title: str
) -> str:
    """Returns a table for a terminal."""
    names = _shown(columns, rows)
    lines = [names] + [[shortened(cell(row[name]), 40) for name in names] for row in rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    text = [
        "  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in lines
    ]
    return "\n".join([*text, _count(total, len(rows), title)])


def _count(total: int, shown: int, title: str) -> str:
    more = f", the first {shown} shown" if shown < total else ""
    return f"{counted(total, title)}{more}"


def counted(number: int, plural: str) -> str:
    """Formats a count: ``1 run``, ``2 runs``."""
    one = {"processes": "process", "boxes": "box"}.get(plural, plural.removesuffix("s"))
    return f"{number} {one if number == 1 else plural}"
