//! `contents`: writes the stored content of a file.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_contents::{Contents, Error as ContentsError};
use backstory_export::unfinished::UnfinishedFile;
use backstory_files::Digest;
use backstory_query as query;
use backstory_query::subject as versions;
use backstory_store::facts::Availability;
use backstory_store::{ContentFacts, EntityKey, GraphStore};

use super::Outcome;
use crate::args::export::ContentsArgs;
use crate::contents_writer;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain};
use crate::index::Busy;
use crate::subject::{self, PathNotation};
use crate::text::paths::shown;

/// Stores pending contents now. A comparison or a replay needs them, and they are otherwise stored
/// in the background.
pub fn store_contents(current: &mut CurrentStore) {
    if let Err(error) =
        contents_writer::bring_up_to_date(&current.home, &mut current.store, Busy::Wait)
    {
        complain(&format!("cannot store all contents: {}", chain(&error)));
    }
}

/// Writes a content to a file or to standard output.
pub fn run(args: ContentsArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    let mut content: Box<dyn Read> = match source(&current, &args)? {
        ContentSource::Present(path) => Box::new(open(&path)?),
        ContentSource::Stored(digest) => {
            Box::new(Contents::open(&current.home.contents_dir())?.read(&digest)?)
        }
        ContentSource::Version(key) => {
            let digest = match digest_of_version(&current, key) {
                // Contents are stored in the background. A user who asks for one waits for it. They
                // may have been stored since the first look.
                Err(_) => {
                    if !are_stored(&current, key)? {
                        store_contents(&mut current);
                    }
                    digest_of_version(&current, key)?
                }
                Ok(found) => found,
            };
            match Contents::open(&current.home.contents_dir())?.read(&digest) {
                // The store that had it has lost it, but the file may still be this version.
                Err(error @ ContentsError::Elsewhere { .. }) => {
                    Box::new(present(&current, key)?.ok_or(error)?)
                }
                opened => Box::new(opened?),
            }
        }
    };
    match &args.output {
        None => {
            let mut out = io::stdout().lock();
            io::copy(&mut content, &mut out)?;
            out.flush()?;
        }
        Some(path) => to_file(&mut content, path)?,
    }
    Ok(0)
}

/// Where the requested content is.
enum ContentSource {
    /// In the store of contents.
    Stored(Digest),
    /// It is that of a recorded version.
    Version(EntityKey),
    /// In the file itself: no run has recorded this version.
    Present(PathBuf),
}

fn source(current: &CurrentStore, args: &ContentsArgs) -> Result<ContentSource, Failure> {
    let store = &current.store;
    let (path, run) = match subject::notation(current, &args.what)? {
        PathNotation::AtMoment(path, time) => {
            let event = subject::event_at(current, &path, time)?;
            return Ok(match event.version {
                Some(version) => ContentSource::Version(version),
                None => ContentSource::Present(path),
            });
        }
        PathNotation::OfRun(path, run) => (path, Some(run)),
        PathNotation::Plain(path) => (path, args.run.clone()),
    };
    match versions::newest(store, &path, run.as_deref()) {
        Ok(version) => Ok(ContentSource::Version(version)),
        Err(error) => match subject::content(current, &args.what)? {
            Some(digest) => Ok(ContentSource::Stored(digest)),
            None => Err(error.into()),
        },
    }
}

/// The file of a version, if it is still that version.
fn present(current: &CurrentStore, version: EntityKey) -> Result<Option<File>, Failure> {
    let entity = current.store.entity(version)?;
    let path = Path::new(OsStr::from_bytes(&entity.path));
    Ok(entity
        .ident
        .and_then(|ident| query::open_version(path, &ident)))
}

/// False if the contents of the version's run are not stored yet.
fn are_stored(current: &CurrentStore, version: EntityKey) -> Result<bool, Failure> {
    let run = current.store.run_id(version.run())?.unwrap_or_default();
    Ok(current.store.directory_snapshot(&run)?.is_some())
}

/// The digest of a version whose content is stored.
pub fn digest_of_version(current: &CurrentStore, version: EntityKey) -> Result<Digest, Failure> {
    let entity = current.store.entity(version)?;
    let path = shown(&entity.path);
    match query::known(&current.store, entity.ident.as_ref())? {
        Some((Some(digest), held)) if held.is_stored() => Ok(digest),
        Some((_, Availability::Package(package))) => Err(Failure::not_found(format!(
            "the content of {path} is not stored: it belongs to the package {} {} ({}); install the package, or record with --self-contained",
            package.name, package.version, package.manager
        ))),
        Some((_, Availability::Missing(why))) => Err(Failure::not_found(format!(
            "the content of {path} is not stored: {why}"
        ))),
        _ => {
            let why = query::why_unknown(&current.store, version)?;
            Err(Failure::not_found(format!(
                "the content of {path} is not stored: {why}"
            )))
        }
    }
}

/// Why the content of a version with this name is not available, and the words that say what helps.
pub fn why_absent(
    current: &CurrentStore,
    version: EntityKey,
    name: &str,
) -> (String, &'static str) {
    let why = match digest_of_version(current, version) {
        Err(failure) => failure.line,
        Ok(_) => format!("the content of {name} is too large, or is damaged in the store"),
    };
    let help = match () {
        () if why.contains("--contents=off") => "; the next run can have --contents=lazy or =all",
        () if why.contains("--") => "",
        () => "; `record --contents=all` stores every version before it changes",
    };
    (why, help)
}

fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|error| {
        Failure::not_found(format!("cannot read {}: {}", path.display(), chain(&error)))
    })
}

/// Writes a temporary file and renames it, so that the file is complete or absent. A pipe or a
/// terminal is written to in place.
fn to_file(object: &mut dyn Read, path: &Path) -> Result<(), Failure> {
    let fail = |error: io::Error| {
        Failure::not_found(format!(
            "cannot write {}: {}",
            path.display(),
            chain(&error)
        ))
    };
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        let mut file = OpenOptions::new().write(true).open(path).map_err(fail)?;
        return io::copy(object, &mut file).map(drop).map_err(fail);
    }
    whole_file(path, |file| io::copy(object, file).map(drop)).map_err(fail)
}

/// Makes a file for its owner only, which is complete or absent.
pub fn whole_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let path = std::path::absolute(path)?.with_file_name(name);
    let mut beside = UnfinishedFile::make(path.parent().unwrap_or(Path::new("/")))?;
    write(beside.file.as_file_mut())?;
    beside.file.as_file().sync_data()?;
    beside.file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}
