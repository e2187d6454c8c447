//! The objects of a store in a bucket, and their keys.
//!
//! ```text
//! PREFIX/backstory-store                   a line that says that a store is here
//! PREFIX/contents/DIGEST                   an archive with this content
//! PREFIX/runs/ID/files-DIGEST              the stored contents of the run: lines "digest size"
//! PREFIX/runs/ID/notes-DIGEST-DIGEST       an archive with annotations and signatures
//! PREFIX/runs/ID/log-DIGEST-BYTES          an archive with facts, label and log: the run is there
//! ```
//!
//! Invariants:
//!
//! - No object is changed after it was written: its key has the digest of what it is.
//! - The `log` of a run is written last. So what it refers to is there, wherever a push was cut.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use backstory_files::Digest;
use backstory_store::is_run_id;

use crate::{Error, Result, RunEntry};

use super::account::Account;
use super::address::BucketAddress;
use super::curl::{Answer, Curl, Method, Request};
use super::listing::{self, Page};

/// The line that says that a store is here. A later form has another number.
const MARK: &str = "a store of backstory, version 1\n";
const MARK_KEY: &str = "backstory-store";
/// Stands for annotations that several objects have: they are not merged yet.
const SEVERAL: &str = "several";
/// Stands for no annotations, or no signatures, in a key.
const NONE: &str = "none";

/// The objects of one run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RunObjects {
    /// The digest and the bytes of its log.
    pub log: Option<(String, u64)>,
    /// The names of the objects with annotations and signatures.
    pub notes: Vec<String>,
}

/// The objects of a store in a bucket.
pub struct Objects {
    address: BucketAddress,
    curl: Curl,
    /// A directory of this process alone.
    scratch: PathBuf,
}

impl Objects {
    /// `scratch` is a directory of this process alone.
    pub fn new(address: &BucketAddress, account: Account, scratch: &Path) -> Objects {
        Objects {
            address: address.clone(),
            curl: Curl::new(account, scratch),
            scratch: scratch.to_owned(),
        }
    }

    fn request(&self, method: Method, name: &str) -> Request {
        Request {
            method,
            target: format!("/{}", self.address.key(name)),
        }
    }

    /// Checks that a store is here, or marks the place as one.
    pub fn begin(&self, may_make: bool) -> Result<()> {
        let file = self.scratch.join("mark");
        if self.get(MARK_KEY, &file)? {
            let text = fs::read(&file).map_err(Error::io("read", &file))?;
            return match text == MARK.as_bytes() {
                true => Ok(()),
                false => Err(Error::Refused(format!(
                    "a newer backstory made the store at {}: upgrade this one",
                    self.address
                ))),
            };
        }
        // The server names a bucket that does not exist only when it is asked for a list.
        self.page("", "")?;
        if !may_make {
            return Err(Error::Refused(format!(
                "there is no store at {}",
                self.address
            )));
        }
        fs::write(&file, MARK).map_err(Error::io("write", &file))?;
        self.put(&[(MARK_KEY.to_owned(), file)])
    }

    /// Reads an object into a file. Returns whether there is one.
    pub fn get(&self, name: &str, file: &Path) -> Result<bool> {
        let found = self.get_all(&[(name.to_owned(), file.to_owned())])?;
        Ok(found == [true])
    }

    /// Reads objects into files. Returns for each whether there is one.
    pub fn get_all(&self, wanted: &[(String, PathBuf)]) -> Result<Vec<bool>> {
        let requests: Vec<_> = wanted
            .iter()
            .map(|(name, file)| self.request(Method::Get(file.clone()), name))
            .collect();
        let answers = self.curl.make(&requests)?;
        Ok(answers
            .into_iter()
            .map(|answer| answer == Answer::Done)
            .collect())
    }

    /// Writes files as objects.
    pub fn put(&self, files: &[(String, PathBuf)]) -> Result<()> {
        let requests: Vec<_> = files
            .iter()
            .map(|(name, file)| self.request(Method::Put(file.clone()), name))
            .collect();
        match self.curl.make(&requests)?.contains(&Answer::Absent) {
            true => Err(Error::Refused(format!(
                "there is no bucket {}",
                self.address.bucket
            ))),
            false => Ok(()),
        }
    }

    /// Removes objects.
    pub fn remove(&self, names: &[String]) -> Result<()> {
        let requests: Vec<_> = names
            .iter()
            .map(|name| self.request(Method::Delete, name))
            .collect();
        self.curl.make(&requests).map(|_| ())
    }

