//! `diff`: compares two runs, or how two versions of a file were made.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`sides`] | finds what the user wants to compare |
//! | [`causes`] | prints the answer, and the causes in it |
//! | [`results`], [`folding`] | print the outputs, and the rest in few words |
//! | [`changes`] | prints what differs between two contents |
//! | [`processes`] | prints every difference in order of time (`--level process`) |

mod causes;
mod changes;
mod folding;
mod processes;
mod results;
mod sides;

use std::cell::Cell;
use std::path::Path;

use backstory_comparison::ContentDifference;
use backstory_graph::model::Certainty;
use backstory_inspection::{Answer, ComparedContents, Trouble};
use backstory_query::answer::RunDetails;
use backstory_replay::diff::{self, Diff, DiffVerdict, Difference, UnusedCauses};
use backstory_store::{EntityKey, GraphStore};

use super::byte_origins::refined_runs;
use super::contents::store_contents;
use super::inspect::no_columns;
use super::{Outcome, answer, here};
use crate::args::lineage::{DiffArgs, Level};
use crate::current_store::CurrentStore;
use crate::database_rows;
use crate::error::Failure;
use crate::file_inspector::{self, FileInspector};
use crate::json::{self, Value};
use crate::text::line::printable;
use crate::text::style::Style;
use crate::text::words::counted;
use crate::version_contents::VersionContents;
pub use changes::summary;
use sides::{ComparedSide, ComparedVersion};

/// Inspectors of formats that can be text without being for people.
const UNREADABLE: [&str; 2] = ["pdf", "pickle"];

/// The most differences whose contents are compared.
const COMPARED: usize = 100;

/// The exit status if some files could not be compared, and nothing is known to differ.
const CANNOT_BE_TOLD: u8 = 3;

/// Prints the differences. Exits with 0 if all was compared and is the same, with 1 if something
/// differs, and with 3 if that cannot be told.
pub fn run(args: DiffArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    store_contents(&mut current);
    let (a, b) = sides::of(&current, &args)?;
    let contents = VersionContents::new(&current);
    let inspector = FileInspector::new(Some(current.home.dir())).by_key(&args.key);
    let content = match (&a, &b) {
        (ComparedSide::Version(a), ComparedSide::Version(b)) => {
            Some(compare_versions(&current, &contents, &inspector, a, b)?)
        }
        _ => None,
    };
    if let (Some(Ok(content)), ComparedSide::Version(b)) = (&content, &b)
        && !args.key.is_empty()
        && !content.has_told_the_key()
    {
        return Err(no_columns(&b.name));
    }
    let diff = match (a.subject(), b.subject()) {
        (Some(a), Some(b)) => diff::diff(&current.store, &a, &b)?,
        // A version that no run knows has no history to compare.
        _ => unrecorded(&current, &a, &b)?,
    };
    let named = match &content {
        None => DiffVerdict::Same,
        Some(Ok(content)) if content.is_same() => DiffVerdict::Same,
        Some(Ok(_)) => DiffVerdict::Different,
        Some(Err(_)) => sides::verdict_by_digest(&current, &a, &b)?,
    };
    let verdict = match (named, diff.verdict()) {
        (DiffVerdict::Different, _) | (_, DiffVerdict::Different) => DiffVerdict::Different,
        (DiffVerdict::Unknown, _) | (_, DiffVerdict::Unknown) => DiffVerdict::Unknown,
        (DiffVerdict::Same, DiffVerdict::Same) => DiffVerdict::Same,
    };
    let answered = Answered {
        verdict,
        a,
        b,
        unused: UnusedCauses::of(&mut refined_runs(&current), &diff),
        diff,
        content,
    };
    answer(|out| match (args.json, args.level) {
        (true, _) => json::object(out, fields(&answered, &contents, &inspector, args.full)),
        (false, Level::Step) => causes::Printer {
            answered: &answered,
            contents: &contents,
            inspector: &inspector,
            style: Style::of_stdout(),
            full: args.full,
            here: &here(),
            said_no_worker: Cell::new(false),
        }
        .print(out),
        (false, _) => processes::text(&answered, Style::of_stdout(), out),
    })?;
    Ok(match verdict {
        DiffVerdict::Same => 0,
        DiffVerdict::Different => 1,
        DiffVerdict::Unknown => CANNOT_BE_TOLD,
    })
}

/// How many files could not be compared, and what helps. `first`: the name of the first.
fn not_compared(diff: &Diff, first: &str) -> String {
    let files = counted(diff.unknown.len(), "file", "files");
    let more = if diff.unknown.len() > 1 { " …" } else { "" };
    let mut runs = diff.a.iter().chain(&diff.b);
    let help = match runs.all(|run| run.modes.stores_contents()) {
        true => "; `backstory contents PATH@RUN` says why",
        false => ": record with --contents=lazy",
    };
    format!("{files} could not be compared, because a content is not stored ({first}{more}){help}")
}

