//! Finds the two sides that a user wants to compare.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use backstory_files::{Digest, regular};
use backstory_query::subject as versions;
use backstory_query::{self as query, PathChange, PathEvent};
use backstory_replay::diff::{DiffSubject, DiffVerdict};
use backstory_store::{EntityKey, GraphStore};

use crate::args::lineage::DiffArgs;
use crate::commands::contents::why_absent;
use crate::commands::path_log::run_of;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::subject::{self, PathNotation};
use crate::text::paths::shown;
use crate::undo_note::is_put_back;
use crate::version_contents::VersionContents;

/// One side of the comparison.
pub enum ComparedSide {
    /// A run, by its id.
    Run(String),
    /// A version of a file.
    Version(ComparedVersion),
}

/// A version of a file.
pub struct ComparedVersion {
    /// The file's name, as the user wrote it.
    pub name: Vec<u8>,
    /// The version. `None`: the file as it is now, which no run has recorded.
    pub version: Option<EntityKey>,
    /// The run that made the version, or first used it.
    pub run: Option<String>,
    /// The file as it is now has the content of a recorded version, by `undo` or `redo`.
    is_put_back: bool,
    path: PathBuf,
}

impl ComparedSide {
    /// The subject for the engine. `None` for a version that no run knows.
    pub fn subject(&self) -> Option<DiffSubject> {
        match self {
            ComparedSide::Run(run) => Some(DiffSubject::Run(run.clone())),
            ComparedSide::Version(version) => Some(DiffSubject::Version(version.version?)),
        }
    }

    /// The run of the side.
    pub fn run(&self) -> Option<&str> {
        match self {
            ComparedSide::Run(run) => Some(run),
            ComparedSide::Version(version) => version.run.as_deref(),
        }
    }
}

impl ComparedVersion {
    fn of(current: &CurrentStore, path: &Path, version: EntityKey) -> Result<Self, Failure> {
        Ok(ComparedVersion {
            name: path.as_os_str().as_encoded_bytes().to_vec(),
            version: Some(version),
            run: current.store.run_id(version.run())?,
            is_put_back: false,
            path: path.to_owned(),
        })
    }

    fn of_event(current: &CurrentStore, path: &Path, event: &PathEvent) -> Result<Self, Failure> {
        match event.version {
            Some(version) => ComparedVersion::of(current, path, version),
            None => Ok(ComparedVersion {
                name: path.as_os_str().as_encoded_bytes().to_vec(),
                version: None,
                run: None,
                is_put_back: is_put_back(current.home.dir(), path),
                path: path.to_owned(),
            }),
        }
    }

    /// Its content, if that is available.
    pub fn read(&self, contents: &VersionContents<'_>) -> Result<Option<Vec<u8>>, Failure> {
        match self.version {
            Some(version) => contents.read(version),
            None => Ok(regular::read(&self.path).ok()),
        }
    }
}

/// Whether two versions have the same content, by their digests. A digest is often known although
/// the content is not stored.
pub fn verdict_by_digest(
    current: &CurrentStore,
    a: &ComparedSide,
    b: &ComparedSide,
) -> Result<DiffVerdict, Failure> {
    let (ComparedSide::Version(a), ComparedSide::Version(b)) = (a, b) else {
        return Ok(DiffVerdict::Unknown);
    };
    Ok(match (a.digest(current)?, b.digest(current)?) {
        (Some(old), Some(new)) if old == new => DiffVerdict::Same,
        (Some(_), Some(_)) => DiffVerdict::Different,
        _ => DiffVerdict::Unknown,
    })
}

impl ComparedVersion {
    /// The digest of its content, if that is known.
    fn digest(&self, current: &CurrentStore) -> Result<Option<Digest>, Failure> {
        let Some(version) = self.version else {
            return Ok(subject::digest_of_file(&self.path));
        };
        let ident = current.store.entity(version)?.ident;
        let known = query::known(&current.store, ident.as_ref())?;
        Ok(known.and_then(|(digest, _)| digest))
    }

    /// A version that no run knows, in words.
    pub fn now(&self) -> &'static str {
        match self.is_put_back {
            true => "as it is now; `undo` or `redo` put this content back",
            false => "as it is now; no recorded run made this version",
        }
    }

    /// Why its content is not available, and what helps.
    pub fn why_absent(&self, current: &CurrentStore) -> String {
        let name = shown(&self.name);
        let Some(version) = self.version else {
            return format!("{name} cannot be read as it is now");
        };
        let run = self.run.as_deref().unwrap_or("an unknown run");
        let (why, help) = why_absent(current, version, &name);
        format!("{why} (version of run {run}){help}")
    }
}

