//! Compares backstory's account of every command of the corpus with strace's: nothing missed,
//! nothing invented.
//!
//! - `BACKSTORY_ORACLE_ONLY=NAME` runs the cases whose name contains it.
//! - `BACKSTORY_ORACLE_DROP=KIND` removes one kind from backstory's account first, so that the test
//!   must fail.
//! - `BACKSTORY_TEST_KEEP=1` keeps the traces and stores.
//!
//! See docs/testing-oracle.md.

mod checklist;
pub mod common;
pub mod corpus;
pub mod each;
mod rings;
mod stated;

use std::io;

use backstory_testkit::answer::{self, Show};
use backstory_testkit::need::{needs, say, skipped};
use backstory_testkit::oracle::{Account, Bench, Case, Verdict, drops, files, normal, processes};
use backstory_testkit::strace::Trace;
use backstory_testkit::user::{User, suite_is_root};

/// Least share of `seen` claims that must be true.
const PRECISION: f64 = 0.999;

struct Heard {
    trace: Trace,
    account: Account,
    show: Show,
}

/// Both accounts of a case. The file system is as the recorded run left it.
fn hear(bench: &Bench, case: &Case, options: &[&str]) -> io::Result<Heard> {
    let (traced, trace) = bench.traced(case)?;
    let (recorded, store) = bench.recorded(case, options)?;
    if traced.code() != recorded.code() {
        let stderr = String::from_utf8_lossy(&recorded.stderr).into_owned();
        return Err(io::Error::other(format!(
            "status {} traced, {} recorded: {stderr}",
            traced.code(),
            recorded.code()
        )));
    }
    let ask = |question: &str| bench.ask(&store, &[question, "--json"]);
    let account = Account {
        files: answer::read(&ask("files")?)?,
        processes: answer::read(&ask("processes")?)?,
    };
    Ok(Heard {
        trace,
        account,
        show: answer::read(&ask("show")?)?,
    })
}

fn judge(heard: &Heard, marked: &[&str]) -> Verdict {
    let mut verdict = Verdict::default();
    files::compare(&heard.trace.facts, &heard.account.files, &mut verdict);
    processes::compare(
        &heard.trace.processes,
        &heard.account.processes,
        &mut verdict,
    );
    verdict.missed.extend(marks(&heard.show, marked));
    verdict
}

/// The error in a run's completeness, if it should be marked in exactly these words.
fn marks(show: &Show, marked: &[&str]) -> Option<String> {
    let told = &show.incomplete_because;
    let each = marked
        .iter()
        .all(|mark| told.iter().any(|t| t.starts_with(mark)));
    let right =
        each && told.len() == marked.len() && show.complete == marked.is_empty() && show.lost == 0;
    (!right).then(|| format!("the run says it is not complete: {told:?} instead of {marked:?}"))
}

/// The guard sees an open, but not the descriptor it returns. Look-ups and listings by descriptor
/// are not known in strict mode.
fn by_descriptor_is_not_required(trace: &mut Trace) {
    let calls = ["newfstatat", "faccessat", "readlinkat", "getdents"];
    for fact in trace
        .facts
        .iter_mut()
        .filter(|f| calls.iter().any(|call| f.call.starts_with(call)))
    {
        fact.required = false;
    }
}

/// Compares all cases and returns the sum.
fn compare(bench: &Bench, cases: impl Iterator<Item = &'static Case>, options: &[&str]) -> Verdict {
    let drop = std::env::var(drops::VARIABLE).ok();
    let results = each::each(cases, |case| {
        let mut heard = hear(bench, case, options)?;
        if options.contains(&"--guard=strict") {
            by_descriptor_is_not_required(&mut heard.trace);
        }
        if let Some(kind) = &drop {
            drops::all(&mut heard.account, kind);
        }
        Ok::<_, io::Error>(judge(&heard, case.marked))
    });
    let mut sum = Verdict::default();
    for (case, result) in results {
        let mut verdict = result.unwrap_or_else(|error| Verdict {
            missed: vec![error.to_string()],
            ..Verdict::default()
        });
        if let Some(why) = case.gap {
            let gaps = verdict.missed.len() + verdict.processes.len() + verdict.invented.len();
            say(&format!(
                "KNOWN GAP: {}: {why}: {gaps} complaints",
                case.name
            ));
            let closed = vec!["is no gap any more: take the mark away".to_owned()];
            verdict = Verdict {
                missed: if gaps == 0 { closed } else { vec![] },
                ..Verdict::default()
            };
        }
        sum.add(case.name, verdict);
    }
    sum
}

