//! A trace for Perfetto and `chrome://tracing`: a track for each process, a slice for each program, arrows where data flowed.
//!
//! The JSON form of the trace event format, which `trace_processor` reads. Times are microseconds since the first activity.

use serde_json::{Value, json};

use crate::format::{Family, Format, Target};
use crate::view::End;
use crate::{Result, View};

/// `perfetto`
pub struct Perfetto;

impl Format for Perfetto {
    fn name(&self) -> &'static str {
        "perfetto"
    }
    fn about(&self) -> &'static str {
        "a timeline for ui.perfetto.dev"
    }
    fn family(&self) -> Family {
        Family::Picture
    }
    fn proven_by(&self) -> &'static str {
        "a check of the trace event format"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let zero = view
            .activities
            .iter()
            .map(|activity| activity.interval.start)
            .min()
            .unwrap_or_default();
        let micro = |time: i64| (time - zero) as f64 / 1000.0;
        let mut events: Vec<Value> = Vec::new();
        for (at, run) in view.runs.iter().enumerate() {
            let name = format!("run {}", run.summary.id);
            events.push(
                json!({"ph": "M", "name": "process_name", "pid": at + 1, "tid": 0, "args": {"name": name}}),
            );
        }
        for activity in &view.activities {
            let name = activity.label.split_whitespace().next().unwrap_or("?");
            let length = micro(activity.interval.end) - micro(activity.interval.start);
            events.push(json!({
                "ph": "X", "cat": "activity", "name": name, "pid": activity.run + 1, "tid": activity.pid,
                "ts": micro(activity.interval.start), "dur": length,
                "args": {
                    "command": activity.label, "cwd": String::from_utf8_lossy(&activity.cwd),
                    "exit": activity.exit, "signal": activity.signal, "id": activity.id,
                },
            }));
        }
        flows(view, &micro, &mut events);
        let trace = json!({"traceEvents": events, "displayTimeUnit": "ms"});
        serde_json::to_writer(target.stream(), &trace).map_err(std::io::Error::from)?;
        Ok(())
    }
}

/// From each that made a file or wrote to a pipe to each that read it afterwards.
fn flows(view: &View, micro: &impl Fn(i64) -> f64, events: &mut Vec<Value>) {
    let mut made = vec![Vec::new(); view.entities.len()];
    for link in &view.links {
        if let (End::Activity(maker), End::Entity(entity)) = (link.from, link.to) {
            made[entity].push((maker, link.interval));
        }
    }
    let mut number = 0;
    for link in &view.links {
        let (End::Entity(entity), End::Activity(reader)) = (link.from, link.to) else {
            continue;
        };
        for (maker, interval) in made[entity].iter().filter(|(maker, _)| *maker != reader) {
            let (from, to) = (&view.activities[*maker], &view.activities[reader]);
            let until = interval.start.min(from.interval.end);
            let since = link.interval.end.max(to.interval.start).min(to.interval.end);
            if until > since {
                continue;
            }
            number += 1;
            let name = String::from_utf8_lossy(&view.entities[entity].path).into_owned();
            events.push(json!({"ph": "s", "cat": "flow", "name": name, "id": number, "pid": from.run + 1, "tid": from.pid, "ts": micro(until)}));
            events.push(json!({
                "ph": "f", "bp": "e", "cat": "flow", "name": name, "id": number, "pid": to.run + 1, "tid": to.pid, "ts": micro(since),
            }));
        }
    }
}
