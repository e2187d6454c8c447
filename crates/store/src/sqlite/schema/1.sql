-- Schema 1. docs/formats/store.md describes every table and record.
-- A key of 64 bits is a run's (or a directory's) number << 32 | an id in it: the rows of one run, or of one directory, stand together.

CREATE TABLE runs (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    name          TEXT,
    note          TEXT,
    started       INTEGER NOT NULL,
    header        TEXT NOT NULL,
    environment   INTEGER NOT NULL,
    end           TEXT NOT NULL,
    unknown       TEXT NOT NULL DEFAULT '[]',
    log_bytes     INTEGER NOT NULL,
    activities    INTEGER NOT NULL DEFAULT 0,
    entities      INTEGER NOT NULL DEFAULT 0,
    edges         INTEGER NOT NULL DEFAULT 0,
    files_read    INTEGER NOT NULL DEFAULT 0,
    files_written INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX runs_by_name ON runs (name) WHERE name IS NOT NULL;

-- All runs share these.
CREATE TABLE texts (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE dirs (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE) STRICT;
CREATE TABLE versions (id INTEGER PRIMARY KEY, block BLOB NOT NULL) STRICT;
CREATE TABLE inodes (bucket INTEGER NOT NULL, dir INTEGER NOT NULL, PRIMARY KEY (bucket, dir)) STRICT, WITHOUT ROWID;

-- Each row belongs to one run.
CREATE TABLE members (id INTEGER PRIMARY KEY, block BLOB NOT NULL) STRICT;
CREATE TABLE activities (id INTEGER PRIMARY KEY, record BLOB NOT NULL) STRICT;
CREATE TABLE segments (id INTEGER PRIMARY KEY, block BLOB NOT NULL) STRICT;
CREATE TABLE extended (
    id       INTEGER PRIMARY KEY,
    activity INTEGER NOT NULL,
    time     INTEGER NOT NULL,
    kind     BLOB NOT NULL,
    payload  BLOB NOT NULL
) STRICT;

-- Indexes of the blocks: which entities touch a directory, and which entity has a version that its run made.
CREATE TABLE touched (dir INTEGER NOT NULL, members INTEGER NOT NULL, PRIMARY KEY (dir, members)) STRICT, WITHOUT ROWID;
CREATE TABLE made (version INTEGER NOT NULL, entity INTEGER NOT NULL, PRIMARY KEY (version, entity)) STRICT, WITHOUT ROWID;

-- Facts about contents, filled from DIR/facts.log (docs/formats/contents.md).
CREATE TABLE facts (
    id      INTEGER PRIMARY KEY,
    inode   INTEGER NOT NULL,
    content INTEGER,
    record  BLOB NOT NULL
) STRICT;
CREATE INDEX facts_by_inode ON facts (inode);
CREATE INDEX facts_by_content ON facts (content) WHERE content IS NOT NULL;

CREATE TABLE directory_snapshots (run TEXT PRIMARY KEY, record BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE learned (one INTEGER PRIMARY KEY CHECK (one = 1), journal BLOB NOT NULL, position INTEGER NOT NULL) STRICT;
