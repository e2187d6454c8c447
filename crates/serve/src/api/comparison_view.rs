//! `GET /compare`: how two runs, or the histories of two versions, differ.

use axum::extract::State;
use axum::response::Response;
use backstory_query::RefinedRuns;
use backstory_replay::diff::{
    self, DiffSide, DiffSubject, DiffVerdict, Difference, DifferenceKind, DifferenceWeight,
    SideCommand, UnusedCauses,
};
use backstory_store::EntityKey;
use backstory_workflow::shell;
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};
#[cfg(test)]
use utoipa::ToSchema;

use super::ids;
use super::run_row::seconds;
use super::run_view::run_id;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::Answer;
use crate::readers::Reading;
use crate::site::Site;

/// The most rows of aligned commands, and differences, of an answer.
const ROWS: usize = 5000;

/// How two runs, or the histories of two versions, differ.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ComparisonView {
    /// The first side.
    pub a: ComparedSubject,
    /// The second side.
    pub b: ComparedSubject,
    /// True if nothing differs and all was compared.
    pub same: bool,
    /// The index of the difference at which the histories part: the earliest one that can be a
    /// cause.
    pub earliest: Option<usize>,
    /// The differences, in the order in which they can have had an effect.
    pub differences: Vec<DifferenceRow>,
    /// Files that cannot be compared, because a content is not known.
    pub unknown: Vec<PathText>,
    /// Outputs with the same content on both sides.
    pub same_outputs: Vec<PathText>,
    /// The commands of both sides, aligned.
    pub aligned: Vec<AlignedRow>,
    /// True if rows are left out.
    pub cut: bool,
}

/// A side of a comparison.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ComparedSubject {
    /// Its name for people: a command or a path.
    pub title: PathText,
    /// The newest run of the side.
    pub run: Option<String>,
    /// The version, if the side is the history of one.
    pub version: Option<String>,
    /// When that run began.
    pub started: Option<f64>,
}

/// A difference.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct DifferenceRow {
    /// `machine`, `environment`, `parameter`, `directory`, `arguments`, `variable`, `program`,
    /// `library`, `input`, `listing`, `command`, `exit`, `metric` or `output`.
    pub kind: &'static str,
    /// The subject: a path, a variable, a command.
    pub of: PathText,
    /// The value on the first side.
    pub a: Option<PathText>,
    /// The value on the second side.
    pub b: Option<PathText>,
    /// `own`, `command`, `system`, `noise`, `consequence` or `result`: how likely it is a cause
    /// that matters.
    pub weight: &'static str,
    /// The difference in words.
    pub sentence: PathText,
    /// Seconds after the begin of the run.
    pub after: f64,
    /// Only one side has it.
    pub one_side: bool,
    /// For a file: its version on either side.
    pub versions: [Option<String>; 2],
    /// For an output: the indexes of the differences that it may result from.
    pub fed_by: Vec<usize>,
    /// For an output: those of `fed_by` of which the byte engine found no byte in it. A branch may
    /// have depended on them.
    pub no_byte_of: Vec<usize>,
    /// For an output: a later program of its run read it, or it is not the user's own.
    pub intermediate: bool,
}

/// Commands that stand beside each other.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct AlignedRow {
    /// The command of the first side.
    pub a: Option<AlignedCommand>,
    /// The command of the second side.
    pub b: Option<AlignedCommand>,
    /// Both have the same program, arguments and exit status.
    pub same: bool,
}

/// A command of a side.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct AlignedCommand {
    /// The process.
    pub process: String,
    /// Its arguments as a shell line.
    pub line: String,
    /// When it began.
    pub start: f64,
    /// When it ended.
    pub end: f64,
    /// Its exit status, if it is known.
    pub exit: Option<i32>,
}

