//! Operations through an io_uring. strace sees none of them, so the program's own statement is the
//! reference.

use std::io;

use backstory_testkit::answer::{self, Certainty, FileLine, Show};
use backstory_testkit::need::skipped;
use backstory_testkit::oracle::{Bench, Case, Outcome, program};

/// Programs whose calls no tracer sees, because they are made through a ring. Each prints its
/// operations: `WORD PATH` lines.
pub const RINGS: &[Case] = &[
    program("ring", &["$FIX/ring", "plain"]),
    program("ring-wide", &["$FIX/ring", "wide"]),
    program("ring-own-memory", &["$FIX/ring", "own"]),
    program("ring-without-array", &["$FIX/ring", "no-array"]),
    program("ring-by-place", &["$FIX/ring", "by-place"]),
    program("ring-polled", &["$FIX/ring", "polled"]),
    program("ring-passes", &["$FIX/ring", "passes"]),
    program("ring-sends", &["$FIX/ring", "sends"]),
];

/// Cases that are known to be incomplete, and the run's reason.
const MARKED: &[(&str, &str)] = &[
    ("ring-polled", "io_uring with kernel-side polling"),
    ("ring-passes", "an io_uring that passes descriptors"),
    ("ring-sends", "a file sent from one io_uring to another"),
];

/// The program's exit status if this kernel has no such ring.
const NO_RING: i32 = 77;

/// Errors in the account of a case. Empty if this kernel cannot run it.
pub fn complaints(bench: &Bench, case: &Case, options: &[&str]) -> io::Result<Vec<String>> {
    let plain = bench.plain(case)?;
    if plain.code() == NO_RING {
        skipped(case.name, "this kernel gives no such ring");
        return Ok(Vec::new());
    }
    let (recorded, store) = bench.recorded(case, options)?;
    let mut wrong = Vec::new();
    let files: Vec<FileLine> = answer::read(&bench.ask(&store, &["files", "--json"])?)?;
    let show: Show = answer::read(&bench.ask(&store, &["show", "--json"])?)?;
    let marks: Vec<&str> = MARKED
        .iter()
        .filter(|m| m.0 == case.name)
        .map(|m| m.1)
        .collect();
    let own = Outcome {
        stderr: recorded.stderr_without_verdict(&marks),
        ..recorded
    };
    if own != plain {
        wrong.push(format!("recorded it differs: {own:?} from {plain:?}"));
    }
    let told = &show.incomplete_because;
    if told.len() != marks.len()
        || !marks
            .iter()
            .all(|mark| told.iter().any(|t| t.starts_with(mark)))
    {
        wrong.push(format!("{told:?} instead of {marks:?}"));
    }
    let polled = case.name == "ring-polled";
    let text = String::from_utf8_lossy(&plain.stdout).into_owned();
    let stated: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    if stated.is_empty() {
        wrong.push("it stated nothing".to_owned());
    }
    let told = |line: &FileLine, word: &str| {
        line.access
            .iter()
            .any(|w| format!("{w:?}").to_lowercase() == word)
    };
    for (word, path) in stated.iter().filter(|_| !polled) {
        if !files
            .iter()
            .any(|f| f.path.0 == path.as_bytes() && told(f, word))
        {
            wrong.push(format!("missed: {word} {path}"));
        }
    }
    let root = stated
        .first()
        .map_or("", |(_, path)| path.rsplit_once('/').map_or("", |p| p.0));
    let claims = files
        .iter()
        .filter(|f| matches!(f.certainty, Certainty::Seen));
    for line in claims.filter(|f| f.path.0.starts_with(format!("{root}/").as_bytes())) {
        if !stated
            .iter()
            .any(|(_, path)| line.path.0 == path.as_bytes())
            && !line.path.0.ends_with(b"/chain")
        {
            wrong.push(format!("invented: {line:?}"));
        }
    }
    Ok(wrong)
}
