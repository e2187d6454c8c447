//! The files of a run: the user's own first, then those of packages and of the system. The files
//! that the run changed stand before those that it read, and these before those that it looked up.

use backstory_ordering::SmallSort;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_graph::model::Certainty;
use backstory_query::answer::{Access, FileUse};
use backstory_query::files;
use backstory_store::Store;
use backstory_vocabulary::{Tone, Word};
use backstory_workflow::ownership::Ownership;
use backstory_workflow::shell::quote;

use super::run::title_and_facts;
use crate::Result;
use crate::destination::Destination;
use crate::page::{Cell, Page, Row};

pub fn page(store: &dyn Store, run: &str) -> Result<Page> {
    let (details, title, mut facts) = title_and_facts(store, run)?;
    let mut ownership = Ownership::new(Path::new("/"), [&*details.summary.cwd]);
    let all = files(store, run)?.into_iter();
    let (mut own, mut others): (Vec<FileUse>, Vec<FileUse>) =
        all.partition(|file| ownership.is_own(&file.path));
    own.sort_small_by_key(interest);
    others.sort_small_by_key(interest);
    facts.push(Cell::new(
        Tone::Quiet,
        format!(
            "{} own files, {} of packages and the system",
            own.len(),
            others.len()
        ),
    ));
    let own = own.iter().map(|file| row(file, Tone::File));
    let others = others.iter().map(|file| row(file, Tone::System));
    Ok(Page {
        title,
        facts,
        columns: vec!["access", "certainty", "path"],
        rows: own.chain(others).collect(),
    })
}

/// The order in which a reader looks for files.
fn interest(file: &FileUse) -> u8 {
    let did = |these: &[Access]| file.access.iter().any(|access| these.contains(access));
    match () {
        () if did(&[Access::Write, Access::Delete, Access::Rename, Access::Link]) => 0,
        () if did(&[Access::Read, Access::Exec, Access::Meta]) => 1,
        () => 2,
    }
}

fn row(file: &FileUse, tone: Tone) -> Row {
    let access: Vec<&str> = file.access.iter().map(|access| access.word()).collect();
    let tone_of_certainty = match file.certainty {
        Certainty::Seen => Tone::Quiet,
        Certainty::Possible => Tone::Warn,
    };
    let path = Path::new(OsStr::from_bytes(&file.path));
    Row {
        cells: vec![
            Cell::new(Tone::Ink, access.join(" ")),
            Cell::new(tone_of_certainty, file.certainty.word()),
            Cell::new(tone, quote(&file.path)),
        ],
        opens: Some(Destination::File(path.to_owned())),
    }
}
