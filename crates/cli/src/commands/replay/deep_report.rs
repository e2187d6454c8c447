//! Prints how a program behaved against its deep log.

use std::io::{self, Write};
use std::time::Duration;

use backstory_reconstruct::divergence::{ByteOrigin, Divergence, quoted};
use backstory_reconstruct::matcher::COMPLAINT_SHOWN;
use backstory_reconstruct::shift::ClockShift;
use backstory_reconstruct::verdict::{
    FileCounts, Likeness, ProcessVerdict, Reconstruction, RequestVerdict,
};
use backstory_replay::verdict::{OutputState, Verdict};

use crate::json::Value;
use crate::text::line::printable;
use crate::text::style::{Role, Style};
use crate::text::words::{counted, noun};

/// Processes that are listed.
const SHOWN: usize = 10;

/// True if nothing but volatile parts differs, as far as it was recorded.
pub fn is_alike(reconstruction: &Reconstruction) -> bool {
    reconstruction.likeness() != Likeness::Different
}

/// How many files are the recorded ones, differ, and could not be compared.
pub fn file_counts(verdict: &Verdict) -> FileCounts {
    let mut counts = FileCounts::default();
    for output in &verdict.outputs {
        let count = match output.state {
            OutputState::Identical => &mut counts.equal,
            OutputState::Different | OutputState::Missing => &mut counts.different,
            OutputState::Unknown(_) => &mut counts.unknown,
        };
        *count += 1;
    }
    counts
}

/// The numbers of bytes and of files that could not be compared, as the end of a line. Also whether
/// nothing could be, unless something differs all the same.
fn not_compared(reconstruction: &Reconstruction) -> String {
    let mut words = String::new();
    let bytes = reconstruction.counted();
    if bytes > 0 {
        words += &format!(", {bytes} bytes not compared");
    }
    let unknown = reconstruction.files.unknown;
    if unknown > 0 {
        words += &format!(", {} not compared", counted(unknown, "file", "files"));
    }
    if reconstruction.compared_nothing() && is_alike(reconstruction) {
        words += "; nothing could be compared";
        if reconstruction.request.is_none() {
            words += " but the ends of the programs";
        }
    }
    words
}

/// The comparison with the record, in words.
fn likeness(reconstruction: &Reconstruction) -> (Role, &'static str) {
    match reconstruction.likeness() {
        Likeness::Equal => (Role::Good, "equal"),
        Likeness::EqualWhereRecorded => (Role::Good, "equal where it was recorded"),
        Likeness::EqualButVolatile => (Role::Good, "equal but for volatile parts"),
        Likeness::Different => (Role::Bad, "different"),
    }
}

/// The result for one of several requests, in one line.
pub fn line(reconstruction: &Reconstruction, style: Style, out: &mut impl Write) -> io::Result<()> {
    let (role, word) = likeness(reconstruction);
    write!(out, "{}", style.paint(role, word))?;
    if let Some(request) = &reconstruction.request {
        let tries = counted(reconstruction.tries as usize, "attempt", "attempts");
        let (calls, compared) = (reconstruction.calls(), request.compared);
        let rest = not_compared(reconstruction);
        write!(
            out,
            ": {tries}, {calls} calls, {compared} bytes compared{rest}"
        )?;
        if !request.is_served {
            write!(out, "; it was not served to its end")?;
        }
        if let Some(seconds) = request.worked_on {
            write!(out, "; {}", worked_on(seconds))?;
        }
    }
    match (&reconstruction.stopped, reconstruction.first_difference()) {
        (Some(why), _) => writeln!(out, "; {why}"),
        (None, Some(first)) => writeln!(
            out,
            "; {} of {}, {}, byte {}",
            first.kind.words(),
            first.program,
            first.object,
            first.position
        ),
        (None, None) => writeln!(out),
    }
}