    /// Returns for each of these contents whether there is an object.
    pub fn has_contents(&self, digests: &[Digest]) -> Result<Vec<bool>> {
        let requests: Vec<_> = digests
            .iter()
            .map(|digest| self.request(Method::Head, &content(digest)))
            .collect();
        let answers = self.curl.make(&requests)?;
        Ok(answers
            .into_iter()
            .map(|answer| answer == Answer::Done)
            .collect())
    }

    /// A page of the names that begin with `prefix` and are behind `after`.
    fn page(&self, prefix: &str, after: &str) -> Result<Page> {
        let after = match after.is_empty() {
            true => String::new(),
            false => self.address.key(after),
        };
        let file = self.scratch.join("list");
        let request = Request {
            method: Method::Get(file.clone()),
            target: listing::query(&self.address.key(prefix), &after),
        };
        self.curl.make(&[request])?;
        let text = fs::read(&file).map_err(Error::io("read", &file))?;
        let mut page = listing::parse(&String::from_utf8_lossy(&text), &after)?;
        let beginning = self.address.key("");
        for key in &mut page.keys {
            *key = key.strip_prefix(&beginning).unwrap_or(key).to_owned();
        }
        Ok(page)
    }

    /// The objects of one run.
    pub fn of_run(&self, run: &str) -> Result<RunObjects> {
        let page = self.page(&format!("runs/{run}/"), "")?;
        let runs = grouped(&page.keys);
        Ok(runs.into_values().next().unwrap_or_default())
    }

    /// The runs behind this one, in the order of their ids: at most `most` of them.
    pub fn runs(&self, after: Option<&str>, most: usize) -> Result<Vec<RunEntry>> {
        listed_runs(after, most, |last| self.page("runs/", last))
    }
}

/// The runs in pages of keys. `page` returns the keys behind one.
fn listed_runs(
    after: Option<&str>,
    most: usize,
    page: impl Fn(&str) -> Result<Page>,
) -> Result<Vec<RunEntry>> {
    // A '0' follows the slash, so all objects of the run are before it.
    let mut last = after.map_or_else(String::new, |run| format!("runs/{run}0"));
    let (mut entries, mut keys) = (Vec::new(), Vec::new());
    loop {
        let next = page(&last)?;
        keys.extend(next.keys);
        last = keys.last().cloned().unwrap_or_default();
        let mut runs = grouped(&keys);
        // The rest of the last run's objects may be in the next page.
        let cut = if next.more { runs.pop_last() } else { None };
        let whole = runs.into_iter();
        entries.extend(whole.filter_map(|(run, objects)| objects.entry(&run)));
        if !next.more || entries.len() >= most {
            entries.truncate(most);
            return Ok(entries);
        }
        keys.retain(|key| cut.as_ref().is_some_and(|(run, _)| is_of(key, run)));
    }
}

