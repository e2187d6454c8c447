//! The plan of a replay: the file system, the command, and the expected results.
//!
//! In: a store, a run and the user's [`Deviations`]. Out: a [`Plan`], or an error that names all
//! missing files. Invariant: a plan has everything that its execution needs, so that the execution
//! uses neither the store's graph nor the record.
//!
//! [`initial_state`] finds what was at each path before the run, [`builder`] where its content is
//! available.

mod builder;
mod content;
mod initial_state;
mod machine;
mod occupied;
mod standard_input;

use std::collections::{BTreeSet, HashMap, HashSet, hash_map};
use std::path::PathBuf;

use backstory_eventlog::event::Bytes;
use backstory_eventlog::run::RunHeader;
use backstory_files::Digest;
use backstory_query::{self as query, ContentRole};
use backstory_redaction as redaction;
use backstory_store::Store;
use backstory_store::facts::Availability;
use serde::{Deserialize, Serialize};

use crate::{Error, Lack, Result};

pub use standard_input::Stdin;

/// The user's deviations from the recorded run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deviations {
    /// Replaced arguments by number; 1 is the first behind the command.
    pub args: Vec<(usize, Bytes)>,
    /// Variables with values, which add to or replace the recorded ones.
    pub env: Vec<(Bytes, Bytes)>,
    /// Files that the run read, each with a file of this machine that replaces it.
    pub inputs: Vec<(PathBuf, PathBuf)>,
    /// Another command; empty for the recorded one.
    pub command: Vec<Bytes>,
    /// Contents that the store lacks come from this machine, and files that the run did not touch
    /// are visible.
    pub allow_host: bool,
    /// The replay uses this machine's network; otherwise it has a loopback device only.
    pub network: bool,
    /// The command gets its arguments and variables from a deep record, which has their secrets.
    pub is_fed: bool,
}

impl Deviations {
    /// True if no deviation can affect the outputs.
    pub fn is_faithful(&self) -> bool {
        self.args.is_empty()
            && self.env.is_empty()
            && self.inputs.is_empty()
            && self.command.is_empty()
    }

    /// The same use of this machine, without any deviation that can affect the outputs.
    pub fn without_changes(&self) -> Deviations {
        Deviations {
            allow_host: self.allow_host,
            network: self.network,
            is_fed: self.is_fed,
            ..Deviations::default()
        }
    }
}

/// The source of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntrySource {
    /// A directory.
    Directory,
    /// A symbolic link to this target.
    Link(Vec<u8>),
    /// A file with this content of the store.
    Stored([u8; 32]),
    /// The first bytes of a content of the store, up to this size.
    StoredPart([u8; 32], u64),
    /// This machine's file, mounted read-only.
    Mounted(Vec<u8>),
    /// A copy of this machine's file.
    Copied(Vec<u8>),
    /// A file of this size whose content no process read: zeros.
    Zeros(u64),
    /// A hard link to the file at this path.
    HardLink(Vec<u8>),
}

/// An entry of the file system before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEntry {
    /// Absolute path.
    pub path: Vec<u8>,
    /// EntrySource.
    pub what: EntrySource,
    /// Permission bits.
    pub mode: u32,
    /// Last modification, ns since 1970; 0 if it is not known.
    pub mtime: i64,
}

/// A file that the run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedOutput {
    /// Absolute path.
    pub path: Bytes,
    /// The path with its links resolved.
    pub real: Vec<u8>,
    /// The digest of its content, or why it is not known.
    pub digest: std::result::Result<Digest, String>,
}

/// Uses of files that a run's log has, and the store does not.
#[derive(Debug, Clone, Default)]
pub struct LoggedUses {
    /// The absolute directories that processes changed into.
    pub entered: BTreeSet<Bytes>,
    /// Device and inode of the files that processes had open for writing.
    pub writable: HashSet<(u64, u64)>,
    /// The absolute paths of directories that processes could not remove or replace because these
    /// had entries.
    pub occupied: BTreeSet<Bytes>,
}

