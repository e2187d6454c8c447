-- Schema 2: what users and programs say about runs. Filled from the journal annotations.log.

CREATE TABLE annotations (
    run   TEXT NOT NULL,
    kind  INTEGER NOT NULL,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX annotations_by_key ON annotations (kind, key);
CREATE TABLE annotated (one INTEGER PRIMARY KEY CHECK (one = 1), position INTEGER NOT NULL) STRICT;
