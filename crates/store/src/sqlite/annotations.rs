//! Annotations as rows: filled from the journal, found by run and by key.

use rusqlite::{Row, params};

use super::SqliteStore;
use crate::annotations::{Annotation, AnnotationKind, AnnotationRecord};
use crate::{Error, Result};

impl SqliteStore {
    pub(super) fn journal_position_of_annotations(&self) -> Result<u64> {
        let found = self.one("SELECT position FROM annotated", [], |row| {
            row.get::<_, i64>(0)
        })?;
        Ok(found.unwrap_or(0) as u64)
    }

    pub(super) fn add_annotations(
        &mut self,
        records: &[AnnotationRecord],
        read: u64,
        anew: bool,
    ) -> Result<()> {
        let path = self.path.clone();
        let fail = |e| Error::database("add annotations", &path, e);
        let tx = self
            .conn
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(fail)?;
        if anew {
            tx.execute("DELETE FROM annotations", []).map_err(fail)?;
        }
        for record in records {
            match record {
                AnnotationRecord::Set(one) => {
                    let kind = one.kind as i64;
                    match &one.value {
                        Some(value) => tx.execute(
                            "INSERT OR REPLACE INTO annotations (run, kind, key, value) VALUES (?, ?, ?, ?)",
                            params![one.run, kind, one.key, value],
                        ),
                        None => tx.execute(
                            "DELETE FROM annotations WHERE run = ?1 AND kind = ?2 AND key = ?3",
                            params![one.run, kind, one.key],
                        ),
                    }
                }
                AnnotationRecord::Forgotten { forgotten } => {
                    tx.execute("DELETE FROM annotations WHERE run = ?1", [forgotten])
                }
            }
            .map_err(fail)?;
        }
        tx.execute(
            "INSERT OR REPLACE INTO annotated (one, position) VALUES (1, ?)",
            [read as i64],
        )
        .map_err(fail)?;
        tx.commit().map_err(fail)
    }

    pub(super) fn annotations_of_run(&self, run: &str) -> Result<Vec<Annotation>> {
        let select =
            "SELECT run, kind, key, value FROM annotations WHERE run = ?1 ORDER BY kind, key";
        self.all(select, [run], annotation)
    }

    pub(super) fn annotations_of_kind(
        &self,
        kind: AnnotationKind,
        key: Option<&str>,
    ) -> Result<Vec<Annotation>> {
        let select = "SELECT run, kind, key, value FROM annotations \
                      WHERE kind = ?1 AND (?2 IS NULL OR key = ?2) ORDER BY run, key";
        self.all(select, params![kind as i64, key], annotation)
    }
}

fn annotation(row: &Row<'_>) -> rusqlite::Result<Annotation> {
    let kind = row.get::<_, i64>(1)?;
    let known = usize::try_from(kind)
        .ok()
        .and_then(|at| AnnotationKind::ALL.get(at));
    Ok(Annotation {
        run: row.get(0)?,
        kind: *known.ok_or(rusqlite::Error::IntegralValueOutOfRange(1, kind))?,
        key: row.get(2)?,
        value: row.get(3)?,
    })
}
