//! Finds secrets in environment variables and arguments.
//!
//! Invariant: the value of a matching variable never reaches the log. This holds for the header and
//! for the environments of executed programs. The same holds for arguments of the forms that
//! `arguments.rs` knows.

mod arguments;
#[cfg(test)]
mod tests;

use arguments::Reading;
use backstory_abi::{self as abi, CallerIds, op};
use backstory_eventlog::chunk::{ChunkView, SkippedRecords};
use backstory_eventlog::record::RawRecord;
use backstory_redaction as redaction;
use backstory_wildcards::matches;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Names that are always secret.
const SECRETS: &[&str] = &[
    "*TOKEN*",
    "*SECRET*",
    "*PASSWORD*",
    "*PASSWD*",
    "*_KEY",
    "*CREDENTIAL*",
    "AWS_*",
];

/// Most threads whose strings continue in their next record. A program that fakes more only damages
/// its own record. The threads of one chunk can come on top: their states are set back together.
const READERS: usize = 4096;

/// Operations that have to do with strings that may be secret. `EXEC` ends a list of arguments.
const MAY_BE_SECRET: &[u16] = &[op::ENV, op::ARGS, op::EXEC, op::VALUES];

/// The owner of records: process and thread.
type Owner = (u32, u32);

/// The patterns of one run, and the secrets that are being read.
#[derive(Debug, Default)]
pub struct Secrets {
    more: Vec<String>,
    /// Threads whose last `ENV` record ended within the value of a secret.
    within: HashSet<Owner>,
    /// The state of the next argument, for threads whose `ARGS` records are being read.
    reading: HashMap<Owner, Reading>,
}

/// The strings of an owner that continue in its next record.
#[derive(Debug, Clone, Copy)]
struct OwnerState {
    within: bool,
    reading: Option<Reading>,
}

/// A place between two records of a chunk, and the states of owners there. Only owners of records
/// in the chunk have one, so the places of a chunk take no more memory than its records.
#[derive(Debug, Clone)]
struct ReadingPlace {
    /// The offset in the chunk.
    offset: usize,
    owners: HashMap<Owner, OwnerState>,
}

/// Where the reader of secrets can begin in a chunk.
#[derive(Debug, Clone)]
pub(crate) struct ReadingPlaces {
    /// Before the first record.
    first: ReadingPlace,
    /// Behind the records that were whole when the log got them.
    last: ReadingPlace,
}

impl Default for ReadingPlaces {
    /// Those of a chunk that was never read.
    fn default() -> ReadingPlaces {
        let first = ReadingPlace {
            offset: abi::Chunk::SIZE,
            owners: HashMap::new(),
        };
        ReadingPlaces {
            last: first.clone(),
            first,
        }
    }
}

impl Secrets {
    /// The built-in patterns and these.
    pub fn new(more: &[String]) -> Secrets {
        Secrets {
            more: more.to_vec(),
            ..Secrets::default()
        }
    }

    /// The built-in patterns, and the names that were secret when this environment was redacted.
    pub(crate) fn known_from(redacted: &[Vec<u8>]) -> Secrets {
        let of = |entry: &Vec<u8>| {
            let name =
                name(entry).filter(|name| redaction::is_value_mark(&entry[name.len() + 1..]))?;
            std::str::from_utf8(name).ok().map(str::to_owned)
        };
        Secrets {
            more: redacted.iter().filter_map(of).collect(),
            ..Secrets::default()
        }
    }

    /// The value of a variable or parameter with this name, or a mark if the name is secret.
    pub(crate) fn value(&self, name: &str, value: &str) -> String {
        let length = name.len() + 1;
        let entry = self.redact(format!("{name}={value}").as_bytes());
        String::from_utf8_lossy(&entry[length.min(entry.len())..]).into_owned()
    }

    /// An environment with the values of secrets replaced.
    pub fn environment(&self, all: &[Vec<u8>]) -> Vec<Vec<u8>> {
        all.iter().map(|entry| self.redact(entry)).collect()
    }

    /// A command with the secrets among its arguments replaced.
    pub fn command(&self, all: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut reading = Reading::default();
        let mut next = |argument: &Vec<u8>| {
            let (kept, then) = self.argument(argument, reading, false);
            reading = then;
            kept
        };
        all.iter().map(&mut next).collect()
    }

    /// Undoes a call of [`Secrets::scrub_from`] that led from the places `before` to `places`. Only
    /// owners that the chunk did not have before are set back: the next call sets the others.
    ///
    /// One gap is left. Another chunk of the same owner may be scrubbed before the next call, and
    /// have room on the disk that this one had not. If a secret begins here and goes on there, its
    /// rest is not redacted.
    pub(crate) fn return_before(&mut self, places: &ReadingPlaces, before: &ReadingPlaces) {
        for (owner, state) in &places.first.owners {
            if !before.first.owners.contains_key(owner) {
                self.set_state(*owner, *state);
            }
        }
    }

