//! `of --bytes`, `--line`, `--cell`, `--member`: which bytes of which inputs a part came from.
//!
//! The answer comes from runs that the byte engine followed. It refines the edges of the graph, and
//! adds none. `of` without a part has a line of it ([`FileBytes`]), and so has `uses`
//! ([`UsedBytes`]).

mod file_bytes;
mod part;
mod streams;
mod used_bytes;
mod writers;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_bytes::{EntityKind, FlowKind, RangeSet};
use backstory_query::{self as query, FoundBytes, FoundSource};
use backstory_store::GraphStore;

use super::path_log::run_of;
use super::{Outcome, answer, near};
use crate::args::bytes::Selection;
use crate::args::lineage::LineageArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain};
use crate::json::{self, Value};
use crate::subject::{self, PathNotation, Reach};
use crate::text::line::{excerpt, printable};
use crate::text::words::counted;
use crate::version_contents::VersionContents;
use part::SelectedPart;
use streams::RecordedStreams;

pub use file_bytes::{FileBytes, refined_runs};
pub use used_bytes::UsedBytes;
pub use writers::{WrittenBytes, written_bytes};

/// The most ranges of one source that the text has.
const SHOWN: usize = 8;

/// The columns of input text that are shown of a range.
const EXCERPT: usize = 60;

/// The part that was asked about.
struct Asked {
    path: Vec<u8>,
    run: String,
    part: SelectedPart,
    content: Option<Vec<u8>>,
    /// The functions that wrote it.
    writers: Vec<WrittenBytes>,
}

/// Prints where a part of a file came from.
pub fn run(args: &LineageArgs, wanted: &Selection, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let given = args.path.clone().unwrap_or_default();
    let (path, run) = match subject::notation(&current, given.as_os_str())? {
        PathNotation::Plain(path) => (path, args.run.clone()),
        PathNotation::OfRun(path, run) => (path, Some(run)),
        PathNotation::AtMoment(..) => {
            return Err(Failure::misuse(
                "bytes are known by run: give PATH@RUN instead of a moment",
            ));
        }
    };
    let run = match run {
        Some(run) => current.run(Some(&run))?,
        None => writer(&current, &path)?,
    };
    let mut refined = refined_runs(&current);
    if !refined.has(&run) {
        return Err(Failure::not_found(format!(
            "run {run} has no bytes: `backstory refine {run}` finds them out"
        )));
    }
    let content = content(&current, &path, &run);
    let part = match (&content, wanted) {
        (Some(content), wanted) => part::find(content, &path, wanted)?,
        (None, Selection::Bytes(first, last)) => SelectedPart::of(*first..last.saturating_add(1)),
        (None, _) => {
            return Err(Failure::not_found(format!(
                "the content of {} as run {run} left it is not stored: ask with --bytes",
                path.display()
            )));
        }
    };
    let absolute = std::path::absolute(&path)?;
    // The address of a connection is no path.
    let address = path.as_os_str().as_bytes().to_vec();
    let mut path = absolute.as_os_str().as_bytes().to_vec();
    let mut found = refined.origins(&run, &path, &part.ranges)?;
    if found.is_none() {
        found = refined.origins(&run, &address, &part.ranges)?;
        path = address;
    }
    let Some(found) = found else {
        let path = absolute.display();
        return Err(Failure::not_found(match refined.is_whole(&run) {
            true => format!("the bytes of run {run} have no write to {path}"),
            false => format!(
                "only a part of run {run} has bytes, and none of {path}: `backstory refine {path}@{run}` finds them out"
            ),
        }));
    };
    let asked = Asked {
        writers: written_bytes(&current, &run, &path, &found.first),
        path,
        run,
        part,
        content,
    };
    answer(|out| match args.json {
        true => object(&asked, &found, out),
        false => text(&current, &asked, &found, out),
    })
}

