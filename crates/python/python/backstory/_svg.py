"""Draws steps and files from left to right, in the direction of the data flow.

The picture has the user's own files and the files between steps. Files of packages and of the
system are only counted. An arrow between two steps is a pipe, or memory that one cell leaves to the
next. The picture has at most ``MOST`` boxes, so that a person can read it: the boxes nearest to the
subject.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ._html import counted, shortened, visible
from ._layers import Edge, Key, Layout, layered

#: The greatest number of boxes in a picture.
MOST = 60

_WIDTH, _HEIGHT = 190, 40
_GAP_X, _GAP_Y = 46, 14
_MARGIN = 10

_STYLE = (
    "<style>"
    ".bs-file{fill:#eef4fb;stroke:#5b84b1}.bs-root{fill:#fdf3d8;stroke:#b58900;stroke-width:2}"
    ".bs-step{fill:#f4f4f4;stroke:#777}"
    ".bs-edge{fill:none;stroke:#8a8a8a;stroke-width:1.3}.bs-tip{fill:#8a8a8a}"
    ".bs-name{font:12px system-ui,sans-serif;fill:#1b1b1b}"
    ".bs-command{font:11px ui-monospace,monospace;fill:#1b1b1b}"
    ".bs-note{font:11px system-ui,sans-serif;fill:currentColor;opacity:.75}"
    "</style>"
)


@dataclass(frozen=True)
class _Box:
    kind: str
    lines: tuple[str, ...]
    hint: str


def draw(
    files: list[dict[str, Any]], steps: list[dict[str, Any]], roots: list[int], back: bool
) -> str:
    """Returns a picture in SVG. With ``back``, the subject is the result, otherwise the source."""
    boxes, edges, hidden = _graph(files, steps, set(roots), back)
    boxes, edges, cut = _nearest(boxes, edges, [("file", root) for root in roots])
    return _picture(boxes, layered(list(boxes), edges), _notes(hidden, cut))


@dataclass
class _Hidden:
    """Counts of the files and steps that are not drawn."""

    files: int = 0
    steps: int = 0


def _graph(
    files: list[dict[str, Any]], steps: list[dict[str, Any]], roots: set[int], back: bool
) -> tuple[dict[Key, _Box], list[Edge], _Hidden]:
    """Returns boxes and edges: the steps that use the user's own files, and those files."""
    hidden = _Hidden()
    boxes: dict[Key, _Box] = {}
    edges: list[Edge] = []
    users: dict[int, list[Key]] = {}
    makers: dict[int, list[Key]] = {}
    for number, step in enumerate(steps):
        if not step["own"]:
            hidden.steps += 1
            continue
        boxes["step", number] = _Box(
            "step", tuple(_label(step["command"])), visible(step["command"])
        )
        for file in step["inputs"]:
            users.setdefault(file, []).append(("step", number))
        for file in step["outputs"]:
            makers.setdefault(file, []).append(("step", number))
    for number, file in enumerate(files):
        made, used = makers.get(number, []), users.get(number, [])
        joins = made and used
        if file["kind"] in ("memory", "pipe", "socket") and number not in roots:
            # A stream between steps is drawn as an arrow from step to step.
            edges += [(start, to) for start in made for to in used if joins and start != to]
            continue
        leads = bool(joins) or bool(used if back else made)
        if number not in roots and not (leads and (joins or _is_shown(file))):
            hidden.files += bool(leads)
            continue
        path = visible(file["path"])
        kind = "root" if number in roots else "file"
        boxes["file", number] = _Box(kind, (shortened(os.path.basename(path) or path, 28),), path)
        edges += [(start, ("file", number)) for start in made]
        edges += [(("file", number), to) for to in used]
    return boxes, edges, hidden


def _is_shown(file: dict[str, Any]) -> bool:
    of_kernel = file["path"].startswith(("/proc/", "/sys/", "/dev/"))
    return file["own"] and file["kind"] in ("file", "symlink") and not of_kernel


def _label(command: str) -> list[str]:
    """Returns a command in at most two lines. A cell is its number and the start of its source."""
    cell = re.match(r"'(In \[\d+\])' \$?'?(.*)", command, re.S)
    if cell:
        source = cell[2].replace("\\n", "\n").strip().splitlines()
        return [cell[1], shortened(visible(source[0]) if source else "", 26)]
    return _wrapped(visible(command.strip()))


