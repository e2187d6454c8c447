-- Schema 1. Every table and record is described in docs/formats/store.md.
-- Keys of 64 bits are a run's (or a directory's) number << 32 | an id in it, so that what belongs together lies together.

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

-- Shared by all runs.
CREATE TABLE texts (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE dirs (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE) STRICT;
CREATE TABLE versions (id INTEGER PRIMARY KEY, block BLOB NOT NULL) STRICT;
CREATE TABLE inodes (bucket INTEGER NOT NULL, dir INTEGER NOT NULL, PRIMARY KEY (bucket, dir)) STRICT, WITHOUT ROWID;

-- Of one run.
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

-- Where to find them.
CREATE TABLE touched (dir INTEGER NOT NULL, members INTEGER NOT NULL, PRIMARY KEY (dir, members)) STRICT, WITHOUT ROWID;
CREATE TABLE made (inode INTEGER NOT NULL, entity INTEGER NOT NULL, PRIMARY KEY (inode, entity)) STRICT, WITHOUT ROWID;
