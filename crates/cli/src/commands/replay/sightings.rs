//! `when`: runs a deep run again, and finds the calls that moved a text or wrote to a descriptor.

use std::io::{self, Write};
use std::path::Path;

use backstory_deep::ReadMeter;
use backstory_ordering::SmallSort;
use backstory_reconstruct::sighting::{Direction, Sighting, Wanted};
use backstory_reconstruct::verdict::{Likeness, Reconstruction};
use backstory_replay::plan::Deviations;

use super::{Prepared, clear, deep, deep_report, directory};
use crate::args::replay::{ReplayArgs, WhenArgs};
use crate::commands::{Outcome, answer};
use crate::ending::{self, Workers};
use crate::error::{Failure, complain, one_line};
use crate::json::{self, Value};
use crate::text::progress::Progress;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;

/// Places that fit on a screen.
const SCREEN: usize = 20;
/// Characters of the bytes that a line shows.
const EXCERPT: usize = 32;

/// The times and numbers of the recorded calls.
struct Calls {
    log: backstory_deep::DeepLog,
    ends: Vec<u64>,
}

impl Calls {
    fn of(deep: &deep::DeepRequest) -> Result<Calls, Failure> {
        let meter = ReadMeter::default();
        let log = deep.open()?.metered(&meter);
        let progress = Progress::reading("reading the deep log", &meter);
        let ends = log.ends_of_calls();
        progress.end();
        Ok(Calls { log, ends })
    }

    /// The number of the last recorded call that had returned by then, from 1.
    fn number(&self, counter: u64) -> u64 {
        self.ends.partition_point(|end| *end <= counter).max(1) as u64
    }

    fn time(&self, counter: u64) -> i64 {
        self.log.time_of(counter)
    }
}

/// Prints the places. Exits with 1 if nothing was found.
pub fn run(args: WhenArgs, store: Option<&Path>) -> Outcome {
    let wanted = wanted(&args)?;
    ending::watch(Workers::Killed);
    let replay = ReplayArgs::deeply(args.run.clone(), args.reconstruction());
    let prepared = Prepared::new(&replay, Deviations::default(), store)?;
    let Some(mut deep) = prepared.deep.clone() else {
        return Err(Failure::misuse("when needs a deep run"));
    };
    deep.wanted = Some(wanted);
    if let Some(request) = args.request {
        deep = deep.only(request as usize);
    }
    let calls = Calls::of(&deep)?;
    let own = directory(None, &prepared.run)?;
    let played = prepared.played(&replay, Some(deep.clone()), &own);
    clear(&own);
    let Some(mut reconstruction) = played?.reconstruction else {
        return Err(Failure::not_found("the program did not run again"));
    };
    reconstruction
        .sightings
        .sort_small_by_key(|one| one.counter);
    if reconstruction.likeness() == Likeness::Different {
        complain(&format!(
            "the program behaved differently this time: `backstory replay --deep {}` says where",
            prepared.run
        ));
    }
    let unrecorded = match reconstruction.likeness() {
        Likeness::EqualWhereRecorded => deep_report::unrecorded(&reconstruction),
        _ => reconstruction.lacks_because.iter().cloned().collect(),
    };
    if !unrecorded.is_empty() {
        complain("only recorded calls are looked at, and some are missing:");
    }
    for line in unrecorded {
        complain(&line);
    }
    let part = match reconstruction.sightings.first() {
        Some(first) => debugged_part(&deep, &calls, first, &args)?,
        None => ("", String::new()),
    };
    answer(|out| match args.json {
        true => json::lines(
            out,
            reconstruction
                .sightings
                .iter()
                .map(|one| value(one, &calls)),
        ),
        false => text(
            &reconstruction,
            &calls,
            (prepared.run.as_str(), &part),
            &args,
            out,
        ),
    })?;
    Ok(u8::from(reconstruction.sightings.is_empty()))
}

