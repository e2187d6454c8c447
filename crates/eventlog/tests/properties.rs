//! Properties of every log, tried on many.

use crate::common;
use backstory_abi::{Chunk, OPS, op};
use backstory_eventlog::chunk::{ChunkBuilder, ChunkView, SkippedRecords};
use backstory_eventlog::event::{Event, Op};
use backstory_eventlog::record::{RawRecord, RecordBuilder};
use backstory_eventlog::{Log, LoggedContent, Writer, dump};
use backstory_files::Ident;
use common::{Scratch, ThreadStream};
use proptest::collection::vec;
use proptest::prelude::*;

/// Strings without NUL.
fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(1u8..=255, 0..40)
}

#[derive(Debug, Clone)]
struct Made {
    op: u16,
    time: u64,
    fields: (i32, i32, u32),
    result: Option<i32>,
    strings: [Vec<u8>; 2],
}

fn made() -> impl Strategy<Value = Made> {
    let any_op = proptest::sample::select(OPS).prop_map(|op| op.number);
    let ops = prop_oneof![9 => any_op, 1 => Just(op::KEPT)];
    // Numbers from a small range, so that processes fork, execute and reuse ids.
    let small = prop_oneof![0..6i32, any::<i32>()];
    let fields = (small.clone(), any::<i32>(), any::<u32>());
    let time = prop_oneof![0..50u64, any::<u64>()];
    (
        ops,
        time,
        fields,
        proptest::option::of(small),
        [text(), text()],
    )
        .prop_map(|(op, time, fields, result, strings)| Made {
            op,
            time,
            fields,
            result,
            strings,
        })
}

fn build<'a>(builder: &'a mut RecordBuilder, record: &Made) -> &'a [u8] {
    builder
        .start(record.op, record.time)
        .fd(record.fields.0)
        .arg(record.fields.1)
        .aux(record.fields.2);
    if record.op == op::KEPT {
        builder.ident(&Ident {
            ino: record.time,
            ..Ident::default()
        });
    }
    if let Some(result) = record.result {
        builder.result(result);
    }
    record.strings.iter().for_each(|s| {
        builder.string(s);
    });
    builder.finish()
}

fn chunk_of(head: Chunk, records: &[Made]) -> Vec<u8> {
    let mut chunk = ChunkBuilder::new(head);
    let mut builder = RecordBuilder::new();
    records
        .iter()
        .for_each(|s| assert!(chunk.push(build(&mut builder, s))));
    chunk.bytes().to_vec()
}

fn head() -> impl Strategy<Value = Chunk> {
    (0..4u64, 0..6u32, 0..6u32, 0..3u32, 0..3u32).prop_map(|(epoch, pid, tid, seq, ppid)| Chunk {
        epoch,
        pid,
        tid,
        seq,
        ppid,
        ..Chunk::default()
    })
}

fn log_of(chunks: &[Vec<u8>]) -> Scratch {
    let mut log = Scratch::new();
    log.clock(0).clock(40);
    chunks
        .iter()
        .for_each(|c| log.writer.chunk(c).expect("append"));
    log
}

/// Reads everything that can be read.
fn exhaust(log: &Log) -> Vec<Event> {
    let events: Vec<Event> = log.events().collect();
    log.identities();
    dump(log, &mut std::io::sink()).expect("dump");
    assert!(
        events.windows(2).all(|w| w[0].time <= w[1].time),
        "time never decreases"
    );
    let kept = events.iter().filter_map(|event| match &event.op {
        Op::Preserved { path, number, how } => Some(LoggedContent {
            time: event.time,
            ident: event.ident?,
            path: path.clone(),
            how: *how,
            number: match event.outcome.value() {
                Some(errno) if errno < 0 => Err(errno),
                _ => Ok(*number),
            },
        }),
        _ => None,
    });
    assert!(
        kept.eq(log.preserved()),
        "the preserved contents are among the events"
    );
    events
}