/// How two runs, or the histories of two versions, differ. A side is a run, or the id of a version.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/compare",
    params(("a" = String, Query), ("b" = String, Query)),
    responses((status = 200, body = ComparisonView), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn comparison_view(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&["a", "b"])?;
    let name = |key| Answer::Ok(String::from_utf8_lossy(params.needed(key)?).into_owned());
    let (a, b) = (name("a")?, name("b")?);
    site.answer(move |_, reading| {
        let a = subject(reading, &a)?;
        let b = subject(reading, &b)?;
        view(reading, &a, &b)
    })
    .await
}

fn subject(reading: &Reading<'_>, name: &str) -> Answer<DiffSubject> {
    let digits = name.strip_prefix('v').unwrap_or_default();
    match !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // A run's id can look like that, too.
        true if reading.store.run(name)?.is_none() => {
            Ok(DiffSubject::Version(ids::version(reading, name)?))
        }
        _ => Ok(DiffSubject::Run(run_id(reading, name)?)),
    }
}

fn view(reading: &Reading<'_>, a: &DiffSubject, b: &DiffSubject) -> Answer<ComparisonView> {
    let store = reading.store;
    let _one_state = store.reading()?;
    let found = diff::diff(store, a, b)?;
    reading.check()?;
    let (old, new) = diff::sides(store, a, b, found.least)?;
    let mut aligned = align(&old.commands, &new.commands);
    let cut = aligned.len() > ROWS || found.differences.len() > ROWS;
    aligned.truncate(ROWS);
    let is_cause = |one: &Difference| {
        use DifferenceWeight::{Command, Own, System};
        matches!(one.weight, Own | Command | System)
    };
    let mut runs = RefinedRuns::of(store, &reading.home.bytes_dir(""));
    let unused = UnusedCauses::of(&mut runs, &found);
    reading.check()?;
    let rows = found.differences.iter().take(ROWS).enumerate();
    let differences = rows
        .map(|(at, one)| row(one, unused.of_output(at)))
        .collect();
    let names = |names: &[Vec<u8>]| names.iter().map(|name| name.as_slice().into()).collect();
    Ok(ComparisonView {
        a: compared(reading, a, &old)?,
        b: compared(reading, b, &new)?,
        same: found.verdict() == DiffVerdict::Same,
        earliest: found.differences.iter().position(is_cause),
        differences,
        unknown: names(&found.unknown),
        same_outputs: names(&found.same_outputs),
        aligned,
        cut,
    })
}

fn compared(
    reading: &Reading<'_>,
    subject: &DiffSubject,
    side: &DiffSide,
) -> Answer<ComparedSubject> {
    let run = side.runs.last().map(|run| &run.summary);
    let (title, version) = match subject {
        DiffSubject::Run(_) => {
            let line = run.map(|run| shell::line(&run.command)).unwrap_or_default();
            (line.into(), None)
        }
        DiffSubject::Version(key) => {
            let entity = reading.store.entity(*key)?;
            ((&entity.path).into(), Some(ids::of_version(*key)))
        }
    };
    Ok(ComparedSubject {
        title,
        run: run.map(|run| run.id.clone()),
        version,
        started: run.map(|run| seconds(run.started)),
    })
}

/// `unused`: the causes of which no byte is in it.
fn row(one: &Difference, unused: &[usize]) -> DifferenceRow {
    let text = |value: &Option<Vec<u8>>| value.as_ref().map(|value| value.as_slice().into());
    DifferenceRow {
        kind: one.kind.word(),
        of: one.of.as_slice().into(),
        a: text(&one.a),
        b: text(&one.b),
        weight: one.weight.word(),
        sentence: sentence(one).as_slice().into(),
        after: seconds(one.at),
        one_side: one.is_of_one_side(),
        versions: one
            .versions
            .map(|version: Option<EntityKey>| version.map(ids::of_version)),
        fed_by: one.fed_by.clone(),
        no_byte_of: unused.to_vec(),
        intermediate: one.is_intermediate,
    }
}

