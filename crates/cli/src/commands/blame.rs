//! `blame`: the run that introduced each line of a text file.
//!
//! The versions come from the file's history. Their lines are compared in the stored contents. A
//! version whose content is not stored leaves a gap. Lines that are new after the gap may have come
//! with any version in it, and are marked.

use std::io::{self, Write};
use std::path::Path;

use backstory_comparison::{is_text, line_origins, lines};
use backstory_eventlog::event::{Bytes, Time};
use backstory_files::regular;
use backstory_query as query;
use backstory_query::{PathChange, PathEvent};
use backstory_store::GraphStore;

use super::contents::store_contents;
use super::path_log::{run_of, word};
use super::{Outcome, answer};
use crate::args::lineage::BlameArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain};
use crate::json::{self, Value};
use crate::subject::{self, PathNotation};
use crate::text::line::{cut, printable};
use crate::text::paths::shown;
use crate::text::shell;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::version_contents::VersionContents;

/// The width of the column with the command.
const COMMAND: usize = 28;

/// Prints each line with the run that introduced it.
pub fn run(args: BlameArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    store_contents(&mut current);
    let (path, until) = match subject::notation(&current, &args.path)? {
        PathNotation::Plain(path) => (path, Limit::None),
        PathNotation::AtMoment(path, time) => (path, Limit::Moment(time)),
        PathNotation::OfRun(path, run) => (path, Limit::Run(run)),
    };
    let mut events = query::history(&current.store, &path)?;
    limit(&current, &mut events, &until)?;
    if until == Limit::None
        && let Some(gone) = events.last().filter(|last| !last.change.leaves_file())
    {
        say_who_removed(&current, gone)?;
    }
    let versions = versions(&current, &path, &events)?;
    let Some(last) = versions
        .iter()
        .rposition(|version| version.content.is_some())
    else {
        let newest = events.iter().rev().find_map(|event| event.version);
        let why = match newest {
            Some(version) => query::why_unknown(&current.store, version)?,
            None => "no run recorded a version of it".to_owned(),
        };
        return Err(Failure::not_found(format!(
            "no content of {} is stored: {why}",
            path.display()
        )));
    };
    let blame = Blame::of(&versions[..=last]);
    if blame.text.iter().any(|content| !is_text(content)) {
        return Err(Failure::not_found(format!(
            "{} is no text; `backstory log -- {0}` lists its versions",
            path.display()
        )));
    }
    if last + 1 < versions.len() {
        complain(&format!(
            "the content of the newest version is not stored; these are the lines of the version of {}",
            when::moment(versions[last].time)
        ));
    }
    answer(|out| match args.json {
        true => json::lines(out, blame.rows().map(|row| row.json())),
        false => text(&blame, Style::of_stdout(), out),
    })
}

/// Up to where the history counts.
#[derive(Debug, PartialEq)]
enum Limit {
    None,
    Moment(Time),
    Run(String),
}

fn limit(
    current: &CurrentStore,
    events: &mut Vec<PathEvent>,
    until: &Limit,
) -> Result<(), Failure> {
    match until {
        Limit::None => {}
        Limit::Moment(time) => events.retain(|event| event.time <= *time),
        Limit::Run(run) => {
            let mut last = None;
            for (at, event) in events.iter().enumerate() {
                if run_of(current, event)?.as_ref() == Some(run) {
                    last = Some(at);
                }
            }
            let last = last.ok_or_else(|| {
                Failure::not_found(format!(
                    "run {run} did not change the file, and did not find a new version of it"
                ))
            })?;
            events.truncate(last + 1);
        }
    }
    Ok(())
}

fn say_who_removed(current: &CurrentStore, gone: &PathEvent) -> Result<(), Failure> {
    let by = match (gone.activity, run_of(current, gone)?) {
        (Some(activity), Some(run)) => {
            let argv = current.store.activity(activity)?.argv;
            let command = shell::words(argv.iter().map(|word| &word[..]));
            format!(" on {} by run {run}: {command}", when::moment(gone.time))
        }
        _ => String::new(),
    };
    complain(&format!(
        "{} was {}{by}",
        shown(&gone.path),
        word(&gone.change)
    ));
    Ok(())
}