/// Both sides, as the arguments name them.
pub fn of(
    current: &CurrentStore,
    args: &DiffArgs,
) -> Result<(ComparedSide, ComparedSide), Failure> {
    match (&args.b, args.within.as_slice()) {
        (Some(b), []) => Ok((side(current, &args.a)?, side(current, b)?)),
        (None, [x, y]) => {
            let path = Path::new(&args.a);
            let version = |run: &String| -> Result<ComparedSide, Failure> {
                let run = current.run(Some(run))?;
                let version = versions::newest(&current.store, path, Some(&run))?;
                Ok(ComparedSide::Version(ComparedVersion::of(
                    current, path, version,
                )?))
            };
            Ok((version(x)?, version(y)?))
        }
        _ => match side(current, &args.a)? {
            ComparedSide::Version(_) if !is_run(current, &args.a) => {
                latest_two(current, Path::new(&args.a))
            }
            _ => Err(Failure::misuse(
                "the second run is missing: give two runs, a file, two versions PATH@RUN, or PATH --in RUN RUN (see `backstory diff --help`)",
            )),
        },
    }
}

fn is_run(current: &CurrentStore, wanted: &OsStr) -> bool {
    let notation = subject::notation(current, wanted);
    !matches!(notation, Ok(PathNotation::Plain(_)))
}

/// A run, a version of a file, or the newest version of a file.
fn side(current: &CurrentStore, wanted: &OsStr) -> Result<ComparedSide, Failure> {
    let path = Path::new(wanted);
    let name = wanted.to_str().filter(|name| !name.contains('/'));
    let not_a_run = match name.map(|name| current.run(Some(name))) {
        Some(Ok(run)) => return Ok(ComparedSide::Run(run)),
        Some(Err(failure)) => Some(failure),
        None => None,
    };
    let version = match subject::notation(current, wanted)? {
        PathNotation::OfRun(path, run) => {
            let version = versions::newest(&current.store, &path, Some(&run))?;
            ComparedVersion::of(current, &path, version)?
        }
        PathNotation::AtMoment(path, time) => {
            let event = subject::event_at(current, &path, time)?;
            ComparedVersion::of_event(current, &path, &event)?
        }
        PathNotation::Plain(_) => match versions::newest(&current.store, path, None) {
            Ok(version) => ComparedVersion::of(current, path, version)?,
            Err(error) => match not_a_run {
                Some(failure) if !path.exists() => return Err(failure),
                _ => return Err(error.into()),
            },
        },
    };
    Ok(ComparedSide::Version(version))
}

/// The last version of a file, and the last one before it that had another content. If one run made
/// all versions, as a mount does, they are compared with each other.
fn latest_two(
    current: &CurrentStore,
    path: &Path,
) -> Result<(ComparedSide, ComparedSide), Failure> {
    let events = query::history(&current.store, path)?;
    let mut states: Vec<&PathEvent> = Vec::new();
    let leaves = events
        .iter()
        .filter(|event| event.change.leaves_file() && event.change != PathChange::Metadata);
    for event in leaves {
        // Of the versions that one run made, the last counts.
        let same_run = |last: &&PathEvent| {
            last.run == event.run && last.activity.is_some() && event.activity.is_some()
        };
        if states.last().is_some_and(same_run) {
            states.pop();
        }
        states.push(event);
    }
    let digest = |event: &PathEvent| -> Result<_, Failure> {
        match (event.version, event.ident) {
            (None, _) => Ok(subject::digest_of_file(path)),
            (Some(_), ident) => {
                let known = query::known(&current.store, ident.as_ref())?;
                Ok(known.and_then(|(digest, _)| digest))
            }
        }
    };
    let Some((mut last, earlier)) = states.split_last() else {
        return Err(query::Error::NotFound(path.to_owned()).into());
    };
    let content = digest(last)?;
    let mut other = None;
    for event in earlier.iter().rev() {
        if content.is_none() || digest(event)? != content {
            other = Some(event);
            break;
        }
        // The run that introduced the content made the difference.
        last = event;
    }
    let made = states.iter().filter(|event| event.activity.is_some());
    if other.is_none()
        && made.count() == 1
        && let Some(both) = of_one_run(current, path, content)?
    {
        return Ok(both);
    }
    let (first, last) = match (other, earlier.last()) {
        (Some(other), _) => (other, last),
        (None, Some(previous)) => (previous, &states[states.len() - 1]),
        (None, None) => {
            let run = run_of(current, last)?.unwrap_or_default();
            return Err(Failure::not_found(format!(
                "only one version of {} is known (run {run}); `backstory of {0}` says where it is from",
                path.display()
            )));
        }
    };
    let version = |event| ComparedVersion::of_event(current, path, event);
    Ok((
        ComparedSide::Version(version(first)?),
        ComparedSide::Version(version(last)?),
    ))
}

/// The last two contents of a file, although one run made both. `None` if the last one that is
/// known is not that of the newest version.
fn of_one_run(
    current: &CurrentStore,
    path: &Path,
    newest: Option<Digest>,
) -> Result<Option<(ComparedSide, ComparedSide)>, Failure> {
    let known = query::content_states(&current.store, path)?.known;
    let [.., first, last] = &known[..] else {
        return Ok(None);
    };
    if newest != Some(last.digest) {
        return Ok(None);
    }
    let version = |version| ComparedVersion::of(current, path, version).map(ComparedSide::Version);
    Ok(Some((version(first.version)?, version(last.version)?)))
}
