//! One run against its seal, part by part.

use std::collections::{BTreeMap, BTreeSet};

use backstory_exchange::outgoing;
use backstory_files::Digest;
use backstory_store::facts::{self, JournalRecord};
use backstory_store::{AnnotationKind, Label, RunRecord, Store};
use backstory_vocabulary::error_chain;

use super::{Examined, Findings, StoredContents};
use crate::items::{self, Item, Journals};
use crate::seal::Seal;
use crate::statement::{PART_WORDS, Parts, Subject};
use crate::{Result, graph_indexes, parts};

/// The parts that are files come first in [`PART_WORDS`].
const FILE_PARTS: usize = 3;

/// The files of a run never change lawfully, also if the run is sealed again. That holds for a run
/// that was removed and came back, too: otherwise a note about a removal could hide a change. Deep
/// logs and records of the byte engine need not come back.
pub fn same_files(seals: &[&Seal], found: &mut Findings) {
    let mut last: Option<(&Seal, &Parts)> = None;
    let mut came_back = false;
    for &seal in seals {
        let Subject::Run(parts) = &seal.statement.subject else {
            came_back = true;
            continue;
        };
        let parts: &Parts = parts;
        if let Some((earlier, before)) = last {
            for (at, word) in PART_WORDS.iter().enumerate().take(FILE_PARTS) {
                let is_left_out = came_back && parts[at].is_none();
                if before[at].is_some() && before[at] != parts[at] && !is_left_out {
                    let what = format!(
                        "is another one than in seal {}: the run was changed before it was sealed again",
                        earlier.statement.number
                    );
                    found.fault(seal, word, what);
                }
            }
        }
        last = Some((seal, parts));
        came_back = false;
    }
}

/// A run that is to be as its last seal says.
pub struct SealedRun<'s> {
    pub seal: &'s Seal,
    pub parts: &'s Parts,
    /// The later notes that contents of the run were removed.
    pub forgotten: Vec<&'s Seal>,
}

