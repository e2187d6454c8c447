-- Schema 5. `made` finds a version by its inode and a byte of the rest of its identity, not of its device alone. What was there before is
-- moved to the new table by whoever opens the database next (rekey.rs), since the identities are in blocks.
ALTER TABLE made RENAME TO made_before;
CREATE TABLE made (version INTEGER NOT NULL, entity INTEGER NOT NULL, PRIMARY KEY (version, entity)) STRICT, WITHOUT ROWID;
