//! The gaps of an incident of a deep run.
//!
//! In: the incident's parts. Out: sentences.

use std::collections::BTreeSet;

use crate::deep_run::{DeepRun, Meant};
use crate::left::MOST_FILES;
use crate::model::{Precision, SceneRequest};
use crate::words::counted;
use backstory_ordering::SmallSort;

/// Most requests that one sentence names.
const MOST_NAMED: usize = 10;

/// Facts that were found beside the calls of the incident.
pub struct Found {
    /// Files that only the graph has.
    pub names_of_graph: bool,
    /// The list of files is full.
    pub many_files: bool,
    /// Programs without a deep record were started.
    pub shallow_programs: bool,
}

/// The sentences about what is not known.
pub fn limits(
    run: &DeepRun<'_>,
    meant: &Meant,
    request: Option<&SceneRequest>,
    found: &Found,
) -> Vec<String> {
    let mut limits = Vec::new();
    let mut say = |is_so: bool, sentence: String| {
        if is_so {
            limits.push(sentence);
        }
    };
    let own = run
        .requests
        .iter()
        .find(|one| Some(one.id) == meant.request);
    say(
        found.names_of_graph && own.is_some_and(|own| run.has_others_beside(own)),
        "Renames and removals are those of the process at that time. Other requests were served \
         then, too."
            .to_owned(),
    );
    say(
        found.many_files,
        format!("Only the first {MOST_FILES} files are listed."),
    );
    say(
        found.shallow_programs,
        "Programs without a deep record were started. Their files are in `backstory files`."
            .to_owned(),
    );
    say(
        request.is_none(),
        "The thread that acted worked on no connection, and its process served no request then."
            .to_owned(),
    );
    say(
        request.is_some_and(|one| one.sent.shown.is_empty() && one.sent.length > 0),
        "The record has only digests of what was sent: `record --deep --outputs full` keeps the \
         bytes."
            .to_owned(),
    );
    if meant.precision == Precision::Time {
        say(true, by_time(run, meant));
    }
    say(
        !run.log.damage().is_none(),
        "The deep log is cut or damaged. Later calls may be missing.".to_owned(),
    );
    limits
}

/// How sure a request is that was found by its time.
fn by_time(run: &DeepRun<'_>, meant: &Meant) -> String {
    if !meant.others.is_empty() {
        return read_together(run, &meant.others);
    }
    let mut text = "The act is of a thread that worked on no connection, or of a call that the \
                    deep log does not have. This request was served at that moment."
        .to_owned();
    let all = run.requests.iter();
    let served = all.filter(|one| run.is_served_at(one, meant.time)).count();
    let others = served.saturating_sub(1);
    if others > 0 {
        let others = counted(others, "other request was", "other requests were");
        text.push_str(&format!(" {others} served then, too."));
    }
    text
}

/// The requests that an event loop had read together with this one, before the act.
fn read_together(run: &DeepRun<'_>, others: &BTreeSet<usize>) -> String {
    let place = |id: &usize| run.requests.iter().position(|one| one.id == *id);
    let numbers = others.iter().filter_map(place).map(|at| at + 1);
    let mut numbers: Vec<usize> = numbers.collect();
    numbers.sort_small();
    let named: Vec<String> = numbers
        .iter()
        .take(MOST_NAMED)
        .map(usize::to_string)
        .collect();
    let noun = match numbers.len() {
        1 => "request",
        _ => "requests",
    };
    let more = match numbers.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "The thread had read several requests before the act, in turns of its event loop. It may \
         have acted for {noun} {}{more}, too.",
        named.join(", ")
    )
}
