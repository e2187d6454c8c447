-- Schema 2: what is known of contents, filled from DIR/facts.log (docs/formats/contents.md).

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
