"""A report in Markdown: the table, and the failures by kind with counts and smallest examples.

Goes in: what `cli.Report` gathered. Comes out: a text. A failure is shown once for each kind of
line that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable

from .program import Case
from .transcript import transcript
from .verdict import Finding

Group = tuple[tuple[str, str, str], tuple[Case, Finding, int]]


def first_kind(case: Case) -> str:
    """Returns the line or session that names a failure."""
    kinds = [line.kind for s in case.steps for line in s.lines]
    return case.form if case.form != "program" else kinds[0] if kinds else "command"


def report(table: str, groups: Iterable[Group], title: str, most: int) -> str:
    """Returns the report, with at most `most` examples."""
    rows: dict[tuple[str, str, str], list[tuple[Case, Finding, int]]] = {}
    for (question, verdict, _), what in groups:
        rows.setdefault((verdict, question, first_kind(what[0])), []).append(what)
    text = [
        f"# {title}",
        "",
        "```",
        table,
        "```",
        "",
        "| verdict | question | kind | times |",
        "| --- | --- | --- | --- |",
    ]
    text += [f"| {v} | {q} | {k} | {sum(n for _, _, n in what)} |" for (v, q, k), what in rows.items()]
    shown: dict[str, int] = {}
    for (verdict, question, kind), what in rows.items():
        soft = verdict != "unsound"
        if shown.get(kind, 0) >= 2 or shown.get(verdict, 0) >= (most // 6 if soft else most):
            continue
        shown[kind] = shown.get(kind, 0) + 1
        shown[verdict] = shown.get(verdict, 0) + 1
        case, finding, _ = what[0]
        text += ["", f"## {question} {verdict}: {kind}", "", "```bash", transcript(case, finding).rstrip(), "```"]
    return "\n".join(text) + "\n"
