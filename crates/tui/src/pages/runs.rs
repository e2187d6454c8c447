//! All runs, the newest first.

use backstory_query::{RunFilter, runs_where};
use backstory_store::Store;
use backstory_vocabulary::Tone;
use backstory_workflow::shell::line;

use super::run::ending;
use crate::Result;
use crate::destination::Destination;
use crate::moments::{ago, duration, now};
use crate::page::{Cell, Page, Row};

pub fn page(store: &dyn Store) -> Result<Page> {
    let (runs, now) = (runs_where(store, &RunFilter::default())?, now());
    let rows = runs.iter().map(|run| {
        let lasted = run.ended.map(|ended| duration(ended - run.started));
        Row {
            cells: vec![
                Cell::new(Tone::Quiet, &run.id),
                Cell::new(Tone::Ink, ago(run.started, now)),
                ending(run),
                Cell::new(Tone::Quiet, lasted.unwrap_or_default()),
                Cell::new(Tone::Accent, run.name.clone().unwrap_or_default()),
                Cell::new(Tone::Step, line(&run.command)),
            ],
            opens: Some(Destination::RunFiles(run.id.clone())),
        }
    });
    let rows: Vec<Row> = rows.collect();
    Ok(Page {
        title: match rows.len() {
            1 => "1 run".to_owned(),
            count => format!("{count} runs"),
        },
        facts: Vec::new(),
        columns: vec!["run", "started", "ended", "duration", "name", "command"],
        rows,
    })
}