/// The run that made the newest version of a file.
pub fn writer(current: &CurrentStore, path: &Path) -> Result<String, Failure> {
    let events = query::history(&current.store, path)?;
    let changed = |event: &&query::PathEvent| {
        event.change.leaves_file()
            && !matches!(
                event.change,
                query::PathChange::Metadata | query::PathChange::Found
            )
    };
    let newest = events.iter().rev().find(changed);
    let made = events.iter().rev().filter(changed);
    let mut made = made.filter(|event| !event.change.is_inferred());
    let run = match made.next() {
        Some(event) => run_of(current, event)?,
        None => None,
    };
    let Some(run) = run else {
        return Err(Failure::not_found(format!(
            "no recorded run wrote {}",
            path.display()
        )));
    };
    if newest.is_some_and(|event| event.change.is_inferred()) {
        complain(&format!(
            "{} was changed since outside of recorded runs; this is the version of run {run}",
            path.display()
        ));
    }
    Ok(run)
}

fn content(current: &CurrentStore, path: &Path, run: &str) -> Option<Vec<u8>> {
    let found = subject::find(current, path.as_os_str(), Some(run), Reach::Newest).ok()?;
    let version = *found.versions.first()?;
    current.store.entity(version).ok()?;
    VersionContents::new(current).read(version).ok()?
}

/// `bytes 100-120 (line 5, columns 3-23)`
fn place(content: Option<&[u8]>, range: &Range<u64>) -> String {
    let bytes = match range.end - range.start {
        0 => return format!("no bytes at {}", range.start),
        1 => format!("byte {}", range.start),
        _ => format!("bytes {}-{}", range.start, range.end - 1),
    };
    let Some(content) = content.filter(|content| backstory_comparison::is_text(content)) else {
        return bytes;
    };
    let ((line, first), (end, last)) = (
        part::position(content, range.start),
        part::position(content, range.end - 1),
    );
    match (line == end, first == last) {
        (true, true) => format!("{bytes} (line {line}, column {first})"),
        (true, false) => format!("{bytes} (line {line}, columns {first}-{last})"),
        _ => format!("{bytes} (lines {line}-{end})"),
    }
}

fn quoted(content: Option<&[u8]>, range: &Range<u64>) -> String {
    let bytes = content.and_then(|content| {
        let end = (range.end as usize).min(content.len());
        content.get(range.start as usize..end)
    });
    match bytes {
        Some(bytes) if !bytes.is_empty() => {
            let cut = &bytes[..bytes.len().min(4 * EXCERPT)];
            format!(": {}", excerpt(&String::from_utf8_lossy(cut), EXCERPT))
        }
        _ => String::new(),
    }
}

/// `bytes 9-16 (line 2, columns 1-8): birch,40`
fn heading(asked: &Asked) -> String {
    let content = asked.content.as_deref();
    let SelectedPart { ranges, within, .. } = &asked.part;
    if let ([range], None) = (&ranges[..], within) {
        return format!("{}{}", place(content, range), quoted(content, range));
    }
    let shown = ranges.iter().take(SHOWN);
    let shown: Vec<String> = shown.map(|range| place(content, range)).collect();
    let more = match ranges.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", and {}", counted(more, "more range", "more ranges")),
    };
    format!("{}{more}", shown.join(", "))
}

fn text(
    current: &CurrentStore,
    asked: &Asked,
    found: &FoundBytes,
    out: &mut impl Write,
) -> io::Result<()> {
    let content = asked.content.as_deref();
    writeln!(out, "{}, {}", near(&asked.path), heading(asked))?;
    if let (Some(name), Some(within)) = (&asked.part.name, &asked.part.within) {
        writeln!(
            out,
            "  (coarser than {name}: these bytes are {within}, and have more than it)"
        )?;
    }
    let whole = asked.writers.len() == 1;
    for writer in asked.writers.iter().take(SHOWN) {
        if let Some(line) = writer.line(content, whole) {
            writeln!(out, "  {line}")?;
        }
    }
    let mut streams = RecordedStreams::of(current);
    for source in &found.sources {
        source_text(current, source, &mut streams, out)?;
    }
    let constant = found.first.constant.count();
    if constant > 0 {
        let bytes = counted(constant as usize, "byte", "bytes");
        writeln!(out, "  {bytes} from no input: written by a program itself")?;
    }
    let lengths = asked
        .part
        .ranges
        .iter()
        .map(|range| range.end - range.start);
    let length: u64 = lengths.sum();
    let unwritten = length.saturating_sub(found.first.written.count());
    if unwritten > 0 {
        let bytes = counted(unwritten as usize, "byte", "bytes");
        writeln!(out, "  {bytes} not written by run {}", asked.run)?;
    }
    for why in &found.possible {
        let why = String::from_utf8_lossy(why);
        writeln!(out, "  possibly also from all that the run read: {why}")?;
    }
    if found.coarse {
        writeln!(
            out,
            "  (ranges are too large: there were too many to count each byte)"
        )?;
    }
    Ok(())
}

