//! What `log` and `show` print of a run: its fields as JSON, and its end in words.

use backstory_eventlog::job_rank::JobRank;
use backstory_eventlog::run::{ResourceUsage, ShellLine};
use backstory_query::Checkout;
use backstory_query::answer::RunSummary;
use backstory_store::{Annotation, AnnotationKind};

use crate::json::Value;

/// The fields of a run in `log --json` and `show --json`. `exit` is the status that `record` exited
/// with.
pub fn fields(run: &RunSummary) -> Vec<(&'static str, Value)> {
    vec![
        ("run", (&run.id).into()),
        ("name", run.name.as_ref().into()),
        ("note", run.note.as_ref().into()),
        ("repeats", run.repeats.as_ref().into()),
        ("job", job(run.job_rank.as_ref())),
        ("line", run.line.as_ref().map_or(Value::Null, line)),
        ("command", Value::array(&run.command)),
        ("cwd", (&run.cwd).into()),
        ("started", Value::Time(run.started)),
        ("ended", run.ended.map_or(Value::Null, Value::Time)),
        ("exit", status(run).into()),
        ("signal", run.signal.into()),
        (
            "complete",
            // The verdict is open while the run is being recorded.
            (!run.running)
                .then_some(run.complete)
                .map_or(Value::Null, Value::Bool),
        ),
        ("lost", run.lost.into()),
        ("incomplete_because", Value::array(&run.incomplete_because)),
        ("processes", run.processes.into()),
        ("files_read", run.files_read.into()),
        ("files_written", run.files_written.into()),
        ("host", (&run.host).into()),
        ("running", run.running.into()),
        ("tags", texts(&run.tags)),
    ]
}

/// The place of a run or process in a job of a launcher; null without one.
pub fn job(rank: Option<&JobRank>) -> Value {
    rank.map_or(Value::Null, |rank| {
        Value::Object(vec![
            ("launcher", (&rank.launcher).into()),
            ("id", rank.job.as_ref().into()),
            ("rank", rank.rank.into()),
            ("size", rank.size.into()),
        ])
    })
}

/// The line of a shell that a run is.
fn line(line: &ShellLine) -> Value {
    Value::Object(vec![
        ("session", (&line.session).into()),
        ("number", line.number.into()),
        ("text", line.text.as_slice().into()),
        ("terminal", line.terminal.as_slice().into()),
    ])
}

/// The resources that a run used, for JSON: null if unknown.
pub fn usage(usage: Option<&ResourceUsage>) -> Value {
    usage.map_or(Value::Null, |usage| {
        Value::Object(vec![
            ("user_seconds", Value::Time(usage.user)),
            ("system_seconds", Value::Time(usage.system)),
            ("peak_memory", usage.peak_memory.into()),
        ])
    })
}

/// An object of texts.
fn texts(pairs: &[(String, String)]) -> Value {
    let one = |(key, value): &(String, String)| (key.clone(), value.into());
    Value::Map(pairs.iter().map(one).collect())
}

/// The parameters, metrics and git work trees of a run in `show --json`.
pub fn annotation_fields(all: &[Annotation]) -> Vec<(&'static str, Value)> {
    let of = |kind| {
        let values = all.iter().filter(move |one| one.kind == kind);
        values.map(|one| (one.key.clone(), number_or_text(one.value.as_deref())))
    };
    let checkouts = all.iter().filter_map(Checkout::of).map(|checkout| {
        let changed = checkout.changed.as_ref().map(Value::array);
        Value::Object(vec![
            ("root", (&checkout.root).into()),
            ("commit", checkout.commit.as_ref().into()),
            ("unread", checkout.unread.as_ref().into()),
            ("branch", checkout.branch.as_ref().into()),
            (
                "dirty",
                checkout
                    .changed
                    .as_ref()
                    .map(|list| !list.is_empty())
                    .into(),
            ),
            ("changed", changed.unwrap_or(Value::Null)),
        ])
    });
    vec![
        (
            "parameters",
            Value::Map(of(AnnotationKind::Parameter).collect()),
        ),
        ("metrics", Value::Map(of(AnnotationKind::Metric).collect())),
        ("git", Value::Array(checkouts.collect())),
    ]
}

/// A number as a number, everything else as a text.
pub fn number_or_text(text: Option<&str>) -> Value {
    let Some(text) = text else {
        return Value::Null;
    };
    match serde_json::from_str::<serde_json::Number>(text) {
        Ok(_) => Value::Number(text.trim().to_owned()),
        Err(_) => text.into(),
    }
}

/// The status that `record` exited with. `None` if the end was not observed.
pub fn status(run: &RunSummary) -> Option<i32> {
    run.exit.or(run.signal.map(|signal| 128 + signal))
}

/// How the run ended, in words.
pub fn ending(run: &RunSummary) -> String {
    match (run.exit, run.signal) {
        _ if run.running => "running".to_owned(),
        (Some(0), _) => "ok".to_owned(),
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}
