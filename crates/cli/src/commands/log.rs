//! `log`: lists runs, the newest first, or prints the log of one.

use std::io::Write;
use std::path::Path;

use backstory_eventlog::Reason;
use backstory_eventlog::event::Time;
use backstory_eventlog::job_rank::JobRank;
use backstory_eventlog::{self as eventlog, Log};
use backstory_query::answer::RunSummary;
use backstory_query::{self as query, FilePattern, RunFilter, TagPattern, TextPattern};
use backstory_store::Home;

use super::path_log;
use super::run_summary::{ending, fields as summary_fields};
use super::{Outcome, answer, here};
use crate::args::search::{LogArgs, RunChoice};
use crate::checkout;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain, one_line};
use crate::index;
use crate::json::{self, Value};
use crate::text::line::{Line, columns};
use crate::text::shell;
use crate::text::style::{Role, Style};
use crate::text::when;

/// Prints the runs that meet the conditions, or one run's log.
pub fn run(args: LogArgs, store: Option<&Path>) -> Outcome {
    if let Some(run) = &args.raw {
        return raw(run, store);
    }
    let filter = filter(&args.which)?;
    if let Some(path) = &args.path {
        return path_log::run(path, filter, args.json, store);
    }
    let current = CurrentStore::open(store)?;
    let runs = match args.running {
        true => running(&current.home, &filter),
        false => query::runs_where(&current.store, &filter)?,
    };
    let look = Look::of_stdout();
    answer(|out| match args.json {
        true => json::lines(
            out,
            runs.iter().map(|run| Value::Object(summary_fields(run))),
        ),
        false => {
            let mut group = RunGroup::Alone;
            runs.iter().try_for_each(|run| {
                let before = std::mem::replace(&mut group, RunGroup::of(run));
                if let Some(heading) = group.heading(run).filter(|_| group != before) {
                    writeln!(out, "{}", look.style.paint(Role::Dim, &heading))?;
                }
                writeln!(out, "{}", line(run, &look))
            })
        }
    })?;
    if !args.running {
        mention_the_rest(&current.home);
    }
    Ok(0)
}

/// The conditions as the query takes them.
pub fn filter(which: &RunChoice) -> Result<RunFilter, Failure> {
    let pattern = |text: &Option<String>| text.as_deref().map(TextPattern::new).transpose();
    let here = here();
    let base = String::from_utf8_lossy(&here);
    let file = which.file.as_deref();
    Ok(RunFilter {
        since: which.since,
        until: which.until,
        failed: which.failed,
        command: pattern(&which.command)?,
        host: pattern(&which.host)?,
        job: pattern(&which.job)?,
        name: pattern(&which.name)?,
        file: file.map(|file| FilePattern::new(file, &base)).transpose()?,
        tags: which
            .tag
            .iter()
            .map(|text| tag(text))
            .collect::<Result<_, _>>()?,
        commit: which.commit.as_deref().map(commit).transpose()?,
        most: which.most,
    })
}

/// `KEY` or `KEY=GLOB`.
fn tag(text: &str) -> Result<TagPattern, Failure> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(TextPattern::new(value)?)),
        None => (text, None),
    };
    Ok(TagPattern {
        key: key.to_owned(),
        value,
    })
}

/// The hash of a commit, or its beginning.
fn commit(revision: &str) -> Result<String, Failure> {
    if let Some(hash) = checkout::resolve(revision) {
        return Ok(hash);
    }
    let hash = revision.to_ascii_lowercase();
    if hash.len() >= 4 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(hash);
    }
    Err(Failure::misuse(format!(
        "'{revision}' is neither the beginning of a commit's hash nor a revision of this \
         directory's repository"
    )))
}

/// The runs that are being recorded, the newest first.
fn running(home: &Home, filter: &RunFilter) -> Vec<RunSummary> {
    let headers = index::recording(home);
    let runs = headers.iter().map(query::running);
    runs.filter(|run| filter.accepts(run))
        .take(filter.most.unwrap_or(usize::MAX))
        .collect()
}

/// How lines are printed.
struct Look {
    style: Style,
    /// The width of the terminal. `None` if stdout is no terminal.
    columns: Option<usize>,
    now: Time,
}

impl Look {
    fn of_stdout() -> Look {
        Look {
            style: Style::of_stdout(),
            columns: columns(),
            now: when::now(),
        }
    }

