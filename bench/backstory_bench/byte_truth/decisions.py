"""Programs whose output depends on its input by decisions: counts, tests, places of matches.

The dependence of a case is that of its task: a count of lines is decided by every byte, since each
could end a line. How the program finds its answer does not matter.
"""

from __future__ import annotations

from collections.abc import Callable

from .programs import Case, Origin, computed, constant, fields, spans, table


def count_lines(rows: int) -> Case:
    content = table(rows, 20)
    whole = {("in", at) for at in range(len(content))}
    truth = computed(str(content.count(b"\n")), whole) + constant("\n")
    return Case("count lines (wc -l)", "wc -l < in > out", {"in": content}, truth, False, "wc")


def count_matches(rows: int) -> Case:
    content = table(rows, 21)
    whole = {("in", at) for at in range(len(content))}
    count = sum(b"elm" in content[start:end] for start, end in spans(content))
    truth = computed(str(count), whole) + constant("\n")
    return Case("count matches (grep -c)", "grep -c elm in > out", {"in": content}, truth, False, "grep")


def judge_columns(rows: int) -> Case:
    content, truth = table(rows, 22), []
    for span in spans(content):
        start, end = fields(content, span)[1]
        answer = "yes" if content[start:end].startswith(b"elm") else "no"
        truth += computed(answer, {("in", at) for at in range(start, end)}) + constant("\n")
    command = """awk -F, '{print ($2 ~ /^elm/) ? "yes" : "no"}' in > out"""
    return Case("test a column (awk)", command, {"in": content}, truth, False, "awk")


def number_matches(rows: int) -> Case:
    content, truth = table(rows, 23), []
    ends: Origin = set()
    for number, (start, end) in enumerate(spans(content), 1):
        if b"elm" in content[start:end]:
            line = {("in", at) for at in range(start, end)}
            truth += computed(str(number), line | ends) + constant("\n")
        ends |= {("in", end - 1)}
    command = "sed -n /elm/= in > out"
    return Case("numbers of matching lines (sed)", command, {"in": content}, truth, False, "sed")


DECISIONS: list[Callable[[int], Case]] = [count_lines, count_matches, judge_columns, number_matches]
