"""Databases of SQLite and their write-ahead logs."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from expectation import expect

SCHEMA = """
PRAGMA page_size = 1024;
CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner TEXT, balance REAL, photo BLOB,
                       doubled AS (balance * 2));
CREATE TABLE "odd "" name" (x, "select");
CREATE TABLE rates (day TEXT COLLATE NOCASE, currency TEXT, rate REAL,
                    PRIMARY KEY (day, currency)) WITHOUT ROWID;
CREATE INDEX owners ON accounts (owner);
CREATE VIEW rich AS SELECT * FROM accounts WHERE balance > 10;
CREATE TRIGGER forbid BEFORE DELETE ON rates BEGIN SELECT RAISE(ABORT, 'no'); END;
INSERT INTO accounts VALUES (1, 'Ada', 10.5, x'00ff'), (2, 'Bär', NULL, NULL), (42, 'Cy', 7, NULL);
INSERT INTO "odd "" name" VALUES ('a', 1), ('b', 2);
INSERT INTO rates VALUES ('b', 'EUR', 1.1), ('A', 'EUR', 1.2), ('a', 'USD', 1.3), ('C', 'EUR', 1.4);
PRAGMA user_version = 3;
"""


def databases():
    """A database, and the same after changes of each kind."""
    with closing(sqlite3.connect("old.db", isolation_level=None)) as database:
        database.executescript(SCHEMA)
        # The order of this collation is known to its program alone.
        database.create_collation("own", lambda a, b: (a > b) - (a < b))
        database.execute("CREATE TABLE own_order (k TEXT COLLATE own PRIMARY KEY) WITHOUT ROWID")
        database.execute("INSERT INTO own_order VALUES ('a')")
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        quoted = {name: '"' + name.replace('"', '""') + '"' for (name,) in tables}
        del quoted["own_order"]
        count = {name: database.execute(f"SELECT count(*) FROM {sql}").fetchone()[0] for name, sql in quoted.items()}
        pragmas = ["page_size", "page_count", "user_version", "encoding"]
        facts = {name: database.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas}
    shutil.copy("old.db", "new.db")
    with closing(sqlite3.connect("new.db", isolation_level=None)) as database:
        database.executescript(
            """
            UPDATE accounts SET balance = 6.5 WHERE id = 42;
            UPDATE accounts SET photo = x'00fe' WHERE id = 1;
            INSERT INTO accounts VALUES (43, 'Di', 1, NULL);
            DELETE FROM "odd "" name" WHERE x = 'a';
            UPDATE rates SET rate = 1.25 WHERE day = 'A' AND currency = 'EUR';
            CREATE TABLE added (y INTEGER);
            """
        )
    sentences = [
        "`accounts`: 1 row added, 2 rows changed",
        "`accounts.photo` of row 1: x'00ff' → x'00fe'",
        "`accounts.balance` of row 42: 7 → 6.5",
        '`odd " name`: 1 row removed',
        "`own_order`: its rows cannot be compared (SQLite: no query solution)",
        "`rates`: 1 row changed",
        "`rates.rate` of row A, EUR: 1.2 → 1.25",
        "1 table added: `added`",
    ]
    expect("sqlite", "old.db", "new.db", {**facts, "rows_of_tables": count}, sentences)


def logs():
    """A log with two transactions, and the same log after a third."""
    with closing(sqlite3.connect("logged.db", isolation_level=None)) as database:
        database.executescript("PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES (zeroblob(3000))")
        shutil.copy("logged.db-wal", "old.db-wal")
        with closing(sqlite3.connect("logged.db", isolation_level=None)) as other:
            _, frames, _ = other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        database.execute("INSERT INTO t VALUES (1)")
        shutil.copy("logged.db-wal", "new.db-wal")
    # The checkpoint copied all frames, so that the next transaction began the log again.
    size = len(Path("old.db-wal").read_bytes())
    assert frames == (size - 32) // (24 + 1024)
    facts = {"page_size": 1024, "frames": frames, "transactions_number": 2}
    expect("sqlite-wal", "old.db-wal", "new.db-wal", facts, ["checkpoint 0 → 1"])
