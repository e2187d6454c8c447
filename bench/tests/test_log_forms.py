"""The command `logforms`: its orders, its settings and its table."""

from __future__ import annotations

import random

from backstory_bench import log_forms
from backstory_bench.log_forms import FORMS, NO_STATEMENTS, Form


class _Listed:
    """A session that lists what it would execute."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, int]] = []

    def execute(self, text: str) -> str | None:
        self.statements.append((text, 0))
        return None

    def prepared(self, text: str, *values: object) -> str | None:
        self.statements.append((text, len(values)))
        return "3001"


def test_an_order_has_the_counted_statements_and_a_value_for_each_mark() -> None:
    session = _Listed()
    log_forms.order(session, random.Random(1))
    assert len(session.statements) == log_forms.STATEMENTS
    for text, values in session.statements:
        assert text.count("$") == values, text


def test_equal_seeds_make_equal_orders() -> None:
    sessions = [_Listed(), _Listed()]
    for session in sessions:
        log_forms.order(session, random.Random(7))
    assert sessions[0].statements == sessions[1].statements


def test_each_form_has_a_server_without_statements_beside_it() -> None:
    bare = {form.collector for form in FORMS if form.name == NO_STATEMENTS}
    assert {form.collector for form in FORMS} == bare
    assert len({(form.name, form.collector) for form in FORMS}) == len(FORMS)


def test_the_file_of_settings_has_each_setting_once_and_those_of_the_form() -> None:
    lines = log_forms.configuration(Form("csvlog", {"log_statement": "all"})).splitlines()
    names = [line.split(" = ")[0] for line in lines]
    assert len(names) == len(set(names)) and set(log_forms.DEFAULTS) <= set(names)
    assert "log_statement = 'all'" in lines and "log_duration = 'off'" in lines


def test_the_table_compares_the_quick_rounds_with_those_of_the_same_server() -> None:
    def row(form: str, collector: str, number: int, backend: float, writer: float) -> dict[str, object]:
        return dict(zip(log_forms.FIELDS, [form, collector, number, 300, backend, writer], strict=True))

    rows = [
        row(NO_STATEMENTS, "yes", 0, 40, 1),
        row("plain", "yes", 0, 47, 8),
        row(NO_STATEMENTS, "yes", 1, 60, 0),
        row("plain", "yes", 1, 69, 9),
        row(NO_STATEMENTS, "no", 0, 10, 0),
        row("plain", "no", 0, 15, 0),
    ]
    assert log_forms.summary(rows)[2:] == ["| plain | yes | 7.0 | 8.0 |", "| plain | no | 5.0 | none |"]
