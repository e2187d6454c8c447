//! The history of a file, the newest event first.

use std::path::Path;

use backstory_query::{PathChange, PathEvent, history};
use backstory_store::Store;
use backstory_vocabulary::Tone;
use backstory_workflow::shell::line;
use backstory_workflow::shell::quote;
use std::os::unix::ffi::OsStrExt;

use crate::Result;
use crate::destination::Destination;
use crate::moments::moment;
use crate::page::{Cell, Page, Row};

pub fn page(store: &dyn Store, path: &Path) -> Result<Page> {
    let events = history(store, path)?;
    let mut rows = Vec::new();
    for event in events.iter().rev() {
        let run = event.run.map(|key| store.run_id(key)).transpose()?;
        let run = run.flatten();
        let command = match event.activity {
            Some(activity) => line(&store.activity(activity)?.argv),
            None => String::new(),
        };
        let (change, tone) = words(event);
        rows.push(Row {
            cells: vec![
                Cell::new(Tone::Quiet, moment(event.time)),
                Cell::new(tone, change),
                Cell::new(Tone::Quiet, run.as_deref().unwrap_or("")),
                Cell::new(Tone::Step, command),
            ],
            opens: run.map(Destination::RunFiles),
        });
    }
    let present = match path.symlink_metadata() {
        Ok(meta) => Cell::new(Tone::Quiet, format!("{} bytes now", meta.len())),
        Err(_) => Cell::new(Tone::Warn, "does not exist now"),
    };
    Ok(Page {
        title: quote(path.as_os_str().as_bytes()),
        facts: vec![present],
        columns: vec!["time", "change", "run", "by"],
        rows,
    })
}

fn words(event: &PathEvent) -> (String, Tone) {
    use PathChange::{
        Changed, ChangedUnseen, Deleted, Found, GoneUnseen, Made, Metadata, MovedUnseen,
        RenamedFrom, RenamedTo,
    };
    match &event.change {
        Made => ("made".to_owned(), Tone::Good),
        Changed => ("changed".to_owned(), Tone::Ink),
        RenamedFrom(from) => (format!("renamed from {}", quote(from)), Tone::Ink),
        RenamedTo(to) => (format!("renamed to {}", quote(to)), Tone::Ink),
        Deleted => ("deleted".to_owned(), Tone::Bad),
        Metadata => ("metadata changed".to_owned(), Tone::Quiet),
        Found => ("found".to_owned(), Tone::Ink),
        ChangedUnseen => ("changed outside of any run".to_owned(), Tone::Warn),
        MovedUnseen { from, .. } => (
            format!("moved from {} outside of any run", quote(from)),
            Tone::Warn,
        ),
        GoneUnseen => ("gone, outside of any run".to_owned(), Tone::Warn),
    }
}