/// The answer of `diff`.
struct Answered {
    verdict: DiffVerdict,
    a: ComparedSide,
    b: ComparedSide,
    diff: Diff,
    unused: UnusedCauses,
    /// The difference between the contents of the two versions that the user named, or why a
    /// content is not available. `None` if runs are compared.
    content: Option<Result<ComparedContent, String>>,
}

/// The difference between two contents of a file.
struct ComparedContent {
    /// In lines, cells, pixels or bytes.
    difference: ContentDifference,
    /// In the terms of the file's format. `None` if no inspector was asked.
    inside: Option<Result<Answer, Trouble>>,
    /// Why the format was not read for the difference.
    trouble: Option<Trouble>,
    /// The bytes are the same, but rows differ that are only in the write-ahead log of a database.
    differs_beside: bool,
}

impl ComparedContent {
    /// The difference between two recorded versions of a file.
    fn of_versions(
        inspector: &FileInspector,
        contents: &VersionContents<'_>,
        (name, path): (&[u8], &[u8]),
        versions: (EntityKey, EntityKey),
        (old, new): (&[u8], &[u8]),
    ) -> ComparedContent {
        let compared = ComparedContent::of(inspector, (name, path), old, new);
        let Some(rows) = inspector.database_rows(contents, (path, new), versions) else {
            return compared;
        };
        // Both states together can be too large for the comparison that takes the log into account.
        if rows.is_err() && compared.inside.as_ref().is_some_and(Result::is_ok) {
            return compared;
        }
        let differs = rows.as_ref().is_ok_and(database_rows::has_changes);
        let is_same = matches!(compared.difference, ContentDifference::Same);
        match is_same && !differs {
            true => compared,
            false => ComparedContent {
                inside: Some(rows),
                differs_beside: is_same,
                ..compared
            },
        }
    }

    /// The difference between two contents of a file. An inspector is asked about the recorded
    /// `path`, under which its answer is kept for other commands, too.
    fn of(
        inspector: &FileInspector,
        (name, path): (&[u8], &[u8]),
        old: &[u8],
        new: &[u8],
    ) -> ComparedContent {
        let compared = inspector.compare(name, old, new);
        let inside = inspector.stated(path, (old, new), &compared);
        let ComparedContents {
            difference,
            trouble,
        } = compared;
        ComparedContent {
            difference,
            inside,
            trouble,
            differs_beside: false,
        }
    }

    /// Why the format was not read.
    fn why_not_read(&self) -> Option<&Trouble> {
        let inside = self.inside.as_ref();
        let inside = inside.and_then(|inside| inside.as_ref().err());
        inside.or(self.trouble.as_ref())
    }

    /// True if the answer says whether a chosen key was used.
    fn has_told_the_key(&self) -> bool {
        let is_table = matches!(self.difference, ContentDifference::Table(_));
        is_table || self.is_same() || self.trouble.is_some()
    }

    fn is_same(&self) -> bool {
        matches!(self.difference, ContentDifference::Same) && !self.differs_beside
    }

    /// As JSON. `inside` is what the inspector said.
    fn json(&self, full: bool) -> Value {
        let mut fields = changes::json(&self.difference, full);
        fields.push((
            "inside",
            match &self.inside {
                None => Value::Null,
                Some(Ok(inside)) => Value::Object(vec![
                    ("inspector", inside.inspector.as_str().into()),
                    ("version", inside.version.into()),
                    ("sentences", Value::array(&inside.sentences)),
                    ("changes", file_inspector::json_map(&inside.changes)),
                ]),
                Some(Err(trouble)) => {
                    Value::Object(vec![("error", trouble.to_string().as_str().into())])
                }
            },
        ));
        let why = self.why_not_read().map(Trouble::to_string);
        fields.push(("format_not_read_because", why.as_ref().into()));
        Value::Object(fields)
    }

    /// True if the lines of the difference are for people: not those of a PDF file.
    fn has_readable_lines(&self) -> bool {
        let inside = self.inside.as_ref().and_then(|inside| inside.as_ref().ok());
        !inside.is_some_and(|inside| UNREADABLE.contains(&&*inside.inspector))
    }

    /// The difference in one line: in the terms of the format, if its inspector knows.
    fn summary(&self) -> String {
        match &self.inside {
            Some(Ok(inside)) if !inside.sentences.is_empty() => {
                printable(inside.one_line().as_bytes())
            }
            _ => summary(&self.difference),
        }
    }
}

