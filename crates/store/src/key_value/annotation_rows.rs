//! Annotations as rows: filled from the journal, found by run and by key.
//!
//! ```text
//! Annotations     [length of the run's id, 2 bytes] run  kind  key   =  value
//! AnnotationKeys  kind  [length of the key, 4 bytes] key  run        =  (empty)
//! ```

use super::KeyValueStore;
use super::engine::KeyValueEngine;
use super::row_keys::{RowTable, after_prefix};
use crate::annotations::{Annotation, AnnotationKind, AnnotationRecord};
use crate::{Error, Result};
use backstory_ordering::SmallSort;

/// The beginning of the keys of a run's annotations.
fn of_run(run: &str) -> Vec<u8> {
    let length = (run.len() as u16).to_be_bytes();
    RowTable::Annotations.bytes(&[&length, run.as_bytes()].concat())
}

fn row_key(run: &str, kind: AnnotationKind, key: &str) -> Vec<u8> {
    [&*of_run(run), &[kind as u8], key.as_bytes()].concat()
}

/// The beginning of the keys by which the annotations of a kind are found.
fn of_kind(kind: AnnotationKind, key: Option<&str>) -> Vec<u8> {
    let mut found = RowTable::AnnotationKeys.bytes(&[kind as u8]);
    if let Some(key) = key {
        found.extend((key.len() as u32).to_be_bytes());
        found.extend(key.as_bytes());
    }
    found
}

fn index_key(one: &Annotation) -> Vec<u8> {
    [&*of_kind(one.kind, Some(&one.key)), one.run.as_bytes()].concat()
}

fn damaged() -> Error {
    Error::Damaged("annotation")
}

fn text(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| damaged())
}

/// The annotation of a row.
fn decode(key: &[u8], value: &[u8]) -> Result<Annotation> {
    let (length, rest) = key
        .get(1..)
        .and_then(<[u8]>::split_first_chunk)
        .ok_or_else(damaged)?;
    let length = usize::from(u16::from_be_bytes(*length));
    let (run, rest) = rest.split_at_checked(length).ok_or_else(damaged)?;
    let (kind, key) = rest.split_first().ok_or_else(damaged)?;
    Ok(Annotation {
        run: text(run)?,
        kind: *AnnotationKind::ALL
            .get(usize::from(*kind))
            .ok_or_else(damaged)?,
        key: text(key)?,
        value: Some(text(value)?),
    })
}

impl<E: KeyValueEngine> KeyValueStore<E> {
    pub(super) fn position_of_annotations(&self) -> Result<u64> {
        let Some(row) = self.get(&RowTable::Annotated.bytes(&[]))? else {
            return Ok(0);
        };
        let position = row.try_into().map(u64::from_be_bytes);
        position.map_err(|_| Error::Damaged("position in the journal of annotations"))
    }

    pub(super) fn add_annotations(
        &self,
        records: &[AnnotationRecord],
        read: u64,
        anew: bool,
    ) -> Result<()> {
        self.transaction(|| {
            if anew {
                self.clear(RowTable::Annotations)?;
                self.clear(RowTable::AnnotationKeys)?;
            }
            for record in records {
                match record {
                    AnnotationRecord::Set(one) => self.set_annotation(one)?,
                    AnnotationRecord::Forgotten { forgotten } => {
                        for one in self.of_one_run(forgotten)? {
                            self.remove_annotation(&one)?;
                        }
                    }
                }
            }
            self.put(RowTable::Annotated.bytes(&[]), read.to_be_bytes())
        })
    }

    fn set_annotation(&self, one: &Annotation) -> Result<()> {
        if one.run.len() > usize::from(u16::MAX) {
            return Err(Error::TooMany("bytes in a run's id"));
        }
        let Some(value) = &one.value else {
            return self.remove_annotation(one);
        };
        self.put(index_key(one), [])?;
        self.put(row_key(&one.run, one.kind, &one.key), value.as_bytes())
    }

    fn remove_annotation(&self, one: &Annotation) -> Result<()> {
        self.delete(index_key(one))?;
        self.delete(row_key(&one.run, one.kind, &one.key))
    }

    /// The annotations of a run, by kind and key.
    pub(super) fn of_one_run(&self, run: &str) -> Result<Vec<Annotation>> {
        let from = of_run(run);
        let mut found = Vec::new();
        self.each((&from, &after_prefix(&from)), |key, value| {
            found.push(decode(key, value)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// The annotations of a kind, by run and key.
    pub(super) fn of_one_kind(
        &self,
        kind: AnnotationKind,
        key: Option<&str>,
    ) -> Result<Vec<Annotation>> {
        let from = of_kind(kind, key);
        let mut found = Vec::new();
        for row in self.keys((&from, &after_prefix(&from)))? {
            let rest = row.get(2..).and_then(<[u8]>::split_first_chunk);
            let (length, rest) = rest.ok_or_else(damaged)?;
            let length = u32::from_be_bytes(*length) as usize;
            let (key, run) = rest.split_at_checked(length).ok_or_else(damaged)?;
            let row = row_key(
                str::from_utf8(run).map_err(|_| damaged())?,
                kind,
                &text(key)?,
            );
            if let Some(value) = self.get(&row)? {
                found.push(decode(&row, &value)?);
            }
        }
        found.sort_small_by(|a, b| (&a.run, &a.key).cmp(&(&b.run, &b.key)));
        Ok(found)
    }
}
