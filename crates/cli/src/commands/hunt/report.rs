//! The text and the JSON of a finding.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};

use backstory_eventlog::event::Bytes;
use backstory_hunt::{FoundProgram, Rule, RuleMatch};
use backstory_workflow::shell;

use super::later::{self, LaterUse};
use crate::json::Value;
use crate::lake_graphs::LakePlace;
use crate::text::command::program_line;
use crate::text::paths::shown;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;

/// The run that has a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRun {
    /// Its id.
    pub id: String,
    /// The lake that has it, and the machine that recorded it. `None`: it is in the store.
    pub lake: Option<(OsString, LakePlace)>,
    /// The files of the command's standard output and errors. They are the caller's, so a text has
    /// them last.
    pub printed: BTreeSet<Bytes>,
}

/// Files and programs of a finding that a text shows.
const FEW: usize = 4;
/// A search for later uses was cut.
const NOT_ALL: &str = "not all later runs were looked at";
/// Columns of a command in a text.
const COLUMNS: usize = 60;

/// A program's arguments, cut.
pub fn line(program: &FoundProgram) -> String {
    program_line(&program.argv, COLUMNS)
}

/// The names of some files, and how many others there are.
fn some(files: &BTreeSet<Bytes>, last: &BTreeSet<Bytes>) -> String {
    let ordered = files.difference(last).chain(files.intersection(last));
    let mut names: Vec<String> = ordered.take(FEW).map(|file| shown(file)).collect();
    if files.len() > FEW {
        names.push(format!("{} more", files.len() - FEW));
    }
    names.join(", ")
}

/// A finding on a few lines: rule, time, cause, programs, operations, extent, and a command that
/// goes on.
pub fn finding_text(
    rule: &Rule,
    run: &FoundRun,
    finding: &RuleMatch,
    later: Option<&LaterUse>,
    style: Style,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    let heading = format!("{}  {}", rule.level.word().to_uppercase(), rule.title);
    writeln!(out, "{}", style.paint(Role::Subject, &heading))?;
    let mut fact = |name: &str, value: &str| {
        let name = style.paint(Role::Dim, &format!("  {name:<8}"));
        writeln!(out, "{name} {value}")
    };
    fact("rule", &rule.id)?;
    let time = finding.steps.last().map_or(0, |step| step.time);
    let mut place = format!("{}, run {}", when::moment(time), run.id);
    if let Some((_, lake)) = &run.lake {
        place.push_str(&format!(" of {}", lake.text()));
    }
    fact("when", &place)?;
    fact("cause", &cause(finding))?;
    for step in &finding.steps {
        // The start of a program has no target but the program itself.
        let target = step.target.as_deref().map(shown).unwrap_or_default();
        let source = match &step.source {
            Some(source) => format!(" from {}", shown(source)),
            None => String::new(),
        };
        let possible = if step.is_possible { " (possibly)" } else { "" };
        let by = line(&step.program);
        let act = match target.is_empty() {
            true => format!("{by}{possible}"),
            false => format!("{target}{source}{possible}  by {by}"),
        };
        fact(step.operation, &act)?;
    }
    if finding.count > finding.steps.len() {
        let times = counted(finding.count, "such operation", "such operations");
        fact("count", &times)?;
    }
    let skipped = finding.chain.len().saturating_sub(FEW);
    let mut programs: Vec<String> = finding.chain.iter().skip(skipped).map(line).collect();
    if skipped > 0 {
        programs.insert(0, "…".to_owned());
    }
    fact("chain", &programs.join(" > "))?;
    let extent = &finding.extent;
    let last: BTreeSet<Bytes> = extent.temporary.union(&run.printed).cloned().collect();
    let mut parts = vec![counted(extent.processes, "process", "processes")];
    for (verb, files) in [
        ("changed", &extent.changed),
        ("removed", &extent.removed),
        ("sent to", &extent.sent_to),
        ("built from these", &extent.built),
    ] {
        if !files.is_empty() {
            parts.push(format!("{verb} {}: {}", files.len(), some(files, &last)));
        }
    }
    fact("extent", &parts.join("; "))?;
    if let Some(later) = later.filter(|later| later.is_cut || !later.runs.is_empty()) {
        fact("later", &later_text(later))?;
    }
    let next = next(run, finding);
    fact("next", &style.paint(Role::Command, &next))?;
    if run.lake.is_some() {
        return Ok(());
    }
    let page = format!("backstory serve {}", shell::quote(run.id.as_bytes()));
    fact("page", &style.paint(Role::Command, &page))
}

/// The cause, and where that came from.
fn cause(finding: &RuleMatch) -> String {
    let mut sources = Vec::new();
    let file = |word: &str, file: &Option<Bytes>| {
        file.as_ref().map(|file| format!("{word} {}", shown(file)))
    };
    sources.extend(file("by", &finding.cause_file));
    sources.extend(file("with", &finding.cause_input));
    let from = match finding.cause_origin_is_possible {
        true => "possibly from",
        false => "from",
    };
    sources.extend(file(from, &finding.cause_origin));
    if let Some(receiver) = &finding.cause_receiver {
        sources.push(format!("received by {}", line(receiver)));
    }
    let cause = line(&finding.cause);
    match sources.is_empty() {
        true => cause,
        false => format!("{cause}  ({})", sources.join(", ")),
    }
}

