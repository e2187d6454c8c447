"""Draws steps and files from left to right, as information flowed.

Files of packages and of the system are only counted. A picture has at most so many boxes that a
person can read it; the nearest to the subject stay.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ._html import shortened, visible
from ._layers import Edge, Key, Layout, layered

#: Boxes in a picture.
MOST = 60

_WIDTH, _HEIGHT = 190, 40
_GAP_X, _GAP_Y = 46, 14
_MARGIN = 10

_STYLE = (
    "<style>"
    ".bs-file{fill:#eef4fb;stroke:#5b84b1}.bs-root{fill:#fdf3d8;stroke:#b58900;stroke-width:2}"
    ".bs-step{fill:#f4f4f4;stroke:#777}.bs-memory{fill:#fff;stroke:#999;stroke-dasharray:4 3}"
    ".bs-edge{fill:none;stroke:#8a8a8a;stroke-width:1.3}.bs-tip{fill:#8a8a8a}"
    ".bs-name{font:12px system-ui,sans-serif;fill:#1b1b1b}"
    ".bs-command{font:11px ui-monospace,monospace;fill:#1b1b1b}"
    ".bs-note{font:11px system-ui,sans-serif;fill:#666}"
    "</style>"
)


@dataclass(frozen=True)
class _Box:
    kind: str
    lines: tuple[str, ...]
    hint: str


def draw(files: list[dict[str, Any]], steps: list[dict[str, Any]], roots: list[int]) -> str:
    """A picture in SVG."""
    boxes, edges, counted = _graph(files, steps, set(roots))
    boxes, edges, cut = _nearest(boxes, edges, [("file", root) for root in roots])
    return _picture(boxes, layered(list(boxes), edges), _notes(counted, cut))


def _graph(
    files: list[dict[str, Any]], steps: list[dict[str, Any]], roots: set[int]
) -> tuple[dict[Key, _Box], list[Edge], int]:
    """Boxes, edges, and the number of files that are only counted."""
    boxes: dict[Key, _Box] = {}
    counted = 0
    for number, file in enumerate(files):
        kind = "root" if number in roots else "file"
        if kind == "file" and file["kind"] == "memory":
            kind = "memory"
        elif kind == "file" and file["source"] and not file["own"]:
            counted += 1
            continue
        path = visible(file["path"])
        name = os.path.basename(path) if kind != "memory" else "memory of the process"
        boxes["file", number] = _Box(kind, (shortened(name or path, 28),), path)
    edges: list[Edge] = []
    for number, step in enumerate(steps):
        command = visible(step["command"].strip())
        boxes["step", number] = _Box("step", tuple(_wrapped(command)), command)
        edges += [(("file", file), ("step", number)) for file in step["inputs"]]
        edges += [(("step", number), ("file", file)) for file in step["outputs"]]
    return boxes, [edge for edge in edges if edge[0] in boxes and edge[1] in boxes], counted


def _wrapped(command: str) -> list[str]:
    """A command in at most two lines."""
    short = shortened(command, 54)
    if len(short) <= 28:
        return [short]
    cut = short.rfind(" ", 12, 29)
    cut = cut if cut > 0 else 28
    return [short[:cut], short[cut:].strip()]


def _nearest(
    boxes: dict[Key, _Box], edges: list[Edge], roots: Iterable[Key]
) -> tuple[dict[Key, _Box], list[Edge], int]:
    """The boxes nearest to the subject, and the number of the others."""
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


def _notes(counted: int, cut: int) -> list[str]:
    notes = []
    if counted:
        notes.append(f"{counted} files of packages and the system are not drawn")
    if cut:
        notes.append(f"{cut} steps and files further away are not drawn")
    return notes


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
        f'height="{high}" viewBox="0 0 {wide} {high}" style="max-width:100%;height:auto" '
        f'role="img" aria-label="steps and files">{_STYLE}'
    ]
    parts += [_curve([points[key] for key in way], way, boxes) for way in layout.ways]
    parts += [_drawn(box, *points[key]) for key, box in boxes.items()]
    if notes:
        text = html.escape("; ".join(notes))
        parts.append(f'<text class="bs-note" x="{_MARGIN}" y="{high - 6}">{text}.</text>')
    return "".join([*parts, "</svg>"])


def _curve(points: list[tuple[float, float]], way: list[Key], boxes: dict[Key, _Box]) -> str:
    """An arrow through the places of a way."""
    middle = _HEIGHT / 2
    x, y = points[0][0] + _WIDTH, points[0][1] + middle
    path = [f"M{x:g},{y:g}"]
    for key, (left, top) in zip(way[1:], points[1:]):
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
