//! `doctor`: says what works on this machine, and what to do about the rest.

use std::io::{self, Write};
use std::path::Path;

use backstory_doctor::{Finding, Fitness, examine};
use backstory_store::Home;
use backstory_vocabulary::Word;

use super::{Outcome, answer};
use crate::args::program::DoctorArgs;
use crate::error::{Failure, Status};
use crate::json::{self, Value};
use crate::text::style::{Role, Style};

/// Prints the findings. The status is 1 if recording cannot work.
pub fn run(args: DoctorArgs, store: Option<&Path>) -> Outcome {
    let directory = Home::directory(store).map_err(Failure::misuse)?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::not_found(format!("cannot find this program: {error}")))?;
    let findings = examine(&directory, &program);
    let worst = findings.iter().map(|finding| finding.verdict).max();
    let verdict = worst.unwrap_or(Fitness::Works);
    answer(|out| match args.json {
        true => json::object(
            out,
            vec![
                ("verdict", verdict.word().into()),
                ("checks", Value::Array(findings.iter().map(json).collect())),
            ],
        ),
        false => text(&findings, verdict, Style::of_stdout(), out),
    })?;
    match verdict {
        Fitness::Fails => Ok(Status::NotFound.code()),
        Fitness::Works | Fitness::Limited => Ok(0),
    }
}

fn json(finding: &Finding) -> Value {
    let text = |text: &str| match text {
        "" => Value::Null,
        text => text.into(),
    };
    Value::Object(vec![
        ("name", finding.name.into()),
        ("verdict", finding.verdict.word().into()),
        ("found", finding.found.as_str().into()),
        ("consequence", text(&finding.consequence)),
        ("remedy", text(&finding.remedy)),
    ])
}

/// The column that what was found starts in.
const INDENT: usize = 9;

fn text(
    findings: &[Finding],
    verdict: Fitness,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    for finding in findings {
        let role = match finding.verdict {
            Fitness::Works => Role::Good,
            Fitness::Limited => Role::Command,
            Fitness::Fails => Role::Bad,
        };
        let word = format!("{:<INDENT$}", finding.verdict.word());
        writeln!(
            out,
            "{}{}: {}",
            style.paint(role, &word),
            finding.name,
            finding.found
        )?;
        for (label, rest) in [("", &finding.consequence), ("to do: ", &finding.remedy)] {
            if !rest.is_empty() {
                writeln!(out, "{:INDENT$}  {label}{rest}", "")?;
            }
        }
    }
    let last = match verdict {
        Fitness::Works => "Recording works.",
        Fitness::Limited => "Recording works, within the limits above.",
        Fitness::Fails => "Recording cannot work here: see the findings that fail.",
    };
    writeln!(out, "{last}")
}
