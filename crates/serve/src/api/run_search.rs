//! Which runs a list shows, and in which order. In: parameters. Out: runs of the store and runs in
//! progress.

use backstory_ordering::SmallSort;
use std::cmp::Ordering;
use std::collections::HashSet;

use backstory_query::answer::RunSummary;
use backstory_query::{self as query, FilePattern, RunFilter, TagPattern, TextPattern};
use backstory_workflow::shell;

use super::run_row::RunState;
use crate::params::Params;
use crate::problem::Answer;
use crate::readers::Reading;
use crate::site::Site;

/// The parameters that select runs.
pub const FILTERS: [&str; 12] = [
    "text", "command", "file", "name", "note", "host", "job", "status", "complete", "since",
    "until", "tag",
];

/// The orders of a list.
pub const ORDERS: [&str; 7] = [
    "started",
    "seconds",
    "name",
    "command",
    "processes",
    "files_read",
    "files_written",
];

/// Conditions on runs.
pub struct RunSearch {
    text: Option<String>,
    note: Option<WordPattern>,
    name: Option<WordPattern>,
    host: Option<WordPattern>,
    job: Option<WordPattern>,
    command: Option<WordPattern>,
    status: Option<&'static str>,
    complete: Option<bool>,
    /// Times and tags, which the terminal's `log` has, too.
    rest: RunFilter,
    file: Option<FilePattern>,
}

impl RunSearch {
    /// Reads the conditions. A relative file is looked for in any directory.
    pub fn new(params: &Params) -> Answer<RunSearch> {
        let pattern = |key| params.text(key)?.map(WordPattern::new).transpose();
        let tags = params.texts("tag")?;
        let tags = tags.iter().map(|text| {
            let (key, value) = match text.split_once('=') {
                Some((key, value)) => (key, Some(TextPattern::new(value)?)),
                None => (text.as_str(), None),
            };
            let key = key.to_owned();
            Ok(TagPattern { key, value })
        });
        let file = match params.text("file")? {
            Some(file) if file.starts_with('/') || !file.contains('/') => Some(file.to_owned()),
            Some(file) => Some(format!("/**/{file}")),
            None => None,
        };
        Ok(RunSearch {
            text: params.text("text")?.map(str::to_lowercase),
            note: pattern("note")?,
            name: pattern("name")?,
            host: pattern("host")?,
            job: pattern("job")?,
            command: pattern("command")?,
            status: params.word("status", &["ok", "failed", "running", "unknown"])?,
            complete: params.flag("complete")?,
            rest: RunFilter {
                since: params.time("since")?,
                until: params.time("until")?,
                tags: tags.collect::<Answer<_>>()?,
                ..RunFilter::default()
            },
            file: file.map(|file| FilePattern::new(&file, "/")).transpose()?,
        })
    }

    /// The runs that meet the conditions: those in progress, then the newest.
    pub fn find(&self, site: &Site, reading: &Reading<'_>) -> Answer<Vec<RunSummary>> {
        let stored = site.runs.read(reading)?;
        let users = match &self.file {
            Some(file) => Some(users(reading, file)?),
            None => None,
        };
        let uses = |run: &RunSummary| users.as_ref().is_none_or(|users| users.contains(&run.id));
        // A run may have ended between the two lists.
        let ids: HashSet<&str> = stored.iter().map(|run| run.id.as_str()).collect();
        let mut found = site.running();
        found.retain(|run| !ids.contains(run.id.as_str()));
        found.retain(|run| self.file.is_none() && self.accepts(run));
        found.extend(
            stored
                .iter()
                .filter(|run| self.accepts(run) && uses(run))
                .cloned(),
        );
        Ok(found)
    }

    fn accepts(&self, run: &RunSummary) -> bool {
        let is = |pattern: &Option<WordPattern>, text: Option<&str>| match pattern {
            Some(pattern) => text.is_some_and(|text| pattern.matches(text)),
            None => true,
        };
        let state = match RunState::of(run) {
            RunState::Ok => "ok",
            RunState::Failed => "failed",
            RunState::Running => "running",
            RunState::Unknown => "unknown",
        };
        self.status.is_none_or(|wanted| wanted == state)
            && self
                .complete
                .is_none_or(|wanted| wanted == run.complete && !run.running)
            && self.rest.accepts(run)
            && is(&self.name, run.name.as_deref())
            && is(&self.note, run.note.as_deref())
            && is(&self.host, Some(&run.host))
            && is(
                &self.job,
                run.job_rank.as_ref().and_then(|place| place.job.as_deref()),
            )
            && self
                .command
                .as_ref()
                .is_none_or(|one| one.matches_command(run))
            && self.text.as_ref().is_none_or(|text| mentions(run, text))
    }
}

/// The ids of the runs that used such a file.
fn users(reading: &Reading<'_>, file: &FilePattern) -> Answer<HashSet<String>> {
    let filter = RunFilter {
        file: Some(file.clone()),
        ..RunFilter::default()
    };
    let runs = query::runs_where(reading.store, &filter)?;
    Ok(runs.into_iter().map(|run| run.id).collect())
}

/// True if the text, in lower case, is anywhere in the summary.
pub fn mentions(run: &RunSummary, text: &str) -> bool {
    let has = |part: &str| part.to_lowercase().contains(text);
    let tag = |(key, value): &(String, String)| has(&format!("{key}={value}"));
    run.id.starts_with(text)
        || has(&shell::line(&run.command))
        || run.name.as_deref().is_some_and(has)
        || run.note.as_deref().is_some_and(has)
        || has(&run.host)
        || has(&String::from_utf8_lossy(&run.cwd))
        || run.tags.iter().any(tag)
}

/// A part of a text in any case, or a glob of the whole text.
struct WordPattern {
    part: String,
    glob: Option<TextPattern>,
}

impl WordPattern {
    fn new(text: &str) -> Answer<WordPattern> {
        let glob = text.contains(['*', '?', '[']);
        Ok(WordPattern {
            part: text.to_lowercase(),
            glob: glob.then(|| TextPattern::new(text)).transpose()?,
        })
    }

    fn matches(&self, text: &str) -> bool {
        match &self.glob {
            Some(glob) => glob.matches(text),
            None => text.to_lowercase().contains(&self.part),
        }
    }

    fn matches_command(&self, run: &RunSummary) -> bool {
        match &self.glob {
            Some(glob) => glob.matches_command(run.command.iter().map(|word| &**word)),
            None => self.matches(&shell::line(&run.command)),
        }
    }
}

/// Sorts a list. The newest run comes first among equals.
pub fn sort(runs: &mut [RunSummary], by: &str, ascending: bool) {
    let length = |run: &RunSummary| run.ended.map(|ended| ended - run.started);
    let order = |a: &RunSummary, b: &RunSummary| match by {
        "seconds" => length(a).cmp(&length(b)),
        "name" => a.name.cmp(&b.name),
        "command" => a.command.cmp(&b.command),
        "processes" => a.processes.cmp(&b.processes),
        "files_read" => a.files_read.cmp(&b.files_read),
        "files_written" => a.files_written.cmp(&b.files_written),
        _ => a.started.cmp(&b.started),
    };
    runs.sort_small_by(|a, b| {
        let wanted = match order(a, b) {
            order if ascending => order,
            order => order.reverse(),
        };
        let newest = || b.started.cmp(&a.started).then_with(|| a.id.cmp(&b.id));
        match wanted {
            Ordering::Equal => newest(),
            other => other,
        }
    });
}