fn text_of(kind: FlowKind) -> &'static str {
    match kind {
        FlowKind::Copied => "copied from",
        FlowKind::Computed => "computed from",
        FlowKind::Implicit => "decided by",
    }
}

fn source_text(
    current: &CurrentStore,
    source: &FoundSource,
    streams: &mut RecordedStreams,
    out: &mut impl Write,
) -> io::Result<()> {
    let name = match source.entity.kind {
        EntityKind::File => near(&source.entity.path),
        EntityKind::Pipe => "a pipe".to_owned(),
        EntityKind::Socket if streams::is_address(&source.entity.path) => {
            let address = String::from_utf8_lossy(&source.entity.path);
            format!("the connection with {}", printable(address.as_bytes()))
        }
        EntityKind::Socket => "a socket".to_owned(),
        EntityKind::Device => near(&source.entity.path),
        EntityKind::Arguments => "the arguments of a program".to_owned(),
    };
    let path = Path::new(OsStr::from_bytes(&source.entity.path));
    let content = match source.entity.kind {
        EntityKind::File => content(current, path, &source.run),
        EntityKind::Pipe | EntityKind::Socket | EntityKind::Device => {
            streams.entered(&source.run, &source.entity.path)
        }
        EntityKind::Arguments => None,
    };
    // A byte can be in both sets, if different bytes of the part came from it.
    for kind in FlowKind::ALL {
        let (how, ranges) = (text_of(kind), source.of(kind));
        let count = ranges.iter().count();
        for range in ranges.iter().take(SHOWN) {
            let (own, text) = (
                place(content.as_deref(), &range),
                quoted(content.as_deref(), &range),
            );
            writeln!(out, "  {how} {name}, {own}{text}")?;
        }
        if count > SHOWN {
            let more = counted(count - SHOWN, "range", "ranges");
            writeln!(out, "  … and {more} of {name}")?;
        }
    }
    Ok(())
}

fn ranges(set: &RangeSet) -> Value {
    pairs(set.iter())
}

fn pairs(ranges: impl Iterator<Item = Range<u64>>) -> Value {
    let pair = |range: Range<u64>| Value::array([range.start, range.end]);
    Value::Array(ranges.map(pair).collect())
}

/// The word of a kind of source, for JSON.
pub fn kind_word(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::File => "file",
        EntityKind::Pipe => "pipe",
        EntityKind::Socket => "socket",
        EntityKind::Device => "device",
        EntityKind::Arguments => "arguments",
    }
}

/// Ranges in JSON have their end behind the last byte.
fn object(asked: &Asked, found: &FoundBytes, out: &mut impl Write) -> io::Result<()> {
    let sources = found.sources.iter().map(|source| {
        Value::Object(vec![
            ("kind", kind_word(source.entity.kind).into()),
            ("path", source.entity.path.as_slice().into()),
            ("run", (&source.run).into()),
            ("copied", ranges(&source.of(FlowKind::Copied))),
            ("computed", ranges(&source.of(FlowKind::Computed))),
            ("implicit", ranges(&source.of(FlowKind::Implicit))),
        ])
    });
    let sources = Value::Array(sources.collect());
    let possible = found.possible.iter().map(|why| why.as_slice());
    let start = asked.part.ranges.first().map(|range| range.start);
    let end = asked.part.ranges.last().map(|range| range.end);
    json::object(
        out,
        vec![
            ("path", asked.path.as_slice().into()),
            ("run", (&asked.run).into()),
            ("start", start.into()),
            ("end", end.into()),
            ("ranges", pairs(asked.part.ranges.iter().cloned())),
            ("part", asked.part.name.as_ref().into()),
            ("within", asked.part.within.as_ref().into()),
            ("sources", sources),
            (
                "written_by",
                Value::Array(asked.writers.iter().map(WrittenBytes::json).collect()),
            ),
            ("constant", ranges(&found.first.constant)),
            ("written", ranges(&found.first.written)),
            ("possible", Value::array(possible)),
            ("coarse", found.coarse.into()),
        ],
    )
}
