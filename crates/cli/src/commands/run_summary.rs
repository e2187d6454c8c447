//! What `log` and `show` print of a run: its fields as JSON, and its end in words.

use backstory_eventlog::run::ResourceUsage;
use backstory_query::answer::RunSummary;

use crate::json::Value;

/// The fields of a run in `log --json` and `show --json`. `exit` is the status that `record` exited
/// with.
pub fn fields(run: &RunSummary) -> Vec<(&'static str, Value)> {
    vec![
        ("run", (&run.id).into()),
        ("name", run.name.as_ref().into()),
        ("note", run.note.as_ref().into()),
        ("repeats", run.repeats.as_ref().into()),
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
    ]
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