    /// As [`Secrets::scrub`], of a chunk that was scrubbed before with fewer records: only behind a
    /// place before which all records are as they were. `news`: the offset of the first record that
    /// is new or has changed. Returns the places from which the next call can go on.
    pub(crate) fn scrub_from(
        &mut self,
        chunk: &mut [u8],
        places: &ReadingPlaces,
        news: usize,
    ) -> ReadingPlaces {
        let ReadingPlaces { mut first, last } = places.clone();
        let from = match last.offset <= news {
            true => last,
            false => first.clone(),
        };
        let owners = owners(chunk, from.offset);
        for &owner in &owners {
            // The strings of an owner that is new here can come from another chunk. Those of an
            // owner that the chunk has already could, too, if its records in two chunks took turns
            // within one string. The recorder writes the records of a string in one go.
            let known = from.owners.get(&owner).copied();
            let state = known.unwrap_or_else(|| self.state(owner));
            first.owners.entry(owner).or_insert(state);
            self.set_state(owner, state);
        }
        let begin = from.offset;
        let mut last = ReadingPlace {
            offset: end_of_whole(chunk, begin),
            ..from
        };
        self.scrub_records(chunk, begin, last.offset);
        // The strings of other owners belong to other chunks, and may end there.
        for &owner in &owners {
            last.owners.insert(owner, self.state(owner));
        }
        self.scrub_records(chunk, last.offset, chunk.len());
        ReadingPlaces { first, last }
    }

    fn state(&self, owner: Owner) -> OwnerState {
        OwnerState {
            within: self.within.contains(&owner),
            reading: self.reading.get(&owner).copied(),
        }
    }

    fn set_state(&mut self, owner: Owner, state: OwnerState) {
        match state.within {
            true => self.within.insert(owner),
            false => self.within.remove(&owner),
        };
        match state.reading {
            Some(reading) => self.reading.insert(owner, reading),
            None => self.reading.remove(&owner),
        };
    }

    /// Replaces the values of secrets in the `ENV`, `ARGS` and `VALUES` records of a chunk. No
    /// record changes its position or size.
    pub(crate) fn scrub(&mut self, chunk: &mut [u8]) {
        self.scrub_records(chunk, abi::Chunk::SIZE, chunk.len());
    }

    /// Scrubs the records that begin between two offsets.
    fn scrub_records(&mut self, chunk: &mut [u8], mut at: usize, until: usize) {
        while let Some(change) = next_change(chunk, at, until) {
            blank(&mut chunk[change.gap]);
            let Some((op, place)) = change.record else {
                return;
            };
            at = place.end;
            if MAY_BE_SECRET.contains(&op) {
                self.scrub_record(change.owner, op, &mut chunk[place]);
            }
        }
    }

    fn scrub_record(&mut self, owner: Owner, op: u16, record: &mut [u8]) {
        let Some(raw) = RawRecord::parse(record) else {
            return;
        };
        let owner = raw
            .caller
            .map_or(owner, |caller: CallerIds| (caller.pid, caller.tid));
        let strings: Vec<&[u8]> = raw.list().collect();
        let clean = match op {
            op::ENV => self.clean_environment(owner, &strings, raw.more()),
            op::ARGS => self.clean_arguments(owner, &strings, raw.more()),
            op::VALUES => strings
                .iter()
                .map(|value| self.clean_value(value))
                .collect(),
            _ => {
                self.reading.remove(&owner);
                return;
            }
        };
        let mut clean: Vec<u8> = clean
            .into_iter()
            .flat_map(|string| [string, vec![0]].concat())
            .collect();
        let body = record.len() - raw.body.len();
        // A hostile program may have left out the last NUL.
        clean.truncate(raw.body.len());
        let told = raw.head.aux != 0;
        record[body..].fill(0);
        record[body..body + clean.len()].copy_from_slice(&clean);
        if told {
            let mut head = abi::Record::read(record).unwrap_or_default();
            head.aux = clean.len() as u32;
            record[..abi::Record::SIZE].copy_from_slice(&head.to_bytes());
        }
    }

    /// Redacts an environment. With `more`, the last entry continues in the thread's next record.
    fn clean_environment(&mut self, owner: Owner, strings: &[&[u8]], more: bool) -> Vec<Vec<u8>> {
        let within = self.within.remove(&owner);
        let mut clean: Vec<Vec<u8>> = strings.iter().map(|string| self.redact(string)).collect();
        if let Some(first) = clean.first_mut().filter(|_| within) {
            first.clear();
        }
        let last = strings.last().filter(|_| more);
        if last.is_some_and(|last| within && strings.len() == 1 || self.is_secret(last)) {
            if self.within.len() >= READERS {
                self.within.clear();
            }
            self.within.insert(owner);
        }
        clean
    }

    /// Redacts the value of a parameter: by the parameter's name, as a variable, or by the form of
    /// its text, as an argument.
    fn clean_value(&self, value: &[u8]) -> Vec<u8> {
        if self.is_secret(value) {
            return self.redact(value);
        }
        let text = name(value).map_or(0, |name| name.len() + 1);
        let text = text + usize::from(value.get(text) == Some(&b'"'));
        let (kept, _) = self.argument(&value[text..], Reading::default(), false);
        [&value[..text], &kept].concat()
    }