fn report(what: &str, verdict: &Verdict) {
    let required: Vec<_> = verdict
        .required
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    say(&format!(
        "oracle, {what}: required {}; {} processes; {} seen claims, precision {:.5}",
        required.join(", "),
        verdict.compared,
        verdict.claims,
        verdict.precision()
    ));
    for (rule, count) in normal::RULES.iter().zip(verdict.ignored) {
        say(&format!(
            "oracle, {what}: {count} paths normalised or ignored as {} ({})",
            rule.pattern, rule.reason
        ));
    }
}

/// At most this many lines of each kind, so that one fault does not hide the others.
fn listed(title: &str, lines: &[String]) -> String {
    let shown = if std::env::var_os("BACKSTORY_ORACLE_ALL").is_some() {
        lines.len()
    } else {
        60
    };
    let mut text: Vec<String> = vec![format!("{title}: {}", lines.len())];
    text.extend(lines.iter().take(shown).map(|l| format!("  {l}")));
    text.join("\n")
}

fn assert_holds(what: &str, verdict: &Verdict) {
    report(what, verdict);
    let complaints = format!(
        "{}\n{}\n{}",
        listed("missed", &verdict.missed),
        listed("processes", &verdict.processes),
        listed("invented", &verdict.invented)
    );
    assert!(
        verdict.nothing_missed() && verdict.precision() >= PRECISION,
        "{complaints}"
    );
}

#[test]
fn the_record_misses_and_invents_nothing() {
    if !needs("the oracle", &["strace"]) {
        return;
    }
    let bench = common::bench(User::ordinary());
    assert_holds("ordinary user", &compare(&bench, corpus::all(), &[]));
}

#[test]
fn the_same_holds_without_a_filter_where_none_is_needed() {
    if !needs("the oracle with --guard=auto", &["strace"]) {
        return;
    }
    holds_without_a_filter(corpus::one_of(4), "off");
}

/// Each program takes a chunk then, and some wait until a content is preserved.
#[test]
fn the_same_holds_without_a_filter_while_contents_are_stored() {
    if !needs("the oracle with --guard=auto and contents", &["strace"]) {
        return;
    }
    holds_without_a_filter(corpus::one_of(16), "lazy");
}

#[test]
#[ignore = "a minute, as the same test of fewer commands"]
fn the_same_holds_without_a_filter_for_every_command() {
    if !needs("the oracle with --guard=auto", &["strace"]) {
        return;
    }
    for contents in ["off", "lazy"] {
        holds_without_a_filter(corpus::all(), contents);
    }
}

fn holds_without_a_filter(cases: impl Iterator<Item = &'static Case>, contents: &str) {
    let bench = common::bench(User::ordinary());
    let contents = format!("--contents={contents}");
    let options = ["--guard=auto", contents.as_str()];
    assert_holds("auto", &compare(&bench, cases, &options));
}

#[test]
fn operations_through_a_ring_are_reported() {
    rings_are_reported(&[]);
}

#[test]
#[ignore = "seconds, as the same test with the filter"]
fn operations_through_a_ring_are_reported_without_a_filter_at_the_start() {
    rings_are_reported(&["--guard=auto"]);
}