proptest! {
    #[test]
    fn records_come_out_as_they_went_in(records in vec(made(), 0..40)) {
        let bytes = chunk_of(Chunk::default(), &records);
        let (_, view) = ChunkView::new(&bytes).expect("a chunk");
        let mut at = 0;
        let mut skipped = SkippedRecords::default();
        for record in &records {
            let (found, head) = view.next(at.max(Chunk::SIZE), &mut skipped).expect("a record");
            at = found + usize::from(head.size);
            let raw = RawRecord::parse(view.from(found)).expect("whole");
            let bytes = record.strings.iter().map(|s| s.len() as u32 + 1).sum();
            let aux = if matches!(record.op, op::ARGS | op::ENV | op::VALUES) { bytes } else { record.fields.2 };
            prop_assert_eq!((head.op, head.time, head.fd, head.arg, head.aux),
                (record.op, record.time, record.fields.0, record.fields.1, aux));
            prop_assert_eq!(head.state == backstory_abi::DONE, record.result.is_some());
            prop_assert_eq!(head.result, record.result.unwrap_or(0));
            prop_assert_eq!(raw.strings(), [&record.strings[0][..], &record.strings[1][..]]);
        }
        prop_assert_eq!(view.next(at.max(Chunk::SIZE), &mut skipped), None);
        prop_assert_eq!(skipped, SkippedRecords::default());
    }

    #[test]
    fn any_operations_of_any_processes_make_a_sequence(
        chunks in vec((head(), vec(made(), 0..12)), 0..12),
    ) {
        let chunks: Vec<Vec<u8>> = chunks.iter().map(|(h, s)| chunk_of(*h, s)).collect();
        exhaust(&log_of(&chunks).open());
    }

    #[test]
    fn scribbling_in_a_chunk_spares_what_comes_before(
        records in vec(made(), 1..20),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
    ) {
        let mut bytes = chunk_of(Chunk { epoch: 1, pid: 1, tid: 1, ..Chunk::default() }, &records);
        let (_, before) = ChunkView::new(&bytes).expect("a chunk");
        let mut whole = Vec::new();
        let mut at = Chunk::SIZE;
        while let Some((found, head)) = before.next(at, &mut SkippedRecords::default()) {
            at = found + usize::from(head.size);
            whole.push((at, head));
        }
        let places: Vec<usize> = damage.iter().map(|(i, _)| Chunk::SIZE + i.index(bytes.len() - Chunk::SIZE)).collect();
        for (place, (_, value)) in places.iter().zip(&damage) {
            bytes[*place] = *value;
        }
        let first = places.iter().min().copied().unwrap_or(0);
        let (_, after) = ChunkView::new(&bytes).expect("a chunk");
        let mut at = Chunk::SIZE;
        for (end, head) in whole.iter().take_while(|(end, _)| *end <= first) {
            let found = after.next(at, &mut SkippedRecords::default());
            prop_assert_eq!(found, Some((end - usize::from(head.size), *head)));
            at = *end;
        }
        exhaust(&log_of(&[bytes]).open());
    }

    #[test]
    fn cuts_and_garbage_never_lose_an_undamaged_chunk_before_them(
        chunks in vec(vec(made(), 1..6), 1..6),
        cut in any::<prop::sample::Index>(),
        garbage in vec(any::<u8>(), 0..200),
    ) {
        let chunk = |(n, s): (usize, &Vec<Made>)| {
            let n = n as u32 + 1;
            chunk_of(Chunk { epoch: n.into(), pid: n, tid: n, ..Chunk::default() }, s)
        };
        let log = Scratch::new();
        let mut writer = Writer::reopen(log.path()).expect("reopen");
        let mut ends = Vec::new();
        for bytes in chunks.iter().enumerate().map(chunk) {
            writer.chunk(&bytes).expect("append");
            ends.push(std::fs::metadata(log.path()).expect("metadata").len() as usize);
        }
        let bytes = std::fs::read(log.path()).expect("read");
        let cut = cut.index(bytes.len() + 1);
        std::fs::write(log.path(), [&bytes[..cut], &garbage].concat()).expect("write");
        let Ok(opened) = Log::open(log.path()) else {
            prop_assert!(ends.iter().all(|e| *e > cut));
            return Ok(());
        };
        exhaust(&opened);
        let mut text = Vec::new();
        dump(&opened, &mut text).expect("dump");
        let seen = String::from_utf8_lossy(&text).lines().filter(|l| l.starts_with("chunk")).count();
        prop_assert!(seen >= ends.iter().filter(|e| **e <= cut).count());
    }

    #[test]
    fn random_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..2000), keep_magic in any::<bool>()) {
        let log = Scratch::new();
        let magic = if keep_magic { &backstory_eventlog::frame::MAGIC[..] } else { &[] };
        std::fs::write(log.path(), [magic, &bytes].concat()).expect("write");
        if let Ok(log) = Log::open(log.path()) {
            exhaust(&log);
        }
    }

    #[test]
    fn merging_is_sorting(streams in vec(vec(0..1000u64, 0..30), 1..8)) {
        let mut log = Scratch::new();
        let mut expected: Vec<(u64, usize, i32)> = Vec::new();
        for (number, times) in streams.iter().enumerate() {
            let mut times = times.clone();
            times.sort_unstable();
            let id = number as u32 + 1;
            let mut stream = ThreadStream::new(id.into(), id, id);
            for (position, time) in times.iter().enumerate() {
                stream.record(op::CLOSE, *time, |b| {
                    b.fd(position as i32).result(0);
                });
                expected.push((*time, number, position as i32));
            }
            log.add(&stream);
        }
        expected.sort_unstable();
        let fd = |e: &Event| match e.op {
            Op::Close { fd } => fd,
            _ => -1,
        };
        let merged: Vec<_> = log.events().iter().map(|e| (e.time as u64, e.pid as usize - 1, fd(e))).collect();
        prop_assert_eq!(merged, expected);
    }
}
