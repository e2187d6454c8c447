"""Differences between two runs, or between the histories of two versions of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .tables import Answer

if TYPE_CHECKING:
    from ._core import DiffAnswer


class Diff(Answer):
    """The differences, causes before consequences."""

    _title = "differences"

    def __init__(self, answer: DiffAnswer, a: str, b: str) -> None:
        super().__init__(answer.differences)
        self._answer = answer
        self._sides = (a, b)

    @property
    def same(self) -> bool:
        """True if nothing differs and all was compared."""
        return len(self) == 0 and not self.unknown

    @property
    def a(self) -> list[str]:
        """The runs of the first side, oldest first."""
        return self._answer.a

    @property
    def b(self) -> list[str]:
        """The runs of the second side, oldest first."""
        return self._answer.b

    @property
    def same_outputs(self) -> list[str]:
        """Outputs with the same content on both sides."""
        return self._answer.same_outputs()

    @property
    def unknown(self) -> list[str]:
        """Files that cannot be compared, because a content is not available."""
        return self._answer.unknown()

    def _repr_html_(self) -> str:
        from html import escape

        from ._html import visible

        a, b = (f"<b>{escape(visible(side))}</b>" for side in self._sides)
        if self.same:
            return f"<p>No difference between {a} and {b}.</p>"
        if len(self) == 0:
            return f"<p>It cannot be told whether {a} and {b} are the same.</p>"
        return f"<p>{a} and {b}</p>{super()._repr_html_()}"
