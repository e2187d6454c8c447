//! Prints a log as text, one line for each record, for debugging. The output is no format and may
//! change.

use crate::chunk::{ChunkView, SkippedRecords};
use crate::event::FunctionStep;
use crate::log::Log;
use crate::record::RawRecord;
use backstory_abi::{
    Chunk, DONE, F_CHILD, F_CUT, F_MORE, F_PREDICTED, F_PRIVATE, F_RESOLVED, LIST, RESERVED, op,
    op_info,
};
use std::io::{Result, Write};

const FLAGS: [(u16, &str); 6] = [
    (F_CUT, "cut"),
    (F_MORE, "more"),
    (F_PREDICTED, "predicted"),
    (F_RESOLVED, "resolved"),
    (F_CHILD, "child"),
    (F_PRIVATE, "private"),
];

/// Writes every record in the log's order, and the parts that could not be read.
pub fn dump(log: &Log, out: &mut impl Write) -> Result<()> {
    let header = log.header();
    writeln!(
        out,
        "run {} backstory {} boot {}",
        header.id.escape_debug(),
        header.version.escape_debug(),
        header.boot_id.escape_debug()
    )?;
    for point in log.frames().points() {
        writeln!(out, "clock {} = {} ns", point.counter, point.real)?;
    }
    for chunk in log.frames().chunks() {
        let Some((head, view)) = ChunkView::new(log.frames().bytes(&chunk.place)) else {
            continue;
        };
        writeln!(
            out,
            "chunk {} at {:#x}: pid {} tid {} epoch {} seq {} ppid {} host {} next {}",
            head.index,
            chunk.place.start,
            head.pid,
            head.tid,
            head.epoch,
            head.seq,
            head.ppid,
            head.host_pid,
            head.next
        )?;
        if chunk.continues() {
            writeln!(out, "  from {}", chunk.from)?;
        }
        records(&view, Chunk::SIZE, out)?;
    }
    for place in log.frames().idents() {
        writeln!(out, "resolved at {:#x}", place.start)?;
        records(&ChunkView::bare(log.frames().bytes(place)), 0, out)?;
    }
    if let Some(end) = log.end() {
        writeln!(out, "end {end:?}")?;
    }
    let damage = log.damage();
    if damage.is_none() {
        Ok(())
    } else {
        writeln!(out, "damage {damage:?}")
    }
}

fn records(view: &ChunkView<'_>, mut offset: usize, out: &mut impl Write) -> Result<()> {
    while let Some((at, head)) = view.next(offset, &mut SkippedRecords::default()) {
        if at != offset {
            writeln!(out, "  {offset:5} {} bytes that are no record", at - offset)?;
        }
        if let Some(raw) = RawRecord::parse(view.from(at)) {
            record(at, &raw, out)?;
        }
        offset = at + usize::from(head.size);
    }
    Ok(())
}

fn record(at: usize, raw: &RawRecord<'_>, out: &mut impl Write) -> Result<()> {
    let h = &raw.head;
    let info = op_info(h.op);
    write!(out, "  {at:5} {} {}", h.time, info.map_or("?", |i| i.name))?;
    if let Some(caller) = &raw.caller {
        write!(
            out,
            " [{}/{} nr {} arch {:x}]",
            caller.pid, caller.tid, caller.nr, caller.arch
        )?;
    }
    write!(out, " fd={} arg={:#x} aux={:#x}", h.fd, h.arg, h.aux)?;
    match h.state {
        DONE => write!(out, " -> {}", h.result)?,
        RESERVED => write!(out, " -> ?")?,
        other => write!(out, " state {other}")?,
    }
    match (h.op, info.map_or(0, |i| i.strings)) {
        (op::CONNECT | op::BIND | op::ACCEPT | op::DATAGRAM | op::TRAFFIC | op::ENDS, _) => {
            let address = raw.body.get(..h.aux as usize).unwrap_or(raw.body);
            write!(out, " {}", address.escape_ascii())?;
        }
        (op::CALLS, _) => {
            if let Some(crate::event::Op::Calls(steps)) = crate::decode::operation(raw) {
                steps.iter().try_for_each(|step| write_step(step, out))?;
            }
        }
        (_, LIST) => raw
            .list()
            .try_for_each(|s| write!(out, " \"{}\"", s.escape_ascii()))?,
        (_, count) => {
            let strings = raw.strings();
            strings
                .iter()
                .take(count.into())
                .try_for_each(|s| write!(out, " \"{}\"", s.escape_ascii()))?;
        }
    }
    for (_, name) in FLAGS.iter().filter(|(bit, _)| h.flags & bit != 0) {
        write!(out, " {name}")?;
    }
    if let Some(i) = &raw.ident {
        write!(
            out,
            " ident dev={:#x} ino={} size={} mtime={} ctime={} birth={} mode={:o} nlink={}",
            i.dev, i.ino, i.size, i.mtime, i.ctime, i.birth, i.mode, i.nlink
        )?;
    }
    writeln!(out)
}

/// A call is `+` and the number of the function, a return `-`. The counts since the record follow.
fn write_step(step: &FunctionStep, out: &mut impl Write) -> std::io::Result<()> {
    match step {
        FunctionStep::Call { number, after } => write!(out, " +{number:x}@{after}"),
        FunctionStep::Return { after } => write!(out, " -@{after}"),
    }
}