def _wrapped(command: str) -> list[str]:
    """Wraps a command into at most two lines."""
    short = shortened(command, 50)
    if len(short) <= 26:
        return [short]
    cut = short.rfind(" ", 10, 27)
    cut = cut if cut > 0 else 26
    return [short[:cut], short[cut:].strip()]


def _nearest(
    boxes: dict[Key, _Box], edges: list[Edge], roots: Iterable[Key]
) -> tuple[dict[Key, _Box], list[Edge], int]:
    """Returns the boxes nearest to the subject, their edges, and the number of the other boxes."""
    beside: dict[Key, list[Key]] = {key: [] for key in boxes}
    for start, to in edges:
        beside[start].append(to)
        beside[to].append(start)
    kept = list(dict.fromkeys(root for root in roots if root in boxes))
    for key in kept:
        if len(kept) >= MOST:
            break
        kept += [other for other in dict.fromkeys(beside[key]) if other not in kept]
    chosen = set(kept[:MOST])
    left = {key: box for key, box in boxes.items() if key in chosen}
    return left, [edge for edge in edges if chosen.issuperset(edge)], len(boxes) - len(left)


def _notes(hidden: _Hidden, cut: int) -> list[str]:
    counts = [
        (hidden.files, "files", "of packages and the system"),
        (hidden.steps, "steps", "without files of your own"),
        (cut, "boxes", "further away"),
    ]
    found = [f"{counted(count, what)} {which}" for count, what, which in counts if count]
    return [f"Not drawn: {', '.join(found)}."] if found else []


def _picture(boxes: dict[Key, _Box], layout: Layout, notes: list[str]) -> str:
    rows = max((len(layer) for layer in layout.layers), default=1)
    height = rows * (_HEIGHT + _GAP_Y) - _GAP_Y
    points: dict[Key, tuple[float, float]] = {}
    for column, layer in enumerate(layout.layers):
        x = _MARGIN + column * (_WIDTH + _GAP_X)
        top = (height - (len(layer) * (_HEIGHT + _GAP_Y) - _GAP_Y)) / 2
        for row, key in enumerate(layer):
            points[key] = (x, _MARGIN + top + row * (_HEIGHT + _GAP_Y))
    wide = 2 * _MARGIN + max(1, len(layout.layers)) * (_WIDTH + _GAP_X) - _GAP_X
    high = 2 * _MARGIN + height + (18 if notes else 0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="backstory" width="{wide}" '
        f'height="{high}" viewBox="0 0 {wide} {high}" '
        f'role="img" aria-label="steps and files">{_STYLE}'
    ]
    parts += [_curve([points[key] for key in route], route, boxes) for route in layout.routes]
    parts += [_drawn(box, *points[key]) for key, box in boxes.items()]
    if notes:
        text = html.escape(" ".join(notes))
        parts.append(f'<text class="bs-note" x="{_MARGIN}" y="{high - 6}">{text}</text>')
    return "".join([*parts, "</svg>"])


def _curve(points: list[tuple[float, float]], route: list[Key], boxes: dict[Key, _Box]) -> str:
    """Returns an arrow along the route of an edge."""
    middle = _HEIGHT / 2
    x, y = points[0][0] + _WIDTH, points[0][1] + middle
    path = [f"M{x:g},{y:g}"]
    for key, (left, top) in zip(route[1:], points[1:]):
        to = top + middle
        end = left - (6 if key in boxes else 0)
        bend = (end - x) / 2
        path.append(f"C{x + bend:g},{y:g} {end - bend:g},{to:g} {end:g},{to:g}")
        x, y = end, to
        if key not in boxes:
            x += _WIDTH
            path.append(f"L{x:g},{y:g}")
    tip = f'<path class="bs-tip" d="M{x + 6:g},{y:g}l-7,-3.5v7z"/>'
    return f'<path class="bs-edge" d="{"".join(path)}"/>{tip}'


def _drawn(box: _Box, x: float, y: float) -> str:
    round_ = 4 if box.kind == "step" else 14
    style = "bs-command" if box.kind == "step" else "bs-name"
    first = y + _HEIGHT / 2 + 4 - 7 * (len(box.lines) - 1)
    lines = "".join(
        f'<text class="{style}" x="{x + _WIDTH / 2:g}" y="{first + 14 * at:g}" '
        f'text-anchor="middle">{html.escape(line)}</text>'
        for at, line in enumerate(box.lines)
    )
    return (
        f"<g><title>{html.escape(box.hint)}</title>"
        f'<rect class="bs-{box.kind}" x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'rx="{round_}"/>{lines}</g>'
    )
