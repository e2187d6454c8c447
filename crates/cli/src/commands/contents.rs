//! `contents`: writes the stored content of a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use backstory_contents::{Contents, Object};
use backstory_export::unfinished::UnfinishedFile;
use backstory_files::Digest;
use backstory_query as query;
use backstory_query::answer::{Node, Scope};
use backstory_store::facts::Availability;

use super::Outcome;
use crate::args::export::ContentsArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain};
use crate::text::paths::shown;

/// Writes a content to a file or to standard output.
pub fn run(args: ContentsArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let digest = match args.what.to_str().and_then(|text| text.parse().ok()) {
        Some(digest) => digest,
        None => of_path(&current, &args)?,
    };
    let contents = Contents::open(&current.home.contents_dir())?;
    let mut object = contents.read(&digest)?;
    match &args.output {
        None => {
            let mut out = io::stdout().lock();
            io::copy(&mut object, &mut out)?;
            out.flush()?;
        }
        Some(path) => to_file(&mut object, path)?,
    }
    Ok(0)
}

/// The digest of the newest version of a path.
fn of_path(current: &CurrentStore, args: &ContentsArgs) -> Result<Digest, Failure> {
    let scope = Scope {
        depth: Some(0),
        run: args.run.clone(),
        ..Scope::default()
    };
    let lineage = query::ancestry(&current.store, Path::new(&args.what), &scope)?;
    let Some(Node::Entity { path, ident, .. }) = lineage.nodes.first() else {
        return Err(query::Error::NotFound(args.what.clone().into()).into());
    };
    let path = shown(path);
    match query::known(&current.store, ident.as_ref())? {
        Some((Some(digest), held)) if held.is_stored() => Ok(digest),
        Some((_, Availability::Package(package))) => Err(Failure::not_found(format!(
            "the content of {path} is not stored: it belongs to the package {} {} ({}); install the package, or record with --self-contained",
            package.name, package.version, package.manager
        ))),
        Some((_, Availability::Missing(why))) => Err(Failure::not_found(format!(
            "the content of {path} is not stored: {why}"
        ))),
        _ => Err(Failure::not_found(format!(
            "the content of {path} is unknown: it was recorded with --contents=off, or it is not stored yet \
             (`backstory index --wait` stores it now)"
        ))),
    }
}

/// Writes a temporary file and renames it, so that the file is complete or absent. A pipe or a
/// terminal is written to in place.
fn to_file(object: &mut Object, path: &Path) -> Result<(), Failure> {
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

impl From<backstory_contents::Error> for Failure {
    fn from(error: backstory_contents::Error) -> Failure {
        Failure::not_found(chain(&error))
    }
}
