//! Opens a store for one question, and finds the version of a file that the question means.
//!
//! A store is opened anew for each question, in a process of its own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_contents::Contents;
use backstory_eventlog::event::Time;
use backstory_query as query;
use backstory_query::PathChange;
use backstory_query::subject as versions;
use backstory_store::facts::Availability;
use backstory_store::{
    self as store, EngineControl, EntityKey, GraphStore, Home, Store, open_store,
};

use crate::failure::Failure;
use crate::question::FileChoice;

/// An open store, with all that is known about contents, tags and metrics.
pub struct OpenedStore {
    /// Its directory.
    pub home: Home,
    /// Its graph and facts.
    pub store: Box<dyn Store>,
}

/// Where a content is.
pub enum ContentPlace {
    /// A recorded version.
    Version(EntityKey),
    /// The file as it is now, which no run has recorded.
    Present(PathBuf),
}

impl OpenedStore {
    /// Opens the store in a directory.
    pub fn open(directory: &Path) -> Result<OpenedStore, Failure> {
        let home = Home::open_to_read(directory)?;
        let mut opened = open_store(&home)?;
        opened.leave_log()?;
        // A store that may only be read answers with what it has.
        let _ = store::catch_up(&home, &mut opened);
        let _ = store::catch_up_annotations(&home, &mut opened);
        Ok(OpenedStore {
            home,
            store: opened,
        })
    }

    /// The runs that are still being recorded, by id.
    pub fn recording(&self) -> Result<Vec<String>, Failure> {
        Ok(self.home.unfinished()?)
    }

    /// The id of the run that a user names; by default the latest.
    pub fn run(&self, wanted: Option<&str>) -> Result<String, Failure> {
        match query::resolve(&self.store, wanted) {
            Ok(run) => Ok(run),
            Err(error) => {
                let recording = self.recording()?;
                match recording
                    .iter()
                    .find(|run| wanted.is_none_or(|wanted| *run == wanted))
                {
                    Some(run) => Err(Failure::not_found(format!(
                        "run {run} is still being recorded: processes of it are running"
                    ))),
                    None => Err(error.into()),
                }
            }
        }
    }

    /// The version that was there at a moment, or the newest; with `everywhere`, the same version
    /// in all runs.
    pub fn versions(
        &self,
        choice: &FileChoice,
        everywhere: bool,
    ) -> Result<Vec<EntityKey>, Failure> {
        if let Some(time) = choice.at {
            return match self.at(&choice.path.0, time)? {
                ContentPlace::Version(version) => Ok(vec![version]),
                ContentPlace::Present(path) => {
                    Ok(vec![versions::newest(&self.store, &path, None)?])
                }
            };
        }
        let (path, run) = self.notation(choice)?;
        let run = run.as_deref();
        match everywhere {
            false => Ok(vec![versions::newest(&self.store, &path, run)?]),
            true if run.is_some() => Ok(versions::newest_everywhere(&self.store, &path, run)?),
            true => Ok(versions::all(&self.store, &path, None)?),
        }
    }

    /// Where the content of a version is.
    pub fn content(&self, choice: &FileChoice) -> Result<ContentPlace, Failure> {
        match choice.at {
            Some(time) => self.at(&choice.path.0, time),
            None => {
                let (path, run) = self.notation(choice)?;
                let version = versions::newest(&self.store, &path, run.as_deref())?;
                Ok(ContentPlace::Version(version))
            }
        }
    }

    /// The path and the run of a choice. `PATH@RUN` names a run, unless a file has that name.
    pub fn notation(&self, choice: &FileChoice) -> Result<(PathBuf, Option<String>), Failure> {
        if let Some(run) = &choice.run {
            return Ok((choice.path.0.clone(), Some(self.run(Some(run))?)));
        }
        let bytes = choice.path.0.as_os_str().as_bytes();
        let at = bytes
            .iter()
            .rposition(|&byte| byte == b'@')
            .filter(|&at| at > 0);
        let run = at.and_then(|at| std::str::from_utf8(&bytes[at + 1..]).ok());
        let (Some(at), Some(run)) = (at, run) else {
            return Ok((choice.path.0.clone(), None));
        };
        if self.is_literal(&choice.path.0)? {
            return Ok((choice.path.0.clone(), None));
        }
        let path = PathBuf::from(OsStr::from_bytes(&bytes[..at]));
        match self.run(Some(run)) {
            Ok(run) => Ok((path, Some(run))),
            Err(failure) if self.is_literal(&path)? => Err(failure),
            Err(_) => Ok((choice.path.0.clone(), None)),
        }
    }

    /// True if a file of this name exists or was recorded.
    fn is_literal(&self, path: &Path) -> Result<bool, Failure> {
        if path.symlink_metadata().is_ok() {
            return Ok(true);
        }
        match versions::newest(&self.store, path, None) {
            Ok(_) => Ok(true),
            Err(query::Error::Store(error)) => Err(error.into()),
            Err(_) => Ok(false),
        }
    }

    fn at(&self, path: &Path, time: Time) -> Result<ContentPlace, Failure> {
        let name = path.display();
        let Some(event) = versions::at(&self.store, path, time)? else {
            return Err(Failure::not_found(format!(
                "no version of {name} is known from before that moment; `backstory log -- {name}` lists all"
            )));
        };
        if event.change == PathChange::GoneUnseen || !event.change.leaves_file() {
            return Err(Failure::not_found(format!(
                "{name} was not there at that moment; `backstory log -- {name}` lists its versions"
            )));
        }
        Ok(match event.version {
            Some(version) => ContentPlace::Version(version),
            None => ContentPlace::Present(path.to_owned()),
        })
    }

    /// The stored content of a version.
    pub fn read(&self, version: EntityKey) -> Result<Vec<u8>, Failure> {
        use std::io::Read;
        let entity = self.store.entity(version)?;
        let path = String::from_utf8_lossy(&entity.path).into_owned();
        let digest = match query::known(&self.store, entity.ident.as_ref())? {
            Some((Some(digest), held)) if held.is_stored() => digest,
            Some((_, Availability::Package(package))) => {
                return Err(Failure::not_found(format!(
                    "the content of {path} is not stored: it belongs to the package {} {} ({}); \
                     install the package, or record with --self-contained",
                    package.name, package.version, package.manager
                )));
            }
            Some((_, Availability::Missing(why))) => {
                return Err(Failure::not_found(format!(
                    "the content of {path} is not stored: {why}"
                )));
            }
            _ => {
                let why = query::why_unknown(&self.store, version)?;
                return Err(Failure::not_found(format!(
                    "the content of {path} is not stored: {why}"
                )));
            }
        };
        let mut bytes = Vec::new();
        let mut object = Contents::open(&self.home.contents_dir())?.read(&digest)?;
        object.read_to_end(&mut bytes).map_err(|error| {
            Failure::not_found(format!("cannot read the content of {path}: {error}"))
        })?;
        Ok(bytes)
    }
}