    /// Redacts arguments. With `more`, the last argument continues in the thread's next record.
    fn clean_arguments(&mut self, owner: Owner, strings: &[&[u8]], more: bool) -> Vec<Vec<u8>> {
        let mut reading = self.reading.remove(&owner).unwrap_or_default();
        let mut clean = Vec::with_capacity(strings.len());
        for (index, string) in strings.iter().enumerate() {
            let (kept, next) = self.argument(string, reading, more && index + 1 == strings.len());
            clean.push(kept);
            reading = next;
        }
        if reading != Reading::default() {
            if self.reading.len() >= READERS {
                self.reading.clear();
            }
            self.reading.insert(owner, reading);
        }
        clean
    }

    /// True if an entry, or the beginning of one, names a secret.
    fn is_secret(&self, entry: &[u8]) -> bool {
        let Some(name) = name(entry) else {
            return false;
        };
        let upper = name.to_ascii_uppercase();
        SECRETS.iter().any(|p| matches(p.as_bytes(), &upper))
            || self.more.iter().any(|p| matches(p.as_bytes(), name))
    }

    /// The redacted entry. It is never longer than the original, so that it fits in its position.
    fn redact(&self, entry: &[u8]) -> Vec<u8> {
        let Some(name) = name(entry).filter(|_| self.is_secret(entry)) else {
            return entry.to_vec();
        };
        let length = entry.len() - name.len() - 1;
        [&entry[..=name.len()], &redaction::value_mark(length)].concat()
    }
}

/// A place in a chunk that may have to change.
struct Change {
    owner: Owner,
    /// The bytes before the record, which are no whole record.
    gap: Range<usize>,
    /// The operation and the place of the record. `None` behind the last one.
    record: Option<(u16, Range<usize>)>,
}

/// The first such place between two offsets. Most records are passed over: only those whose
/// operation is in [`MAY_BE_SECRET`] change, and what lies between records.
fn next_change(chunk: &[u8], mut at: usize, until: usize) -> Option<Change> {
    let (head, view) = ChunkView::new(chunk)?;
    let owner = (head.pid, head.tid);
    while at < until {
        let Some((found, record)) = view.next(at, &mut SkippedRecords::default()) else {
            let gap = at..chunk.len();
            let record = None;
            return Some(Change { owner, gap, record });
        };
        let end = found + usize::from(record.size);
        if found > at || MAY_BE_SECRET.contains(&record.op) {
            let gap = at..found;
            let record = Some((record.op, found..end));
            return Some(Change { owner, gap, record });
        }
        at = end;
    }
    None
}

/// The owners of the records in a chunk, from an offset on.
fn owners(chunk: &[u8], mut at: usize) -> HashSet<Owner> {
    let mut owners = HashSet::new();
    if let Some((head, view)) = ChunkView::new(chunk) {
        owners.insert((head.pid, head.tid));
        let mut skipped = SkippedRecords::default();
        while let Some((found, record)) = view.next(at, &mut skipped) {
            at = found + usize::from(record.size);
            let caller = RawRecord::parse(&chunk[found..at]).and_then(|raw| raw.caller);
            owners.extend(caller.map(|caller| (caller.pid, caller.tid)));
        }
    }
    owners
}

/// The offset of the first record from `at` on that is not whole, or the end of the records.
fn end_of_whole(chunk: &[u8], mut at: usize) -> usize {
    let Some((_, view)) = ChunkView::new(chunk) else {
        return at;
    };
    while let Some((found, record)) = view.next(at, &mut SkippedRecords::default()) {
        if found != at || record.state != abi::DONE {
            break;
        }
        at += usize::from(record.size);
    }
    at
}

/// A value that is stored beside the record, or a mark if its name matches the patterns of secrets
/// or one of `more`.
pub fn redacted_value(name: &str, value: &str, more: &[String]) -> String {
    Secrets::new(more).value(name, value)
}

/// Blanks the bytes between records, which a thread was writing when it died. No reader understands
/// them, but they may hold part of an environment. The beginnings of records stay, so that torn
/// records are counted as before.
fn blank(torn: &mut [u8]) {
    let mut at = 0;
    while let Some(mut record) = torn.get(at..).and_then(abi::Record::read) {
        let size = usize::from(record.size);
        let whole = size.is_multiple_of(8) && size >= abi::Record::SIZE && at + size <= torn.len();
        if !whole {
            break;
        }
        (record.fd, record.arg, record.result, record.aux) = (0, 0, 0, 0);
        torn[at..at + abi::Record::SIZE].copy_from_slice(&record.to_bytes());
        torn[at + abi::Record::SIZE..at + size].fill(0);
        at += size;
    }
    torn[at..].fill(0);
}

/// The name in `NAME=value`.
fn name(entry: &[u8]) -> Option<&[u8]> {
    entry
        .iter()
        .position(|&b| b == b'=')
        .map(|end| &entry[..end])
}