    /// At a terminal a distance, which people understand; else a moment, which programs compare.
    fn time(&self, time: Time) -> String {
        match self.columns {
            Some(_) => format!("{:<10}", when::ago(time, self.now)),
            None => when::moment(time),
        }
    }
}

/// Runs with one heading above them.
#[derive(PartialEq)]
enum RunGroup<'a> {
    Alone,
    /// Lines of one shell.
    Session(&'a str),
    /// Ranks of one job.
    Job(String),
}

impl<'a> RunGroup<'a> {
    fn of(run: &'a RunSummary) -> RunGroup<'a> {
        match (&run.line, &run.job_rank) {
            (Some(line), _) => RunGroup::Session(&line.session),
            (None, Some(rank)) => RunGroup::Job(rank.job_text()),
            (None, None) => RunGroup::Alone,
        }
    }

    /// The heading above the first run of the group.
    fn heading(&self, run: &RunSummary) -> Option<String> {
        let text = match self {
            RunGroup::Alone => return None,
            RunGroup::Job(job) => job.clone(),
            RunGroup::Session(session) => {
                let terminal = &run.line.as_ref()?.terminal;
                match terminal.is_empty() {
                    true => format!("shell {session}"),
                    false => {
                        format!("shell {session} on {}", String::from_utf8_lossy(terminal))
                    }
                }
            }
        };
        Some(one_line(&text))
    }
}

/// The command of a run. A line of a shell is printed as it was typed.
fn command(run: &RunSummary) -> String {
    match &run.line {
        Some(line) if line.text.is_empty() => "(a line without text)".to_owned(),
        Some(line) => one_line(&String::from_utf8_lossy(&line.text)),
        None => shell::command_of(run),
    }
}

/// One run in one line.
fn line(run: &RunSummary, look: &Look) -> String {
    let mut line = Line::default();
    line.add(None, format!("{}  ", run.id));
    line.add(Role::Dim, look.time(run.started));
    let good = run.running || run.exit == Some(0);
    let role = if good { Role::Good } else { Role::Bad };
    line.add(role, format!("  {:<9}  ", ending(run)));
    if let Some(name) = &run.name {
        line.add(Role::Subject, one_line(name)).add(None, "  ");
    }
    line.add_flexible(None, &command(run));
    let only_line = Reason::OnlyLine {}.to_string();
    let noise = run
        .incomplete_because
        .iter()
        .all(|because| *because == only_line);
    if !run.complete && !run.running && !noise {
        line.add(Role::Bad, "  (incomplete: see show)");
    }
    let rank = run.job_rank.as_ref().map(JobRank::rank_text);
    if let Some(rank) = rank.filter(|text| !text.is_empty()) {
        line.add(Role::Dim, format!("  {rank}"));
    }
    if let Some(repeated) = &run.repeats {
        line.add(Role::Dim, format!("  repeats {}", one_line(repeated)));
    }
    for (key, value) in &run.tags {
        line.add(
            Role::Dim,
            format!("  {}", one_line(&format!("{key}={value}"))),
        );
    }
    if let Some(note) = &run.note {
        line.add(Role::Dim, format!("  # {}", one_line(note)));
    }
    line.text(look.style, look.columns)
}

/// Prints on stderr which runs are not in the list: those that are still recorded, and those that
/// could not be indexed.
fn mention_the_rest(home: &Home) {
    let unfinished = home.unfinished().unwrap_or_default();
    if !unfinished.is_empty() {
        complain(&format!(
            "runs that are still being recorded, or were cut off: {}",
            unfinished.join(" ")
        ));
    }
    for bad in home
        .finalized()
        .unwrap_or_default()
        .iter()
        .filter_map(|run| index::bad(home, run))
    {
        complain(&bad.to_string());
    }
}

/// Prints the operations of one run. The run may still be recorded, or may be one that could not be
/// indexed.
fn raw(wanted: &str, store: Option<&Path>) -> Outcome {
    let home = Home::open_to_read(&Home::directory(store)?)?;
    let mut path = home.log_path(wanted);
    if !path.exists() {
        path = home.part_path(wanted);
    }
    if !path.exists() {
        path = home.log_path(&CurrentStore::open(store)?.run(Some(wanted))?);
    }
    let log = Log::open(&path).map_err(|error| Failure::not_found(chain(&error)))?;
    answer(|out| eventlog::dump(&log, out))
}
