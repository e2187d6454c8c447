//! The plan as JSON.

use std::io::{self, Write};

use backstory_replay::rerun::work_list::Standing;

use super::{Plan, refusal_text};
use crate::json::{self, Value};

/// Prints the plan, one object for each step.
pub fn print(plan: &Plan<'_>, out: &mut impl Write) -> io::Result<()> {
    let steps = 0..plan.work.steps.len();
    json::lines(out, steps.map(|at| step(plan, at)))
}

fn step(plan: &Plan<'_>, at: usize) -> Value {
    let steps = plan.work.steps;
    let step = &steps[at];
    let reasons = step.reasons.iter().map(|reason| {
        Value::Object(vec![
            ("about", reason.subject().into()),
            ("why", reason.words().into()),
        ])
    });
    let fed = step.fed_by.iter().map(|(from, path)| {
        Value::Object(vec![
            ("step", (&steps[*from].name).into()),
            ("path", path.into()),
        ])
    });
    let hazards = plan.hazards[at].iter().map(|hazard| {
        Value::Object(vec![
            ("what", hazard.word().into()),
            ("about", (&hazard.subject()).into()),
        ])
    });
    let refused = plan.refusals.iter().filter(|(of, _)| *of == at);
    let refused = refused.map(|(_, refusal)| refusal_text::sentence(step, refusal).as_str().into());
    let state = match plan.work.standing(at) {
        Standing::Current => "current",
        Standing::Stale => "stale",
        Standing::Waits => "waits",
        Standing::Outside => "outside",
    };
    Value::Object(vec![
        ("step", (&step.name).into()),
        ("state", state.into()),
        ("script", (&step.script).into()),
        ("run", (&step.run).into()),
        (
            "outputs",
            Value::array(step.outputs.iter().map(|(path, _)| path)),
        ),
        ("reasons", Value::Array(reasons.collect())),
        ("fed_by", Value::Array(fed.collect())),
        ("forced", plan.work.is_forced(at).into()),
        ("hazards", Value::Array(hazards.collect())),
        ("refused", Value::Array(refused.collect())),
    ])
}
