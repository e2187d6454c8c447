-- Schema 3: texts, activities, extended records and lists of edges stand in blocks. The program moves
-- the rows of the former tables, and drops these: sqlite/upgrade.rs. The table segments had the lists
-- of edges, too.

ALTER TABLE dirs RENAME TO former_dirs;
ALTER TABLE texts RENAME TO former_texts;
ALTER TABLE activities RENAME TO former_activities;
ALTER TABLE extended RENAME TO former_extended;

CREATE TABLE texts (id INTEGER PRIMARY KEY, block BLOB NOT NULL) STRICT;
-- Finds a text by its content.
CREATE TABLE text_keys (key INTEGER NOT NULL, text INTEGER NOT NULL, PRIMARY KEY (key, text)) STRICT, WITHOUT ROWID;
CREATE TABLE directories (id INTEGER PRIMARY KEY, block BLOB NOT NULL) STRICT;
CREATE TABLE paths (path BLOB PRIMARY KEY, dir INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE activities (id INTEGER PRIMARY KEY, block BLOB NOT NULL) STRICT;
CREATE TABLE extended (id INTEGER PRIMARY KEY, block BLOB NOT NULL) STRICT;
CREATE TABLE edge_lists (id INTEGER PRIMARY KEY, block BLOB NOT NULL) STRICT;