fn rings_are_reported(options: &[&str]) {
    let bench = common::bench(User::ordinary());
    let wrong: Vec<String> = rings::RINGS
        .iter()
        .flat_map(|case| {
            let found = rings::complaints(&bench, case, options);
            let found = found.unwrap_or_else(|error| vec![error.to_string()]);
            found
                .into_iter()
                .map(|line| format!("{}: {line}", case.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_untraceable_process_is_still_reported() {
    stated_programs_are_reported(&[]);
}

/// Cases with a guard of their own are left out.
#[test]
#[ignore = "seconds, as the same test with the filter"]
fn an_untraceable_process_is_still_reported_without_a_filter_at_the_start() {
    stated_programs_are_reported(&["--guard=auto"]);
}

fn stated_programs_are_reported(more: &[&str]) {
    let bench = common::bench(User::ordinary());
    let wrong: Vec<String> = stated::STATED
        .iter()
        .filter(|stated| more.is_empty() || stated.options.is_empty())
        .filter(|stated| needs(stated.case.name, stated.case.needs))
        .flat_map(|stated| {
            let found = stated::complaints(&bench, stated, more);
            let found = found.unwrap_or_else(|error| vec![error.to_string()]);
            found
                .into_iter()
                .map(|line| format!("{}: {line}", stated.case.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_same_holds_as_root() {
    if !suite_is_root() {
        return skipped("the oracle as root", "the suite was not started as root");
    }
    if !needs("the oracle as root", &["strace"]) {
        return;
    }
    let bench = common::bench(User::Myself);
    let some = [
        "cp-archive",
        "pipeline",
        "background",
        "gcc",
        "busybox-sh",
        "static-files",
        "raw-syscalls",
        "spawn",
        "daemon",
        "watchers",
        "taken-descriptor",
        "storm-calls",
        "by-number",
    ];
    let chosen = corpus::all().filter(|c| some.contains(&c.name));
    assert_holds("root", &compare(&bench, chosen, &[]));
}

#[test]
fn the_same_holds_when_everything_goes_through_the_guard() {
    if !needs("the oracle in strict mode", &["strace"]) {
        return;
    }
    let bench = common::bench(User::ordinary());
    let some = [
        "cp-archive",
        "pipeline",
        "subshells",
        "find",
        "sed-in-place",
        "vfork",
        "spawn",
        "static-files",
        "at-calls",
    ];
    let chosen = corpus::all().filter(|c| some.contains(&c.name));
    assert_holds("strict", &compare(&bench, chosen, &["--guard=strict"]));
}

#[test]
fn a_kind_of_event_that_is_dropped_is_missed() {
    if !needs("the oracle's own test", &["strace"]) {
        return;
    }
    let bench = common::bench(User::ordinary());
    let case = backstory_testkit::oracle::sh(
        "every-kind",
        "cat a >new; mv new moved; rm b; ln d/x hard; ls d >list; chmod 600 a; [ -e none ]; readlink soft; cat absent 2>/dev/null; true",
    );
    let heard = hear(&bench, &case, &[]).expect("both accounts");
    let verdict = judge(&heard, &[]);
    assert!(
        verdict.nothing_missed(),
        "{:?} {:?}",
        verdict.missed,
        verdict.processes
    );
    for kind in drops::KINDS.iter().filter(|k| **k != "stat") {
        let mut spoilt = Heard {
            trace: Trace::default(),
            account: heard.account.clone(),
            show: heard.show.clone(),
        };
        spoilt.trace.facts.clone_from(&heard.trace.facts);
        spoilt.trace.processes.clone_from(&heard.trace.processes);
        assert!(
            drops::all(&mut spoilt.account, kind),
            "nothing to drop: {kind}"
        );
        assert!(
            !judge(&spoilt, &[]).nothing_missed(),
            "the oracle does not notice that every {kind} is gone"
        );
    }
}

#[test]
fn an_operation_reported_under_another_name_is_invented() {
    if !needs("the oracle's own test", &["strace"]) {
        return;
    }
    let bench = common::bench(User::ordinary());
    let case = backstory_testkit::oracle::sh(
        "two-names",
        "ln a hard; chmod 600 a; cat hard; rm hard; cat b >new; mv new moved; cat moved",
    );
    let mut heard = hear(&bench, &case, &[]).expect("both accounts");
    let right = judge(&heard, &[]);
    assert!(right.nothing_missed(), "{:?}", right.missed);
    assert!(right.invented.is_empty(), "{:?}", right.invented);
    for (from, to) in [("/a", "/hard"), ("/hard", "/a"), ("/moved", "/new")] {
        let before = heard.account.clone();
        assert!(
            drops::mistake(&mut heard.account, from, to),
            "{from} or {to} is not told"
        );
        let wrong = judge(&heard, &[]);
        assert!(
            wrong.precision() < PRECISION,
            "the oracle does not notice that {to} has the words of {from}"
        );
        heard.account = before;
    }
}