/// The result in words.
pub fn text(reconstruction: &Reconstruction, style: Style, out: &mut impl Write) -> io::Result<()> {
    let (role, word) = likeness(reconstruction);
    let processes = &reconstruction.processes;
    let matched: u64 = processes.iter().map(|process| process.matched).sum();
    let entered: u64 = processes.iter().map(|process| process.entered).sum();
    writeln!(
        out,
        "{}: {} {} ran again, {matched} calls answered from the record, {entered} bytes fed, {} bytes compared{}",
        style.paint(role, word),
        processes.len(),
        noun(processes.len(), "program", "programs"),
        reconstruction.compared(),
        not_compared(reconstruction),
    )?;
    match &reconstruction.request {
        Some(request) => self::request(reconstruction, request, out)?,
        None => attempts(reconstruction, out)?,
    }
    let before = processes.iter().filter(|process| process.differs_before);
    for process in before.filter(|_| reconstruction.request.is_none()) {
        let (pid, program) = (process.pid, &process.program);
        writeln!(
            out,
            "  output of process {pid} ({program}) differs before --from"
        )?;
    }
    for name in reconstruction.volatile_parts() {
        writeln!(out, "  volatile: {name}")?;
    }
    if let Some(why) = &reconstruction.stopped {
        writeln!(out, "  {} {why}", style.paint(Role::Bad, "stopped"))?;
    }
    if reconstruction.unsteady > 0 {
        writeln!(
            out,
            "  another execution had another result: something decides that is not recorded, as the order of threads within a data race"
        )?;
    }
    for (path, position) in reconstruction.other_files.iter().take(SHOWN) {
        writeln!(
            out,
            "  {path} is not the file that the recorded program read: it differs behind byte {position}"
        )?;
    }
    for program in reconstruction.not_started.iter().take(SHOWN) {
        writeln!(out, "  {program} was not started again")?;
    }
    if reconstruction.counted() > 0 {
        writeln!(
            out,
            "  of {} bytes that the kernel moved, only the number was compared",
            reconstruction.counted()
        )?;
    }
    let mut differing = processes
        .iter()
        .filter_map(|process| Some((process, process.divergence.as_ref()?)));
    let first = differing.next();
    if let Some((_, first)) = first {
        divergence(first, style, out)?;
    } else if let Some(elsewhere) = &reconstruction.unsteady_difference {
        writeln!(
            out,
            "  the last execution had no difference; another one had:"
        )?;
        divergence(elsewhere, style, out)?;
    }
    if !whole_reports(reconstruction, style, out)? {
        complaint(first.map(|(process, _)| process), processes, style, out)?;
    }
    for (_, other) in differing.take(SHOWN) {
        writeln!(
            out,
            "  then process {} ({}): {} at {}",
            other.pid,
            other.program,
            other.kind.words(),
            other.object
        )?;
    }
    for line in unrecorded(reconstruction) {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// Lines that name the parts of the run which are not recorded.
pub fn unrecorded(reconstruction: &Reconstruction) -> Vec<String> {
    let unreached = reconstruction.unreached.iter().take(SHOWN);
    let unreached = unreached.map(|program| {
        format!(
            "{program} was not started again: the record of the program that started it ends before"
        )
    });
    let gap = |process: &ProcessVerdict| {
        let (pid, program) = (process.pid, &process.program);
        let why = process.gap.as_ref()?;
        Some(format!(
            "the record of process {pid} ({program}) is not whole: {why}"
        ))
    };
    let gaps = reconstruction.processes.iter().filter_map(gap).take(SHOWN);
    let lacks = reconstruction.lacks_because.iter().cloned();
    let mut lines: Vec<String> = lacks.chain(unreached).chain(gaps).collect();
    let own = reconstruction.processes.iter();
    let own = own.filter(|process| process.own_calls > 0).take(SHOWN);
    lines.extend(own.map(|process| {
        let calls = counted(process.own_calls as usize, "call", "calls");
        format!(
            "process {} ({}) made {calls} without libc: the record lacks such calls",
            process.pid, process.program
        )
    }));
    if reconstruction.shallow > 0 {
        let have = counted(
            reconstruction.shallow as usize,
            "program has",
            "programs have",
        );
        lines.push(format!(
            "{have} no deep record: their calls were not compared"
        ));
    }
    lines
}

/// The reports of a build with a sanitizer, line by line. True if a program made one.
pub fn whole_reports(
    reconstruction: &Reconstruction,
    style: Style,
    out: &mut impl Write,
) -> io::Result<bool> {
    let all = reconstruction.processes.iter();
    let mut all = all.filter(|process| process.complaint.len() > COMPLAINT_SHOWN);
    let mut has_any = false;
    for process in all.by_ref().take(SHOWN) {
        has_any = true;
        let said = style.paint(Role::Dim, "stderr  ");
        let (pid, program) = (process.pid, &process.program);
        writeln!(out, "    {said} of process {pid} ({program}):")?;
        let text = process.complaint.trim_ascii_end();
        for line in text.split(|byte| *byte == b'\n') {
            writeln!(out, "      {}", printable(line))?;
        }
    }
    if let more @ 1.. = all.count() {
        writeln!(
            out,
            "    and {}",
            counted(more, "more report", "more reports")
        )?;
    }
    Ok(has_any)
}

/// The complaint of the first process that differs. If it has none, that of another one: a shell
/// may have started the server that complained.
fn complaint(
    first: Option<&ProcessVerdict>,
    all: &[ProcessVerdict],
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let complained = |process: &&ProcessVerdict| !process.complaint.is_empty();
    let own = first.filter(complained);
    let Some(process) = own.or_else(|| all.iter().find(complained)) else {
        return Ok(());
    };
    let said = quoted(&process.complaint);
    write!(out, "    {} {said}", style.paint(Role::Dim, "stderr  "))?;
    match own {
        Some(_) => writeln!(out),
        None => writeln!(out, ", of process {} ({})", process.pid, process.program),
    }
}

/// Says that programs were ended while they worked behind the last byte of the request.
fn worked_on(seconds: u64) -> String {
    format!("a program still computed {seconds} s after its last call, so all were ended")
}

/// The attempts at a run, if there were several.
fn attempts(reconstruction: &Reconstruction, out: &mut impl Write) -> io::Result<()> {
    let tries = reconstruction.tries;
    if tries > 1 {
        writeln!(out, "  {tries} attempts, at several moments")?;
    }
    clock(reconstruction.shift, out)
}

/// The change of the clock, if there is one.
fn clock(shift: ClockShift, out: &mut impl Write) -> io::Result<()> {
    let words = shift.words();
    match shift.behind {
        _ if shift.ns == 0 => Ok(()),
        None => writeln!(out, "  the clock was shifted by {words}"),
        Some(_) => writeln!(
            out,
            "  the clock was shifted by {words} between two recorded calls"
        ),
    }
}

/// The chosen request: what it took.
fn request(
    reconstruction: &Reconstruction,
    request: &RequestVerdict,
    out: &mut impl Write,
) -> io::Result<()> {
    let tries = counted(reconstruction.tries as usize, "attempt", "attempts");
    let number = request.number;
    match request.is_client {
        true => write!(out, "  request {number} of a client and all before it")?,
        false => write!(out, "  request {number} alone")?,
    }
    if !request.fed.is_empty() {
        let fed = counted(request.fed.len(), "earlier request", "earlier requests");
        write!(out, " and {fed}")?;
    }
    let all = reconstruction.calls();
    let part = 100.0 * all as f64 / reconstruction.recorded_calls.max(1) as f64;
    writeln!(
        out,
        ", {tries}: {all} calls ({part:.2} % of the {} that were recorded), {} since the connection",
        reconstruction.recorded_calls, request.calls
    )?;
    let executed = request.executed;
    if executed.executions > 1 {
        writeln!(
            out,
            "  all attempts: {} calls, {} of them in {} of the program",
            executed.calls,
            executed.in_starts,
            counted(executed.starts() as usize, "start", "starts"),
        )?;
        if executed.in_copies > 0 {
            let copies = counted(executed.in_copies as usize, "attempt", "attempts");
            writeln!(out, "  {copies} began in a copy of the started program")?;
        }
    }
    clock(reconstruction.shift, out)?;
    if let Some(position) = request.differs_before {
        let which = match request.is_client {
            true => "the requests",
            false => "the answers to the requests",
        };
        writeln!(
            out,
            "  {which} before it on the connection differ from byte {position} on"
        )?;
    }
    if let Some(seconds) = request.worked_on {
        writeln!(out, "  {}", worked_on(seconds))?;
    }
    Ok(())
}

fn divergence(first: &Divergence, style: Style, out: &mut impl Write) -> io::Result<()> {
    let volatile = match &first.volatile {
        Some(name) => format!(", in {name}"),
        None => String::new(),
    };
    writeln!(
        out,
        "  first difference: {} of process {} ({}), {}, byte {}{volatile}",
        first.kind.words(),
        first.pid,
        first.program,
        first.object,
        first.position
    )?;
    writeln!(
        out,
        "    {} {}",
        style.paint(Role::Dim, "recorded"),
        first.recorded
    )?;
    writeln!(
        out,
        "    {} {}",
        style.paint(Role::Dim, "came    "),
        first.came
    )?;
    let (then, now) = &first.origins;
    for (word, origin) in [(&first.words.0, then), (&first.words.1, now)] {
        if let Some(origin) = origin {
            self::origin(word, origin, style, out)?;
        }
    }
    if first.recorded.ends_with("another digest") {
        writeln!(out, "    `record --deep --outputs full` keeps the bytes")?;
    }
    let recorded = first.log_calls.iter().map(|call| ("log call", call));
    let came = first.calls.iter().map(|call| ("call    ", call));
    for (side, call) in recorded.chain(came) {
        writeln!(out, "    {} {call}", style.paint(Role::Dim, side))?;
    }
    Ok(())
}

/// The input that brought a word of the difference.
fn origin(word: &[u8], from: &ByteOrigin, style: Style, out: &mut impl Write) -> io::Result<()> {
    let request = match from.request {
        Some(number) => format!(" with request {number}"),
        None => String::new(),
    };
    writeln!(
        out,
        "    {} {} entered process {}{request}, from {}, byte {}",
        style.paint(Role::Dim, "source  "),
        quoted(word),
        from.pid,
        from.object,
        from.position
    )
}

fn origin_value(origin: Option<&ByteOrigin>) -> Value {
    let Some(from) = origin else {
        return Value::Null;
    };
    Value::Object(vec![
        ("pid", from.pid.into()),
        ("program", (&from.program).into()),
        ("object", (&from.object).into()),
        ("position", from.position.into()),
        ("request", from.request.map(|number| number as u64).into()),
    ])
}

/// The result as JSON.
pub fn value(reconstruction: &Reconstruction) -> Value {
    let likeness = match reconstruction.likeness() {
        Likeness::Equal => "equal",
        Likeness::EqualWhereRecorded => "equal-where-recorded",
        Likeness::EqualButVolatile => "equal-but-volatile",
        Likeness::Different => "different",
    };
    Value::Object(vec![
        ("verdict", likeness.into()),
        ("volatile", Value::array(reconstruction.volatile_parts())),
        ("stopped", reconstruction.stopped.as_ref().into()),
        (
            "lacks_because",
            reconstruction.lacks_because.as_ref().into(),
        ),
        ("not_started", Value::array(&reconstruction.not_started)),
        ("unreached", Value::array(&reconstruction.unreached)),
        (
            "other_files",
            Value::array(reconstruction.other_files.iter().map(|(path, _)| path)),
        ),
        ("shallow", reconstruction.shallow.into()),
        ("unsteady", u64::from(reconstruction.unsteady).into()),
        (
            "unsteady_difference",
            difference(reconstruction.unsteady_difference.as_ref()),
        ),
        ("compared_nothing", reconstruction.compared_nothing().into()),
        ("bytes_compared", reconstruction.compared().into()),
        ("bytes_counted", reconstruction.counted().into()),
        ("files", files_value(reconstruction.files)),
        ("calls", reconstruction.calls().into()),
        ("recorded_calls", reconstruction.recorded_calls.into()),
        ("tries", u64::from(reconstruction.tries).into()),
        ("clock_shift_ns", reconstruction.shift.ns.into()),
        ("request", request_value(reconstruction)),
        (
            "processes",
            Value::Array(reconstruction.processes.iter().map(process).collect()),
        ),
    ])
}

fn files_value(files: FileCounts) -> Value {
    Value::Object(vec![
        ("equal", (files.equal as u64).into()),
        ("different", (files.different as u64).into()),
        ("not_compared", (files.unknown as u64).into()),
    ])
}

fn request_value(reconstruction: &Reconstruction) -> Value {
    let Some(request) = &reconstruction.request else {
        return Value::Null;
    };
    let fed = request.fed.iter().map(|number| (*number as u64).into());
    let executed = request.executed;
    Value::Object(vec![
        ("number", (request.number as u64).into()),
        (
            "role",
            match request.is_client {
                true => "client",
                false => "server",
            }
            .into(),
        ),
        ("tries", u64::from(reconstruction.tries).into()),
        ("fed", Value::Array(fed.collect())),
        ("calls", request.calls.into()),
        ("bytes_compared", request.compared.into()),
        ("served", request.is_served.into()),
        ("differs_before", request.differs_before.into()),
        ("clock_shift_ns", reconstruction.shift.ns.into()),
        ("worked_on_s", request.worked_on.into()),
        ("start_calls", request.start.calls.into()),
        ("start_s", seconds(request.start.took)),
        ("copy_obstacles", Value::array(&request.start.obstacles)),
        ("executions", u64::from(executed.executions).into()),
        ("executed_in_copies", u64::from(executed.in_copies).into()),
        ("executed_calls", executed.calls.into()),
        ("executed_start_calls", executed.in_starts.into()),
        ("executed_s", seconds(executed.took)),
        ("executed_start_s", seconds(executed.took_in_starts)),
    ])
}

/// A time in ns as seconds.
fn seconds(ns: u64) -> Value {
    Value::Number(format!("{:.6}", Duration::from_nanos(ns).as_secs_f64()))
}

fn difference(found: Option<&Divergence>) -> Value {
    let Some(found) = found else {
        return Value::Null;
    };
    Value::Object(vec![
        ("kind", found.kind.words().into()),
        ("object", (&found.object).into()),
        ("position", found.position.into()),
        ("within", found.within.into()),
        ("recorded", (&found.recorded).into()),
        ("came", (&found.came).into()),
        ("volatile", found.volatile.as_ref().into()),
        ("calls", Value::array(&found.calls)),
        ("log_calls", Value::array(&found.log_calls)),
        ("recorded_source", origin_value(found.origins.0.as_ref())),
        ("came_source", origin_value(found.origins.1.as_ref())),
    ])
}

fn process(process: &ProcessVerdict) -> Value {
    let complaint = (!process.complaint.is_empty()).then(|| quoted(&process.complaint));
    Value::Object(vec![
        ("pid", process.pid.into()),
        ("program", (&process.program).into()),
        ("recorded_calls", process.recorded_calls.into()),
        ("answered_calls", process.matched.into()),
        ("bytes_fed", process.entered.into()),
        ("bytes_compared", process.compared().into()),
        ("bytes_counted", process.counted.into()),
        ("calls", process.came.into()),
        ("stderr", complaint.as_ref().into()),
        ("gap", process.gap.as_ref().into()),
        ("threads", (process.threads as u64).into()),
        ("own_calls", process.own_calls.into()),
        ("difference", difference(process.divergence.as_ref())),
    ])
}
