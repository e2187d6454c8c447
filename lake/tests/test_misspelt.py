"""A wrong question is answered with what it can have meant, and with the next step."""

from __future__ import annotations

import duckdb
import pytest

from backstory_lake import misspelt
from backstory_lake.errors import MisuseError


def answer(sql: str) -> MisuseError:
    """The answer to a wrong question about a small lake."""
    with duckdb.connect() as connection:
        connection.execute("CREATE VIEW runs AS SELECT 'r' AS run, 'make' AS command")
        connection.execute("CREATE VIEW files AS SELECT '/a' AS path, 'd' AS digest")
        with pytest.raises(duckdb.Error) as raised:
            connection.execute(sql)
    return misspelt.explained(raised.value)


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("SELECT comand FROM runs", 'Did you mean "command"?'),
        ("SELECT * FROM file", 'Did you mean "files"?'),
        ('SELECT digest FROM files WHERE path = "/a"', "A text has single quotes"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_right_one(sql: str, meant: str) -> None:
    said = str(answer(sql))
    assert meant in said and said.endswith(misspelt.TABLES), said


@pytest.mark.parametrize("table", misspelt.OF_A_STORE)
def test_a_table_that_only_a_store_has_is_named_as_such(table: str) -> None:
    said = answer(f"SELECT * FROM {table.upper()}")
    assert f"a lake has no table {table}" in str(said) and said.status == 2


def test_tables_of_the_engine_itself_are_never_meant() -> None:
    assert "pg_" not in str(answer("SELECT * FROM changed"))


def test_a_text_that_is_no_sql_leads_to_the_tables() -> None:
    assert str(answer("SELEC run FROM runs")).endswith(misspelt.TABLES)