/// The difference in words. Names are bytes of the user's.
fn sentence(one: &Difference) -> Vec<u8> {
    use DifferenceKind::*;
    let of = one.of.as_slice();
    let what: &[u8] = match one.kind {
        Machine => b"the machine's ",
        Environment | Variable => b"the variable ",
        Parameter => b"the parameter ",
        Metric => b"the metric ",
        Directory => b"the directory of ",
        Arguments => b"the arguments of ",
        Program => b"the program ",
        Library => b"the library ",
        Input => b"the input ",
        Listing => b"the names in the directory ",
        Command => b"the command ",
        Exit => b"the exit status of ",
        Output => b"the output ",
    };
    let plural = matches!(one.kind, Arguments | Listing);
    let file = matches!(one.kind, Program | Library | Input | Output);
    match (&one.a, &one.b) {
        (None, Some(_)) => match one.kind {
            Command => [what, of, b" ran in b only"].concat(),
            Environment | Variable => [what, of, b" is set in b only"].concat(),
            Parameter | Metric => [what, of, b" is noted in b only"].concat(),
            Output => [what, of, b" was made in b only"].concat(),
            _ => [what, of, b" was used in b only"].concat(),
        },
        (Some(_), None) => match one.kind {
            Command => [what, of, b" ran in a only"].concat(),
            Environment | Variable => [what, of, b" is set in a only"].concat(),
            Parameter | Metric => [what, of, b" is noted in a only"].concat(),
            Output => [what, of, b" was made in a only"].concat(),
            _ => [what, of, b" was used in a only"].concat(),
        },
        _ if file => [what, of, b" has another content in b"].concat(),
        (Some(a), Some(b)) if !plural && a.len() + b.len() < 80 => [
            what,
            of,
            b" was ",
            a.as_slice(),
            b" in a and ",
            b.as_slice(),
            b" in b",
        ]
        .concat(),
        _ if plural => [what, of, b" differ"].concat(),
        _ => [what, of, b" differs"].concat(),
    }
}

/// The commands of both sides, those with the same arguments beside each other. Between them,
/// commands of the same program stand beside each other.
fn align(a: &[SideCommand], b: &[SideCommand]) -> Vec<AlignedRow> {
    let words = |side: &[SideCommand]| -> Vec<Vec<Vec<u8>>> {
        side.iter().map(|command| command.argv.clone()).collect()
    };
    let mut rows = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &words(a), &words(b)) {
        let (old, new) = (&a[op.old_range()], &b[op.new_range()]);
        if let DiffOp::Equal { .. } = op {
            let pairs = old.iter().zip(new);
            rows.extend(pairs.map(|(x, y)| both(x, y)));
            continue;
        }
        let mut left = new.iter().peekable();
        for command in old {
            let program = |one: &SideCommand| one.activity.exec_path.clone();
            match left.peek() {
                Some(other) if program(other) == program(command) => {
                    rows.push(both(command, other));
                    left.next();
                }
                _ => rows.push(AlignedRow {
                    a: Some(aligned(command)),
                    b: None,
                    same: false,
                }),
            }
        }
        rows.extend(left.map(|command| AlignedRow {
            a: None,
            b: Some(aligned(command)),
            same: false,
        }));
    }
    rows
}

fn both(a: &SideCommand, b: &SideCommand) -> AlignedRow {
    let ends = |one: &SideCommand| (one.activity.exit, one.activity.signal);
    AlignedRow {
        same: a.argv == b.argv && ends(a) == ends(b),
        a: Some(aligned(a)),
        b: Some(aligned(b)),
    }
}

fn aligned(command: &SideCommand) -> AlignedCommand {
    let activity = &command.activity;
    AlignedCommand {
        process: ids::of_process(command.key),
        line: shell::line(&activity.argv),
        start: seconds(activity.interval.start),
        end: seconds(activity.interval.end),
        exit: activity.exit,
    }
}