/// A version of the file.
struct BlamedVersion {
    /// The run that made it. `None` if no recorded run did.
    run: Option<String>,
    time: Time,
    argv: Vec<Bytes>,
    /// `None` if it is not stored.
    content: Option<Vec<u8>>,
}

/// The versions with another content than the one before, oldest first.
fn versions(
    current: &CurrentStore,
    path: &Path,
    events: &[PathEvent],
) -> Result<Vec<BlamedVersion>, Failure> {
    let mut found: Vec<BlamedVersion> = Vec::new();
    let contents = VersionContents::new(current);
    let with_content = |event: &&PathEvent| {
        use PathChange::*;
        event.change.leaves_file() && !matches!(event.change, Metadata | RenamedFrom(_))
    };
    let mut events = events.iter().filter(with_content).peekable();
    while let Some(event) = events.next() {
        // Several programs of one run may have written one version; the last of them finished it.
        if events
            .peek()
            .is_some_and(|next| next.version.is_some() && next.version == event.version)
        {
            continue;
        }
        let content = match event.version {
            Some(version) => contents.read(version)?,
            None => regular::read(path).ok(),
        };
        // A file that was moved has the content that it had.
        if content.is_some() && found.last().is_some_and(|last| last.content == content) {
            continue;
        }
        let by = event.activity;
        found.push(BlamedVersion {
            run: run_of(current, event)?.filter(|_| by.is_some()),
            time: event.time,
            argv: match by {
                Some(activity) => current.store.activity(activity)?.argv,
                None => Vec::new(),
            },
            content,
        });
    }
    Ok(found)
}

/// The lines of the last version, and the version that introduced each.
struct Blame<'v> {
    versions: Vec<&'v BlamedVersion>,
    text: Vec<&'v [u8]>,
    /// For each version with a content: true if the version before it is not stored.
    after_gap: Vec<bool>,
    origins: Vec<usize>,
}

impl<'v> Blame<'v> {
    fn of(all: &'v [BlamedVersion]) -> Blame<'v> {
        let (mut versions, mut text, mut after_gap) = (Vec::new(), Vec::new(), Vec::new());
        let mut gap = false;
        for version in all {
            match &version.content {
                Some(content) => {
                    versions.push(version);
                    text.push(content.as_slice());
                    after_gap.push(std::mem::take(&mut gap));
                }
                None => gap = true,
            }
        }
        Blame {
            origins: line_origins(&text),
            versions,
            text,
            after_gap,
        }
    }

    fn rows(&self) -> impl Iterator<Item = BlameRow<'_>> {
        let last = self.text.last().map(|text| lines(text)).unwrap_or_default();
        let rows = (1..).zip(last).zip(&self.origins);
        rows.map(|((number, line), &origin)| BlameRow {
            number,
            line,
            version: self.versions[origin],
            is_certain: !self.after_gap[origin],
        })
    }
}

/// A line of the file.
struct BlameRow<'b> {
    number: usize,
    line: &'b [u8],
    version: &'b BlamedVersion,
    is_certain: bool,
}

impl BlameRow<'_> {
    fn json(&self) -> Value {
        Value::Object(vec![
            ("line", self.number.into()),
            ("text", self.line.into()),
            ("run", self.version.run.as_deref().into()),
            ("time", Value::Time(self.version.time)),
            ("argv", Value::array(&self.version.argv)),
            ("certain", self.is_certain.into()),
        ])
    }
}

fn text(blame: &Blame<'_>, style: Style, out: &mut impl Write) -> io::Result<()> {
    let width = blame.origins.len().to_string().len();
    for row in blame.rows() {
        let version = row.version;
        let command = match &version.run {
            Some(_) => shell::words(version.argv.iter().map(|word| &word[..])),
            None => "not recorded".to_owned(),
        };
        let command = format!("{:<COMMAND$}", cut(&command, COMMAND));
        let mark = if row.is_certain { ' ' } else { '?' };
        let number = format!("{:>width$})", row.number);
        writeln!(
            out,
            "{:<8}{mark} {}  {}  {} {}",
            version.run.as_deref().unwrap_or("–"),
            style.paint(Role::Dim, &when::moment(version.time)),
            style.paint(Role::Command, &command),
            style.paint(Role::Dim, &number),
            printable(row.line)
        )?;
    }
    Ok(())
}