fn wanted(args: &WhenArgs) -> Result<Wanted, Failure> {
    let text = match (&args.text, args.hex) {
        (Some(text), true) => Some(unhex(text).ok_or_else(|| {
            Failure::misuse("--hex needs pairs of hexadecimal digits, as in 00ff0a")
        })?),
        (Some(text), false) => Some(text.clone().into_bytes()),
        (None, _) => None,
    };
    match (&text, &args.to) {
        (None, None) => Err(Failure::misuse(
            "give a text, or --to with a descriptor, file or address",
        )),
        (Some(text), _) if text.is_empty() => Err(Failure::misuse("the text is empty")),
        _ => Ok(Wanted {
            text,
            to: args.to.clone(),
        }),
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(
        digits
            .chunks(2)
            .map(|two| (two[0] * 16 + two[1]) as u8)
            .collect(),
    )
}

fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Received => "received",
        Direction::Sent => "wrote",
    }
}

fn value(one: &Sighting, calls: &Calls) -> Value {
    Value::Object(vec![
        ("time", Value::Time(calls.time(one.counter))),
        ("call", calls.number(one.counter).into()),
        ("pid", one.pid.into()),
        ("program", (&one.program).into()),
        ("action", word(one.direction).into()),
        ("descriptor", one.fd.into()),
        ("object", (&one.object).into()),
        ("position", one.position.into()),
        ("request", one.request.map(|number| number as u64).into()),
        ("bytes", Value::Bytes(one.bytes.clone())),
    ])
}

/// The part of the run that a debugger is to see, in words and as options. They name the process of
/// a request if the command of the run is another program, as a shell.
fn debugged_part(
    deep: &deep::DeepRequest,
    calls: &Calls,
    first: &Sighting,
    args: &WhenArgs,
) -> Result<(&'static str, String), Failure> {
    let wanted = args.request.map(|number| number as usize);
    let Some(number) = wanted.or(first.request) else {
        let number = calls.number(first.counter);
        return Ok(("up to the first", format!("--to {number}")));
    };
    let epoch = deep.epoch_of(number)?;
    let starter = epoch.and_then(|epoch| calls.log.starter(epoch));
    let process = starter.map_or(String::new(), |pid| format!(" --process {pid}"));
    Ok(("in the request", format!("--request {number}{process}")))
}

fn text(
    reconstruction: &Reconstruction,
    calls: &Calls,
    (run, (what, part)): (&str, &(&str, String)),
    args: &WhenArgs,
    out: &mut impl Write,
) -> io::Result<()> {
    let style = Style::of_stdout();
    let all = &reconstruction.sightings;
    if all.is_empty() {
        return writeln!(
            out,
            "No call of the run that was made again moved these bytes."
        );
    }
    let shown = if args.all { all.len() } else { SCREEN };
    let mut process = None;
    for one in all.iter().take(shown) {
        if process != Some(one.process) {
            process = Some(one.process);
            let title = format!("process {} ({})", one.pid, one_line(&one.program));
            writeln!(out, "{}", style.paint(Role::Subject, &title))?;
        }
        let number = format!("call {}", calls.number(one.counter));
        write!(
            out,
            "  {}  {number:<10}  {:<8}  {}",
            when::moment(calls.time(one.counter)),
            word(one.direction),
            one_line(&one.object),
        )?;
        if let Some(position) = one.position {
            write!(out, ", byte {position}")?;
        }
        if let Some(request) = one.request {
            write!(out, ", request {request}")?;
        }
        let bytes = one.bytes.escape_ascii().to_string();
        let bytes = bytes.get(..EXCERPT).unwrap_or(&bytes);
        writeln!(out, "  {}", style.paint(Role::Dim, &format!("\"{bytes}\"")))?;
    }
    let rest = all.len() as u64 - shown.min(all.len()) as u64 + reconstruction.more_sightings;
    if rest > 0 {
        let more = counted(rest as usize, "more place", "more places");
        writeln!(out, "{more} (--all lists at most 1000)")?;
    }
    let command = format!("backstory replay --deep {run} {part} --with gdb");
    let command = style.paint(Role::Command, &command);
    writeln!(out, "A debugger {what}: {command}")
}