/// True for the name of an object of this run.
fn is_of(name: &str, run: &str) -> bool {
    let rest = name
        .strip_prefix("runs/")
        .and_then(|rest| rest.strip_prefix(run));
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// The name of the object of a content.
pub fn content(digest: &Digest) -> String {
    format!("contents/{digest}")
}

/// The name of the list of a run's contents.
pub fn files(run: &str, log: &str) -> String {
    format!("runs/{run}/files-{log}")
}

/// The name of a run's log.
pub fn log(run: &str, digest: &str, bytes: u64) -> String {
    format!("runs/{run}/log-{digest}-{bytes}")
}

/// The name of annotations and signatures, each with the digest that a list of runs has.
pub fn notes(run: &str, annotations: &str, signatures: &str) -> String {
    let word = |digest: &str| if digest.is_empty() { NONE } else { digest }.to_owned();
    format!(
        "runs/{run}/notes-{}-{}",
        word(annotations),
        word(signatures)
    )
}

/// The objects of each run in a list of names. Other names are skipped.
fn grouped(names: &[String]) -> BTreeMap<String, RunObjects> {
    let mut runs: BTreeMap<String, RunObjects> = BTreeMap::new();
    for name in names {
        let Some((run, object)) = name
            .strip_prefix("runs/")
            .and_then(|rest| rest.split_once('/'))
        else {
            continue;
        };
        if !is_run_id(run) {
            continue;
        }
        let objects = runs.entry(run.to_owned()).or_default();
        if object.starts_with("notes-") {
            objects.notes.push(name.clone());
        } else if let Some((digest, bytes)) = object
            .strip_prefix("log-")
            .and_then(|rest| rest.split_once('-'))
            && digest.parse::<Digest>().is_ok()
            && let Ok(bytes) = bytes.parse()
        {
            objects.log.get_or_insert((digest.to_owned(), bytes));
        }
    }
    runs
}

impl RunObjects {
    /// The name of the run's log.
    pub fn log_name(&self, run: &str) -> Option<String> {
        let (digest, bytes) = self.log.as_ref()?;
        Some(log(run, digest, *bytes))
    }

    /// The run as a list has it. `None` if its log is not there (yet).
    pub fn entry(self, run: &str) -> Option<RunEntry> {
        let (digest, bytes) = self.log?;
        let (annotations, signatures) = match self.notes.as_slice() {
            [] => (String::new(), String::new()),
            [only] => digests_of(only),
            _ => (SEVERAL.to_owned(), SEVERAL.to_owned()),
        };
        Some(RunEntry {
            run: run.to_owned(),
            digest,
            bytes,
            annotations,
            signatures,
        })
    }
}

fn digests_of(notes: &str) -> (String, String) {
    let digests = notes
        .rsplit_once("notes-")
        .and_then(|(_, digests)| digests.split_once('-'));
    let word = |digest: &str| {
        if digest == NONE {
            String::new()
        } else {
            digest.to_owned()
        }
    };
    digests.map_or_else(Default::default, |(annotations, signatures)| {
        (word(annotations), word(signatures))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_in_a_list_once_its_log_is_there() {
        let digest = Digest([7; 32]).to_string();
        let mut names = vec![files("aaaa0000", &digest), notes("aaaa0000", "12ab", "")];
        assert!(
            grouped(&names)
                .into_iter()
                .all(|(run, objects)| objects.entry(&run).is_none())
        );
        names.push(log("aaaa0000", &digest, 42));
        names.push("runs/../etc/passwd".to_owned());
        let (run, objects) = grouped(&names).pop_last().unwrap();
        let entry = objects.entry(&run).unwrap();
        assert_eq!((entry.run.as_str(), entry.bytes), ("aaaa0000", 42));
        assert_eq!(
            (entry.annotations.as_str(), entry.signatures.as_str()),
            ("12ab", "")
        );
        assert_eq!(entry.digest, digest);
    }

    #[test]
    fn annotations_of_two_pushes_at_once_differ_from_those_of_each_store() {
        let digest = Digest([7; 32]).to_string();
        let names = [
            notes("aaaa0000", "1", ""),
            notes("aaaa0000", "2", "3"),
            log("aaaa0000", &digest, 1),
        ];
        let (run, objects) = grouped(&names).pop_last().unwrap();
        assert_eq!(objects.notes.len(), 2);
        assert_eq!(objects.entry(&run).unwrap().annotations, SEVERAL);
    }

    #[test]
    fn every_run_is_listed_once_wherever_a_page_ends() {
        let digest = Digest([7; 32]).to_string();
        let run = |number: usize| format!("{number:08}");
        let mut keys: Vec<String> = (0..7)
            .flat_map(|n| {
                [
                    files(&run(n), &digest),
                    log(&run(n), &digest, 1),
                    notes(&run(n), "1", ""),
                ]
            })
            .collect();
        // One was pushed in part.
        keys.retain(|key| *key != log(&run(3), &digest, 1));
        keys.sort_unstable();
        for size in 1..=keys.len() {
            let page = |last: &str| {
                let behind: Vec<&String> = keys.iter().filter(|key| key.as_str() > last).collect();
                Ok(Page {
                    more: behind.len() > size,
                    keys: behind.into_iter().take(size).cloned().collect(),
                })
            };
            for most in 1..=8 {
                let (mut found, mut last) = (Vec::new(), None::<String>);
                loop {
                    let entries = listed_runs(last.as_deref(), most, page).unwrap();
                    let Some(end) = entries.last() else { break };
                    last = Some(end.run.clone());
                    assert!(entries.iter().all(|entry| entry.annotations == "1"));
                    found.extend(entries.into_iter().map(|entry| entry.run));
                }
                let wanted: Vec<String> = [0, 1, 2, 4, 5, 6].map(run).into();
                assert_eq!(found, wanted, "pages of {size}, lists of {most}");
            }
        }
    }
}
