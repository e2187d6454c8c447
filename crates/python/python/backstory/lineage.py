"""The lineage of a file: its sources, or the files that came from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .tables import Answer

if TYPE_CHECKING:
    import networkx

    from ._core import LineageAnswer, Table


class _Nodes(Answer):
    _title = "nodes"


class _Steps(Answer):
    _title = "steps"


class _Files(Answer):
    _title = "files"


class Lineage(Answer):
    """The graph of processes and versions of files from which a file came, or to which it led.

    The object is a table of the links. ``from`` and ``to`` are row numbers of ``nodes``; a link
    points in the direction in which data flowed. ``steps`` and ``files`` describe the same lineage
    by the commands that a person would have typed. A notebook shows these as a picture.
    """

    _title = "links"

    def __init__(self, answer: LineageAnswer, subject: str, back: bool) -> None:
        super().__init__(answer.links)
        self._answer = answer
        self._subject = subject
        self._back = back
        self._account: tuple[Table, Table, Table, list[int]] | None = None

    @property
    def nodes(self) -> Answer:
        """Processes and versions of files. The first ``roots`` rows are the question's subject."""
        return _Nodes(self._answer.nodes)

    @property
    def links(self) -> Answer:
        """The links between the nodes."""
        return self

    @property
    def roots(self) -> int:
        """The number of nodes that are the subject of the question."""
        return self._answer.roots

    @property
    def cut(self) -> bool:
        """True if the graph ends at the requested depth."""
        return self._answer.cut

    @property
    def steps(self) -> Answer:
        """The commands. ``inputs`` and ``outputs`` are row numbers of ``files``."""
        table = self._steps()[1]
        return _Steps(lambda: table)

    @property
    def started_by(self) -> Answer:
        """The commands that started the steps, such as ``make``."""
        table = self._steps()[2]
        return _Steps(lambda: table)

    @property
    def files(self) -> Answer:
        """The files between the steps. ``source`` is true if no recorded step made the file."""
        table = self._steps()[0]
        return _Files(lambda: table)

    def _steps(self) -> tuple[Table, Table, Table, list[int]]:
        if self._account is None:
            self._account = self._answer.steps()
        return self._account

    def to_networkx(self, level: str = "process") -> networkx.MultiDiGraph[Any]:
        """Returns a ``networkx.MultiDiGraph``. Edges point in the direction in which data flowed.

        ``level="process"``: a node for each process and version, numbered as in ``nodes``.
        ``level="step"``: a node ``("step", n)`` for each command and ``("file", n)`` for each file.
        """
        from . import _graphs

        graph: networkx.MultiDiGraph[Any]
        if level == "process":
            graph = _graphs.processes(self.nodes, self)
            return graph
        if level == "step":
            graph = _graphs.steps(self.files, self.steps, self._steps()[3])
            return graph
        from .errors import MisuseError

        raise MisuseError(f"there is no level {level!r}: give 'process' or 'step'")

    def to_svg(self) -> str:
        """Returns a picture of the steps and of the files between them, in SVG."""
        from . import _svg

        files, steps, _, roots = self._steps()
        rows = [self._rows(table) for table in (files, steps)]
        return _svg.draw(rows[0], rows[1], roots, self._back)

    @staticmethod
    def _rows(table: Table) -> list[dict[str, Any]]:
        return Answer(lambda: table).to_dicts()

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _repr_html_(self) -> str:
        from html import escape

        from ._html import counted, visible

        lead = "Where {} comes from" if self._back else "What came from {}"
        name = f"<b>{escape(visible(self._subject))}</b>"
        cut = " The answer was cut at the requested depth." if self.cut else ""
        count = f"{counted(len(self.steps), 'steps')}, {counted(len(self.files), 'files')}."
        picture = f'<div style="overflow-x:auto">{self.to_svg()}</div>'
        return f"<p>{lead.format(name)}: {count}{cut}</p>{picture}"