/// The plan of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The run's id.
    pub run: String,
    /// Program and arguments.
    pub argv: Vec<Vec<u8>>,
    /// Environment.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Current directory.
    pub cwd: Vec<u8>,
    /// User id inside the replay.
    pub uid: u32,
    /// Group id inside the replay.
    pub gid: u32,
    /// Host name inside the replay.
    pub host: String,
    /// Entries of the file system; directories and links come first.
    pub entries: Vec<PlanEntry>,
    /// Listed directories, each with its names in the recorded order.
    pub orders: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    /// The directory of the contents.
    pub contents: PathBuf,
    /// The run read below `/sys`.
    pub sys: bool,
    /// See [`Deviations::network`].
    pub network: bool,
    /// See [`Deviations::allow_host`].
    pub allow_host: bool,
    /// Paths that did not exist before the run, and must not come from this machine.
    pub absent: std::collections::BTreeSet<Vec<u8>>,
    /// Paths that the run made.
    pub made: BTreeSet<Vec<u8>>,
    /// Standard input.
    pub stdin: Stdin,
    /// The recorded outputs.
    #[serde(skip)]
    pub expected: Vec<ExpectedOutput>,
    /// Paths, with links resolved, of files that the run made and that were gone or replaced at its
    /// end.
    pub gone: Vec<Bytes>,
    /// Paths that the run looked for in vain.
    #[serde(skip)]
    pub missing: std::collections::BTreeSet<Vec<u8>>,
    /// Sentences for the user.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// Plans a replay. `contents`: the directory of the store's contents.
///
/// # Errors
///
/// [`Error::Lacking`] names all missing files; other errors say why the run cannot be replayed.
pub fn plan(
    store: &dyn Store,
    contents: PathBuf,
    run: &str,
    deviations: &Deviations,
    logged: &LoggedUses,
) -> Result<Plan> {
    let record = store
        .run(run)?
        .ok_or_else(|| query::Error::NoRun(run.to_owned()))?;
    let header = &record.header;
    if record.end.not_started.is_some() {
        return Err(Error::NeverRan(run.to_owned()));
    }
    let off = !header.modes.stores_contents();
    if off && !deviations.allow_host {
        return Err(Error::NoContents(run.to_owned()));
    }
    let held = query::contents(store, run)?;
    let mut notes = Vec::new();
    let first = initial_state::before(store, &record, &held, logged)?;
    let stdin = standard_input::of(store, header, &mut notes)?;
    let mut builder = builder::PlanBuilder::new(store, &contents, deviations, &header.cwd)?;
    builder.places(&first);
    builder.files(&first)?;
    builder.interpreters(&first);
    builder.unwinders(&first);
    builder.occupy(&first);
    let expected = expected(&held, header, &builder);
    let gone = gone(&held, &builder);
    let orders = builder.orders();
    let (entries, lacking, more) = builder.finish();
    notes.extend(more);
    if !lacking.is_empty() {
        return Err(Error::Lacking {
            run: run.to_owned(),
            what: Lack(lacking),
        });
    }
    if !record.end.incomplete_because.is_empty() || record.end.lost > 0 {
        let why = record.end.incomplete_because.first();
        let why = why.map_or("operations were lost", |why| why);
        notes.push(format!(
            "run {run} is not complete ({why}), and what it lacks is missing here, too: record it with the guard, or give --allow-host"
        ));
    }
    let sys = first
        .paths
        .iter()
        .any(|path| path.path.starts_with(b"/sys/"));
    Ok(Plan {
        run: run.to_owned(),
        argv: arguments(&header.command, deviations)?,
        env: environment(&header.environment, deviations, &mut notes),
        cwd: header.cwd.clone(),
        uid: header.uid,
        gid: group(header.uid),
        host: header.machine.host.clone(),
        entries,
        orders,
        contents,
        sys,
        network: deviations.network,
        allow_host: deviations.allow_host,
        absent: match deviations.allow_host {
            true => first
                .made
                .iter()
                .chain(&first.missing)
                .map(|path| path.to_vec())
                .collect(),
            false => BTreeSet::new(),
        },
        made: first.made.iter().map(|path| path.to_vec()).collect(),
        stdin,
        expected,
        gone,
        missing: first.missing.iter().map(|path| path.to_vec()).collect(),
        notes,
    })
}

/// The group of the replay, which is not recorded. The user's own runs have the user's group; for
/// others, any number will do.
fn group(uid: u32) -> u32 {
    match rustix::process::geteuid().as_raw() == uid {
        true => rustix::process::getegid().as_raw(),
        false => uid,
    }
}