fn compare_versions(
    current: &CurrentStore,
    contents: &VersionContents<'_>,
    inspector: &FileInspector,
    a: &ComparedVersion,
    b: &ComparedVersion,
) -> Result<Result<ComparedContent, String>, Failure> {
    let Some(old) = a.read(contents)? else {
        return Ok(Err(a.why_absent(current)));
    };
    let Some(new) = b.read(contents)? else {
        return Ok(Err(b.why_absent(current)));
    };
    Ok(Ok(match (a.version, b.version) {
        (Some(from), Some(to)) => {
            let path = current.store.entity(to)?.path;
            let names = (&b.name[..], &path[..]);
            ComparedContent::of_versions(inspector, contents, names, (from, to), (&old, &new))
        }
        _ => ComparedContent::of(inspector, (&b.name, &b.name), &old, &new),
    }))
}

/// The comparison without the histories.
fn unrecorded(current: &CurrentStore, a: &ComparedSide, b: &ComparedSide) -> Result<Diff, Failure> {
    let runs = |side: &ComparedSide| -> Result<Vec<RunDetails>, Failure> {
        match side.run() {
            Some(run) => Ok(vec![backstory_query::details(&current.store, run)?]),
            None => Ok(Vec::new()),
        }
    };
    Ok(Diff {
        a: runs(a)?,
        b: runs(b)?,
        differences: Vec::new(),
        unknown: Vec::new(),
        unknown_causes: Vec::new(),
        same_outputs: Vec::new(),
        least: Certainty::Seen,
    })
}

/// The difference between the contents of a file on both sides. `None` if one is not available.
fn content_of(
    difference: &Difference,
    contents: &VersionContents<'_>,
    inspector: &FileInspector,
) -> Option<ComparedContent> {
    let [Some(a), Some(b)] = difference.versions else {
        return None;
    };
    let read = |version| contents.read(version).ok().flatten();
    let (old, new) = (read(a)?, read(b)?);
    let path = contents.current().store.entity(b).ok()?.path;
    // The name of the difference can be relative to the directory of a run.
    let names = (&path[..], &path[..]);
    Some(ComparedContent::of_versions(
        inspector,
        contents,
        names,
        (a, b),
        (&old, &new),
    ))
}

fn fields(
    answered: &Answered,
    contents: &VersionContents<'_>,
    inspector: &FileInspector,
    full: bool,
) -> Vec<(&'static str, Value)> {
    let diff = &answered.diff;
    let runs = |runs: &[RunDetails]| Value::array(runs.iter().map(|run| &run.summary.id));
    let mut compared = 0;
    let mut differences = Vec::new();
    for (at, difference) in diff.differences.iter().enumerate() {
        let mut object = object(difference);
        let unused = answered.unused.of_output(at).iter();
        object.push(("no_byte_of", Value::array(unused.copied())));
        let is_file = difference.versions.iter().all(Option::is_some);
        if is_file && compared < COMPARED {
            compared += 1;
            let content = content_of(difference, contents, inspector);
            let content = content.map_or(Value::Null, |content| content.json(full));
            object.push(("content", content));
        }
        differences.push(Value::Object(object));
    }
    let content = answered.content.as_ref();
    let compared = content.and_then(|content| content.as_ref().ok());
    let why_not = content.and_then(|content| content.as_ref().err());
    vec![
        ("answer", answered.verdict.word().into()),
        ("same", (answered.verdict == DiffVerdict::Same).into()),
        ("a", runs(&diff.a)),
        ("b", runs(&diff.b)),
        (
            "earliest",
            diff.differences
                .first()
                .map_or(Value::Null, |first| Value::Object(object(first))),
        ),
        ("differences", Value::Array(differences)),
        ("same_outputs", names(&diff.same_outputs)),
        ("unknown", names(&diff.unknown)),
        ("unknown_causes", names(&diff.unknown_causes)),
        (
            "content",
            compared.map_or(Value::Null, |content| content.json(full)),
        ),
        (
            "content_not_compared_because",
            why_not.map_or(Value::Null, |why| why.as_str().into()),
        ),
    ]
}

fn names(names: &[Vec<u8>]) -> Value {
    Value::array(names.iter().map(Vec::as_slice))
}

fn object(difference: &Difference) -> Vec<(&'static str, Value)> {
    vec![
        ("kind", difference.kind.word().into()),
        ("of", difference.of.as_slice().into()),
        ("a", difference.a.as_deref().into()),
        ("b", difference.b.as_deref().into()),
        ("after_ns", difference.at.into()),
        ("fed_by", Value::array(difference.fed_by.iter().copied())),
        ("weight", difference.weight.word().into()),
        ("intermediate", difference.is_intermediate.into()),
    ]
}