/// The later runs that used the files, and what they made.
fn later_text(later: &LaterUse) -> String {
    if later.runs.is_empty() {
        return NOT_ALL.to_owned();
    }
    let none = BTreeSet::new();
    let ids = later.runs.iter().map(|id| id.as_bytes().into());
    let ids: BTreeSet<Bytes> = ids.collect();
    let runs = counted(later.runs.len(), "run", "runs");
    let mut text = format!("used in {runs}: {}", some(&ids, &none));
    if !later.files.is_empty() {
        let files = some(&later.files, &none);
        text.push_str(&format!("; made there {}: {files}", later.files.len()));
    }
    if later.is_cut {
        text.push_str(&format!("; {NOT_ALL}"));
    }
    text
}

/// A command that goes on from a finding.
fn next(run: &FoundRun, finding: &RuleMatch) -> String {
    let last = finding.steps.last();
    let target = last.and_then(|step| step.target.as_deref());
    let word = |target: &[u8]| shell::quote(target);
    if let Some((lake, _)) = &run.lake {
        let address = last.is_some_and(|step| matches!(step.operation, "send" | "receive"));
        let host = |target: &[u8]| target.splitn(2, |byte| *byte == b':').nth(1).map(word);
        let subject = match target {
            Some(target) if address => host(target),
            Some(target) if target.starts_with(b"/") => Some(word(target)),
            _ => None,
        };
        let subject = subject.unwrap_or_else(|| run.id.clone());
        return format!(
            "backstory timeline {subject} --lake {}",
            word(lake.as_encoded_bytes())
        );
    }
    let run = &run.id;
    match (target, last.map(|step| step.operation)) {
        (Some(address), Some("send" | "receive")) => {
            let host = address.splitn(2, |byte| *byte == b':').nth(1);
            format!(
                "backstory scene {} --run {run}",
                word(host.unwrap_or(address))
            )
        }
        (Some(file), Some("write" | "make" | "rename")) => format!("backstory of {}", word(file)),
        (Some(file), Some(_)) if file.starts_with(b"/") => format!("backstory who {}", word(file)),
        _ => format!("backstory processes {run}"),
    }
}

/// A finding as JSON.
pub fn finding_object(
    rule: &Rule,
    run: &FoundRun,
    finding: &RuleMatch,
    later: Option<&LaterUse>,
) -> Value {
    let program = |program: &FoundProgram| {
        Value::Object(vec![
            ("pid", program.pid.into()),
            (
                "argv",
                Value::array(program.argv.iter().map(|word| &**word)),
            ),
        ])
    };
    let bytes = |bytes: &Option<Bytes>| Value::from(bytes.as_deref());
    let steps = finding.steps.iter().map(|step| {
        let certainty = if step.is_possible { "possible" } else { "seen" };
        Value::Object(vec![
            ("time", Value::Time(step.time)),
            ("operation", step.operation.into()),
            ("target", bytes(&step.target)),
            ("source", bytes(&step.source)),
            ("certainty", certainty.into()),
            ("process", program(&step.program)),
        ])
    });
    let files = |files: &BTreeSet<Bytes>| Value::array(files.iter().map(|file| &**file));
    let extent = &finding.extent;
    let mut acts = vec![
        ("processes", extent.processes.into()),
        ("changed", files(&extent.changed)),
        ("removed", files(&extent.removed)),
        ("sent_to", files(&extent.sent_to)),
        ("built", files(&extent.built)),
    ];
    if extent.is_cut {
        acts.push(("cut", true.into()));
    }
    let id = &run.id;
    let place = run.lake.as_ref().map(|(_, place)| place);
    let mut object = vec![
        ("rule", (&rule.id).into()),
        ("level", rule.level.word().into()),
        ("title", (&rule.title).into()),
        ("run", id.into()),
    ];
    if let Some(place) = place {
        object.push(("host", (&place.host).into()));
        object.push(("machine", (&place.machine).into()));
    }
    object.extend([
        ("steps", Value::Array(steps.collect())),
        ("count", finding.count.into()),
        (
            "chain",
            Value::Array(finding.chain.iter().map(program).collect()),
        ),
        ("cause", program(&finding.cause)),
        ("cause_file", bytes(&finding.cause_file)),
        ("cause_input", bytes(&finding.cause_input)),
        ("cause_origin", bytes(&finding.cause_origin)),
        (
            "cause_origin_possible",
            finding.cause_origin_is_possible.into(),
        ),
        (
            "cause_receiver",
            finding.cause_receiver.as_ref().map(program).into(),
        ),
        ("extent", Value::Object(acts)),
    ]);
    if let Some(later) = later {
        object.push(("later", later::object(later)));
    }
    object.push(("next", next(run, finding).as_str().into()));
    if place.is_none() {
        // The address of the run's view, below that of `backstory serve`. An id has no character
        // that an address has to escape.
        object.push(("page", format!("/run/{id}").as_str().into()));
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_uses_that_were_not_all_looked_at_are_marked() {
        let mut later = LaterUse {
            is_cut: true,
            ..LaterUse::default()
        };
        assert_eq!(later_text(&later), NOT_ALL);
        later.runs.insert("run1".to_owned());
        assert_eq!(
            later_text(&later),
            format!("used in 1 run: run1; {NOT_ALL}")
        );
        later.is_cut = false;
        assert_eq!(later_text(&later), "used in 1 run: run1");
    }
}