impl SealedRun<'_> {
    pub fn examine(
        &self,
        examined: &Examined<'_>,
        journals: &std::result::Result<Journals, String>,
        contents: &mut StoredContents,
        found: &mut Findings,
    ) -> Result<()> {
        let id = self.seal.statement.run.as_str();
        let record = match &examined.store {
            Ok(store) => store.run(id).map_err(|error| error_chain(&error)),
            Err(why) => Err(why.clone()),
        };
        let has_log = examined.home.log_path(id).exists();
        if !has_log && matches!(record, Ok(None)) {
            let what = "is gone, and no command that removes runs left its note";
            found.fault(self.seal, "run", what);
            return Ok(());
        }
        let files = parts::of_files(examined.home, id);
        for ((word, sealed), now) in PART_WORDS.iter().zip(self.parts).zip(files) {
            self.compare(word, *sealed, now, found);
        }
        let sealed_lines = self.sealed_lines(found);
        match (&examined.store, record) {
            (_, Err(why)) => found.fault(self.seal, "database", why),
            (Ok(store), Ok(Some(record))) => {
                self.rows(*store, &record, found);
                let journals = match journals {
                    Ok(journals) => journals,
                    Err(why) => {
                        found.fault(self.seal, "journals", why.clone());
                        return Ok(());
                    }
                };
                match items::of_run(examined.home, *store, &record, journals) {
                    Err(error) => found.fault(self.seal, "facts", error_chain(&error)),
                    Ok(items) => self.items(&sealed_lines, &items, contents, found),
                }
                if let Err(error) = self.journals(examined, *store, &record, journals, found) {
                    found.fault(self.seal, "database", error_chain(&error));
                }
            }
            _ => found.fault(self.seal, "database", "has no rows of the run any more"),
        }
        Ok(())
    }

    fn compare(
        &self,
        word: &str,
        sealed: Option<Digest>,
        now: Result<Option<Digest>>,
        found: &mut Findings,
    ) {
        match (sealed, now) {
            (_, Err(error)) => found.fault(self.seal, word, error_chain(&error)),
            (sealed, Ok(now)) if sealed == now => {}
            (Some(_), Ok(None)) => found.fault(self.seal, word, "is gone"),
            (Some(_), Ok(Some(_))) => found.fault(self.seal, word, "was changed"),
            // `refine` may record bytes later.
            (None, Ok(_)) if word == "bytes" => found.note(
                self.seal,
                word,
                "was added after the seal, and is not sealed",
            ),
            (None, Ok(_)) => found.fault(self.seal, word, "was added after the seal"),
        }
    }

    fn rows(&self, store: &dyn Store, record: &RunRecord, found: &mut Findings) {
        let sealed = PART_WORDS.iter().zip(self.parts).skip(FILE_PARTS);
        for ((word, sealed), now) in sealed.zip(parts::of_rows(store, record)) {
            self.compare(word, *sealed, now, found);
        }
        match graph_indexes::broken(store, record) {
            Ok(None) => {}
            Ok(Some(what)) => found.fault(self.seal, "index", what),
            Err(error) => found.fault(self.seal, "index", error_chain(&error)),
        }
    }

    /// The lines of the list of items. Empty if the list is not the sealed one.
    fn sealed_lines(&self, found: &mut Findings) -> BTreeSet<String> {
        let Some(sealed) = self.parts.last().copied().flatten() else {
            return BTreeSet::new();
        };
        let lines = lines_of(self.seal, sealed, found);
        lines.into_iter().collect()
    }

    /// For each fact that the run lost with its content: the note that says so.
    fn forgotten_facts(&self, found: &mut Findings) -> BTreeMap<String, usize> {
        let mut facts = BTreeMap::new();
        for (at, note) in self.forgotten.iter().enumerate() {
            let Subject::Forgot(list) = note.statement.subject else {
                continue;
            };
            for line in lines_of(note, list, found) {
                let digest = line.rsplit(' ').next().unwrap_or_default();
                facts.insert(digest.to_owned(), at);
            }
        }
        facts
    }

    fn items(
        &self,
        sealed: &BTreeSet<String>,
        items: &[Item],
        contents: &mut StoredContents,
        found: &mut Findings,
    ) {
        let now: BTreeMap<&str, &Item> = items
            .iter()
            .map(|item| (item.line.as_str(), item))
            .collect();
        let mut changed: BTreeMap<&str, usize> = BTreeMap::new();
        let forgotten = self.forgotten_facts(found);
        let mut lost = vec![0; self.forgotten.len()];
        for line in sealed {
            let (word, digest) = line.split_once(' ').unwrap_or((line, ""));
            // A content that was not stored may be stored since.
            let learned = format!("stored {digest}");
            let item = now
                .get(line.as_str())
                .or_else(|| (word == "known").then(|| now.get(learned.as_str()))?);
            let Some(item) = item else {
                let is_fact = matches!(word, "stored" | "known");
                if let Some(note) = forgotten.get(digest).filter(|_| is_fact) {
                    lost[*note] += 1;
                    continue;
                }
                let unstored =
                    word == "stored" && now.contains_key(format!("known {digest}").as_str());
                let part = match word {
                    "stored" if unstored => "contents",
                    "stored" | "known" => "facts",
                    "directories" => "directories",
                    _ => "annotations",
                };
                *changed.entry(part).or_default() += 1;
                continue;
            };
            if let Some(content) = item.content.filter(|_| word == "stored")
                && let Some(damage) = contents.damage(&content)
            {
                // The contents' own errors name the content.
                let what = match damage.contains(&content.to_string()) {
                    true => damage,
                    false => format!("content {content}: {damage}"),
                };
                found.fault(self.seal, "contents", what);
            }
        }
        for (note, count) in self.forgotten.iter().zip(lost) {
            let what = match count {
                0 => continue,
                1 => "that of 1 file was removed by `forget` or a limit of the store".to_owned(),
                _ => format!(
                    "those of {count} files were removed by `forget` or a limit of the store"
                ),
            };
            found.removed(note, "contents", what);
        }
        for (part, count) in changed {
            let what = format!("{count} of those that were sealed changed or went");
            found.fault(self.seal, part, what);
        }
    }

    /// The database against the journals that it is filled from.
    fn journals(
        &self,
        examined: &Examined<'_>,
        store: &dyn Store,
        record: &RunRecord,
        journals: &Journals,
        found: &mut Findings,
    ) -> Result<()> {
        let id = record.header.id.as_str();
        let mut differ = |part: &str, journal: &str| {
            let what = format!("the database and {journal} differ: one of them was changed");
            found.fault(self.seal, part, what);
        };
        let mut facts_differ = false;
        let mut unfound = 0;
        for learned in outgoing::learned(examined.home, store, std::slice::from_ref(record))? {
            match learned {
                JournalRecord::Fact(fact) => {
                    let journal = journals.facts.get(&fact.ident.version_id());
                    // A database of a group has the facts of other users, too.
                    let foreign = journal.is_none() && store.is_shared();
                    facts_differ |= !foreign && journal != Some(&fact);
                    unfound += usize::from(!graph_indexes::finds_by_digest(store, &fact)?);
                }
                snapshot => {
                    let bytes = facts::to_bytes(&[snapshot]);
                    if !store.is_shared() && journals.snapshots.get(id) != Some(&bytes) {
                        differ("directories", "facts.log");
                    }
                }
            }
        }
        if facts_differ {
            differ("facts", "facts.log");
        }
        let history = &journals.annotations;
        let label = |label: Label, or: Option<&str>| match history.label(id, label) {
            Some(text) => text.map(str::to_owned),
            None => or.map(str::to_owned),
        };
        let name = label(Label::Name, record.header.name.as_deref());
        let note = label(Label::Note, None);
        if !store.is_shared() && (name != record.name || note != record.note) {
            differ("annotations", "annotations.log");
        }
        let mut newest: BTreeMap<(&str, &str), Option<&str>> = BTreeMap::new();
        for one in history.of_run(id) {
            newest.insert((one.kind.as_str(), one.key.as_str()), one.value.as_deref());
        }
        let is_row = |kind: &str| AnnotationKind::ALL.iter().any(|known| known.word() == kind);
        newest.retain(|(kind, _), value| value.is_some() && is_row(kind));
        let rows = store.annotations(id)?;
        let rows: BTreeMap<(&str, &str), Option<&str>> = rows
            .iter()
            .map(|row| ((row.kind.word(), row.key.as_str()), row.value.as_deref()))
            .collect();
        if rows != newest {
            differ("annotations", "annotations.log");
        }
        if unfound > 0 {
            let what = format!("the index of their digests is wrong for {unfound} of them");
            found.fault(self.seal, "facts", what);
        }
        Ok(())
    }
}

/// The lines of the list behind a seal. Empty if the list is not the sealed one.
fn lines_of(seal: &Seal, sealed: Digest, found: &mut Findings) -> Vec<String> {
    // A run without items has no list.
    let empty = items::digest_of_list([]);
    let lines = match seal.items() {
        Ok(lines) => lines,
        Err(_) if sealed == empty => return Vec::new(),
        Err(error) => {
            found.fault(seal, "items", error_chain(&error));
            return Vec::new();
        }
    };
    if items::digest_of_list(lines.iter().map(String::as_str)) != sealed {
        found.fault(seal, "items", "the list was changed");
        return Vec::new();
    }
    lines
}
