//! The items of a run: its facts, its stored contents, its directories and its annotations.
//!
//! Another run, or a user, may lawfully add to them after a seal. So a seal has the digest of each
//! item that there was, and a check finds the ones that changed.
//!
//! ```text
//! stored BLAKE3        a fact about a file, whose content the store has
//! known BLAKE3         a fact about a file, whose content the store does not have
//! directories BLAKE3   the run's directory snapshot
//! annotation BLAKE3    a line of annotations.log about the run
//! ```
//!
//! Invariant: the digest of a fact covers the file's identity, its digest and its package. A fact
//! without a digest is no item: a later run may learn more.

use backstory_ordering::SmallSort;
use std::collections::{HashMap, HashSet};

use backstory_exchange::outgoing;
use backstory_files::{Digest, Ident, VersionId};
use backstory_store::annotation_history::AnnotationHistory;
use backstory_store::facts::{self, Fact, JournalPosition, JournalRecord};
use backstory_store::{Home, RunRecord, Store};

use crate::Result;

/// The journals of a store, read once for many runs.
#[derive(Debug)]
pub struct Journals {
    /// The newest fact about each version.
    pub facts: HashMap<VersionId, Fact>,
    /// The newest directory snapshot of each run, encoded.
    pub snapshots: HashMap<String, Vec<u8>>,
    /// The lines of `annotations.log`.
    pub annotations: AnnotationHistory,
}

impl Journals {
    /// Reads both journals.
    pub fn read(home: &Home) -> Result<Journals> {
        let (records, ..) = facts::read_since(&home.facts_path(), JournalPosition::default())?;
        let mut journals = Journals {
            facts: HashMap::new(),
            snapshots: HashMap::new(),
            annotations: AnnotationHistory::of(home)?,
        };
        for record in records {
            match record {
                JournalRecord::Fact(fact) => {
                    let version = fact.ident.version_id();
                    let old = journals.facts.get(&version);
                    if old.is_none_or(|old| fact.replaces(old)) {
                        journals.facts.insert(version, fact);
                    }
                }
                JournalRecord::Run(snapshot) => {
                    let run = snapshot.run.clone();
                    let bytes = facts::to_bytes(&[JournalRecord::Run(snapshot)]);
                    journals.snapshots.insert(run, bytes);
                }
                JournalRecord::Forgotten(run) => {
                    journals.snapshots.remove(&run);
                }
            }
        }
        Ok(journals)
    }
}

/// One item, with what its digest covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// The line of the list.
    pub line: String,
    /// The content, if it is stored.
    pub content: Option<Digest>,
    /// The text of a fact, which [`fact_text`] made.
    pub fact: Option<String>,
}

/// The text of a fact. `None` if it has no digest.
pub fn fact_text(fact: &Fact) -> Option<String> {
    let Ident {
        dev,
        ino,
        size,
        mtime,
        birth,
        ..
    } = fact.ident;
    let digest = fact.digest?;
    let package = match fact.availability.package() {
        None => "-".to_owned(),
        Some(package) => format!(
            "{} {} {} {}",
            package.manager, package.name, package.version, package.verified
        ),
    };
    Some(format!(
        "fact {dev} {ino} {size} {mtime} {birth} {digest} {package}"
    ))
}

/// The digest of an item's text, as its line has it.
pub fn item_digest(text: &[u8]) -> Digest {
    Digest(*blake3::hash(text).as_bytes())
}

/// The items of a run, in the order of their lines, each once.
pub fn of_run(
    home: &Home,
    store: &dyn Store,
    run: &RunRecord,
    journals: &Journals,
) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    for record in outgoing::learned(home, store, std::slice::from_ref(run))? {
        match record {
            JournalRecord::Fact(fact) => items.extend(of_fact(&fact)),
            snapshot => {
                let digest = item_digest(&facts::to_bytes(&[snapshot]));
                items.push(plain(format!("directories {digest}")));
            }
        }
    }
    for record in journals.annotations.of_run(&run.header.id) {
        let text = serde_json::to_vec(record).map_err(backstory_store::Error::source_failed)?;
        items.push(plain(format!("annotation {}", item_digest(&text))));
    }
    items.sort_small();
    items.dedup();
    Ok(items)
}

/// The lines of a run's facts about these contents, in their order.
pub fn about_contents(
    home: &Home,
    store: &dyn Store,
    run: &RunRecord,
    contents: &HashSet<Digest>,
) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for record in outgoing::learned(home, store, std::slice::from_ref(run))? {
        if let JournalRecord::Fact(fact) = record
            && fact.digest.is_some_and(|digest| contents.contains(&digest))
        {
            lines.extend(of_fact(&fact).map(|item| item.line));
        }
    }
    lines.sort_small();
    lines.dedup();
    Ok(lines)
}

fn of_fact(fact: &Fact) -> Option<Item> {
    let text = fact_text(fact)?;
    let digest = item_digest(text.as_bytes());
    let word = match fact.availability.is_stored() {
        true => "stored",
        false => "known",
    };
    Some(Item {
        line: format!("{word} {digest}"),
        content: fact.digest.filter(|_| fact.availability.is_stored()),
        fact: Some(text),
    })
}

fn plain(line: String) -> Item {
    Item {
        line,
        content: None,
        fact: None,
    }
}

/// The digest of a list of items: that of its lines.
pub fn digest_of_list<'i>(lines: impl IntoIterator<Item = &'i str>) -> Digest {
    let mut hash = blake3::Hasher::new();
    for line in lines {
        hash.update(line.as_bytes());
        hash.update(b"\n");
    }
    Digest(*hash.finalize().as_bytes())
}