fn arguments(recorded: &[Vec<u8>], deviations: &Deviations) -> Result<Vec<Vec<u8>>> {
    let mut argv = recorded.to_vec();
    if !deviations.command.is_empty() {
        argv = deviations.command.iter().map(|arg| arg.to_vec()).collect();
    }
    let count = argv.len().saturating_sub(1);
    for (number, value) in &deviations.args {
        match argv.get_mut(*number).filter(|_| *number > 0) {
            Some(arg) => *arg = value.to_vec(),
            None => {
                return Err(Error::NoArgument {
                    number: *number,
                    count,
                });
            }
        }
    }
    match argv
        .iter()
        .position(|argument| redaction::has_mark(argument))
    {
        Some(number) if !deviations.is_fed => Err(Error::RedactedArgument { number }),
        _ => Ok(argv),
    }
}

fn environment(
    recorded: &[Vec<u8>],
    deviations: &Deviations,
    notes: &mut Vec<String>,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut env: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for pair in recorded {
        let Some(at) = pair
            .iter()
            .position(|&byte| byte == b'=')
            .filter(|&at| at > 0)
        else {
            continue;
        };
        let (name, value) = (&pair[..at], &pair[at + 1..]);
        let given = deviations.env.iter().any(|(given, _)| **given == *name);
        if redaction::is_value_mark(value) && !given {
            if !deviations.is_fed {
                notes.push(format!(
                    "the value of {name} is not in the record, so it is not set: give it with --env {name} (yours) or --env {name}=VALUE",
                    name = String::from_utf8_lossy(name)
                ));
            }
        } else if !given {
            env.push((name.to_vec(), value.to_vec()));
        }
    }
    env.extend(
        deviations
            .env
            .iter()
            .map(|(name, value)| (name.to_vec(), value.to_vec())),
    );
    env
}

fn gone(held: &query::RunContents, builder: &builder::PlanBuilder<'_>) -> Vec<Bytes> {
    let gone = held
        .files
        .iter()
        .filter(|file| file.role == ContentRole::Intermediate);
    gone.map(|file| builder.real(&file.path).into()).collect()
}

fn expected(
    held: &query::RunContents,
    header: &RunHeader,
    builder: &builder::PlanBuilder<'_>,
) -> Vec<ExpectedOutput> {
    use backstory_graph::model::EntityKind;
    let mut outputs: Vec<ExpectedOutput> = Vec::new();
    let mut places: HashMap<&Bytes, usize> = HashMap::new();
    let mut further = Vec::new();
    let callers = |path: &[u8]| header.descriptors.iter().any(|(_, target)| target == path);
    for file in &held.files {
        let plain = file.kind == EntityKind::File && file.role == ContentRole::Output;
        // The file that received the command's own output belongs to the caller.
        if !plain || callers(&file.path) || !initial_state::is_plain(&file.path) {
            continue;
        }
        let digest = match (&file.digest, &file.availability) {
            (Some(digest), _) => Ok(*digest),
            (None, Availability::Missing(why)) => Err(why.clone()),
            (None, _) => Err("its content was not read".to_owned()),
        };
        // The output is the last version of a path. At most one version has `last`, but names may
        // join.
        match places.entry(&file.path) {
            hash_map::Entry::Occupied(known) => outputs[*known.get()].digest = digest.clone(),
            hash_map::Entry::Vacant(place) => {
                place.insert(outputs.len());
                outputs.push(ExpectedOutput {
                    real: builder.real(&file.path),
                    path: file.path.clone(),
                    digest: digest.clone(),
                });
            }
        }
        further.extend(file.stayed.iter().map(|name| (name, digest.clone())));
    }
    // A file that was written by one name exists under its other names, too.
    let mut reals: HashSet<_> = outputs.iter().map(|known| known.real.clone()).collect();
    for (path, digest) in further {
        let real = builder.real(path);
        if initial_state::is_plain(path) && !callers(path) && reals.insert(real.clone()) {
            outputs.push(ExpectedOutput {
                real,
                path: path.clone(),
                digest,
            });
        }
    }
    outputs
}

#[cfg(test)]
mod tests;
