//! Every operation is decoded as it was encoded.

use crate::common;
use backstory_abi::*;
use backstory_eventlog::dump;
use backstory_eventlog::event::{
    Bytes, Described, Event, MetadataPart, Op, Outcome, PreserveMethod, ResourceAccess, ThreadStep,
    WordRole,
};
use backstory_eventlog::record::{self, RecordBuilder};
use common::{Scratch, ThreadStream};

fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

/// The event of one record that a thread logged.
fn one(op: u16, build: impl FnOnce(&mut RecordBuilder)) -> Event {
    let mut log = Scratch::new();
    let mut stream = ThreadStream::new(1, 10, 11);
    stream.record(op, 5, build);
    let mut events = log.add(&stream).events();
    assert_eq!(events.len(), 1, "{op}");
    events.remove(0)
}

/// fd 3, arg 4, aux 1, two strings: the event's operation.
fn plain(op: u16) -> Op {
    one(op, |b| {
        b.fd(3)
            .arg(4)
            .aux(1)
            .result(9)
            .string(b"one")
            .string(b"two");
    })
    .op
}

fn address(op: u16) -> Op {
    one(op, |b| {
        b.fd(3).result(9).address(b"\x01\x00/s\0");
    })
    .op
}

#[test]
fn file_operations_keep_their_fields() {
    let one = bytes("one");
    assert_eq!(
        plain(op::OPEN),
        Op::Open {
            dir: 3,
            path: one.clone(),
            flags: 4,
            mode: 1
        }
    );
    assert_eq!(plain(op::CLOSE), Op::Close { fd: 3 });
    assert_eq!(
        plain(op::CLOSE_RANGE),
        Op::CloseRange {
            first: 3,
            last: 1,
            flags: 4
        }
    );
    assert_eq!(plain(op::READ), Op::Read { fd: 3 });
    assert_eq!(plain(op::WRITE), Op::Write { fd: 3 });
    assert_eq!(
        plain(op::MAP),
        Op::Map {
            fd: 3,
            prot: 4,
            flags: 1
        }
    );
    assert_eq!(
        plain(op::DUP),
        Op::Dup {
            fd: 3,
            cloexec: true,
            replaced: true
        }
    );
    assert_eq!(plain(op::CLOEXEC), Op::Cloexec { fd: 3, on: true });
    assert_eq!(
        plain(op::TRUNCATE),
        Op::Truncate {
            fd: 3,
            path: one.clone()
        }
    );
    assert_eq!(plain(op::COPY), Op::Copy { from: 3, to: 4 });
    assert_eq!(
        plain(op::STAT),
        Op::Stat {
            dir: 3,
            path: one.clone(),
            flags: 4
        }
    );
    assert_eq!(
        plain(op::ACCESS),
        Op::Access {
            dir: 3,
            path: one.clone(),
            mode: 4
        }
    );
    assert_eq!(
        plain(op::READLINK),
        Op::Readlink {
            dir: 3,
            path: one.clone()
        }
    );
    assert_eq!(plain(op::LIST), Op::List { fd: 3 });
}

#[test]
fn changes_of_names_keep_their_fields() {
    let (one, two) = (bytes("one"), bytes("two"));
    let rename = Op::Rename {
        from_dir: 3,
        from: one.clone(),
        to_dir: 4,
        to: two.clone(),
        flags: 1,
    };
    assert_eq!(plain(op::RENAME), rename);
    let link = Op::Link {
        from_dir: 3,
        from: one.clone(),
        to_dir: 4,
        to: two.clone(),
        flags: 1,
    };
    assert_eq!(plain(op::LINK), link);
    assert_eq!(
        plain(op::SYMLINK),
        Op::Symlink {
            target: one.clone(),
            dir: 3,
            path: two.clone()
        }
    );
    assert_eq!(
        plain(op::LINK_TEXT),
        Op::LinkText {
            dir: 3,
            path: bytes("one"),
            text: bytes("two")
        }
    );
    assert_eq!(
        plain(op::UNLINK),
        Op::Unlink {
            dir: 3,
            path: one.clone(),
            directory: false
        }
    );
    assert_eq!(
        plain(op::MKDIR),
        Op::Mkdir {
            dir: 3,
            path: one.clone()
        }
    );
    assert_eq!(
        plain(op::MKNOD),
        Op::Mknod {
            dir: 3,
            path: one.clone(),
            mode: 1
        }
    );
    assert_eq!(
        plain(op::META),
        Op::Meta {
            dir: 3,
            path: one.clone(),
            what: MetadataPart::Attributes,
            link: false
        }
    );
    assert_eq!(
        plain(op::CHDIR),
        Op::Chdir {
            fd: 3,
            path: one.clone(),
            now: two.clone()
        }
    );
    assert_eq!(plain(op::CHROOT), Op::Chroot { path: one.clone() });
    assert_eq!(
        plain(op::MOUNT),
        Op::Mount {
            source: one.clone(),
            target: two.clone(),
            unmounted: false,
            flags: 1
        }
    );
    assert_eq!(
        plain(op::PIVOT),
        Op::Pivot {
            new_root: one,
            put_old: two
        }
    );
}

#[test]
fn process_operations_keep_their_fields() {
    let (path, second) = (bytes("one"), bytes("two"));
    assert_eq!(
        plain(op::START),
        Op::Start {
            ppid: 4,
            forked: true
        }
    );
    assert_eq!(plain(op::NAMESPACE), Op::Namespace { flags: 1 });
    assert_eq!(
        plain(op::FORK),
        Op::Fork {
            flags: 1,
            spawn: None
        }
    );
    let exec = Op::Exec {
        dir: 3,
        path: path.clone(),
        flags: 1,
        args: vec![],
        env: None,
    };
    assert_eq!(plain(op::EXEC), exec);
    assert_eq!(
        plain(op::WAIT),
        Op::Wait {
            status: 4,
            looked: true
        }
    );
    assert_eq!(
        plain(op::EXIT),
        Op::Exit {
            status: 4,
            processor_time: Some((3 << 32 | 1) * 1000)
        }
    );
    assert_eq!(
        plain(op::THREAD),
        Op::Thread {
            handle: 4 << 32 | 3,
            what: ThreadStep::Create
        }
    );
    assert_eq!(plain(op::KILL), Op::Kill { pid: 3, signal: 4 });
    assert_eq!(plain(op::LOST), Op::Lost { count: 1, why: 4 });
    assert_eq!(plain(op::OPAQUE), Op::Opaque { name: path.clone() });
    assert_eq!(plain(op::LOAD), Op::Load { path: path.clone() });
    assert_eq!(plain(op::IDENT), Op::Ident { path: path.clone() });
    assert_eq!(plain(op::GONE), Op::Gone { status: Some(4) });
    assert_eq!(
        plain(op::BORN),
        Op::Born {
            parent: 4,
            exe: path,
            cwd: second
        }
    );
    assert_eq!(
        plain(op::HOLD),
        Op::HeldDescriptor {
            fd: 4,
            flags: Some(1),
            target: bytes("one")
        }
    );
    assert_eq!(
        plain(op::KEPT),
        Op::Preserved {
            path: bytes("one"),
            number: 4,
            how: Some(PreserveMethod::Link)
        }
    );
}

#[test]
fn channel_operations_keep_their_fields() {
    let peer: Bytes = b"\x01\x00/s\0".as_slice().into();
    assert_eq!(
        plain(op::PIPE),
        Op::Pipe {
            read: 3,
            write: 4,
            flags: 1
        }
    );
    assert_eq!(plain(op::SOCKET), Op::Socket { domain: 3, kind: 4 });
    assert_eq!(
        plain(op::SOCKETPAIR),
        Op::SocketPair {
            a: 3,
            b: 4,
            kind: 1
        }
    );
    assert_eq!(
        address(op::CONNECT),
        Op::Connect {
            fd: 3,
            kind: 0,
            address: peer.clone()
        }
    );
    assert_eq!(
        address(op::BIND),
        Op::Bind {
            fd: 3,
            address: peer.clone()
        }
    );
    assert_eq!(
        address(op::ACCEPT),
        Op::Accept {
            fd: 3,
            address: peer
        }
    );
    assert_eq!(plain(op::LISTEN), Op::Listen { fd: 3 });
    assert_eq!(
        plain(op::PASS),
        Op::Pass {
            socket: 3,
            fd: 4,
            received: true
        }
    );
    assert_eq!(plain(op::MEMFD), Op::Memfd { name: bytes("one") });
    assert_eq!(plain(op::EVENTFD), Op::Eventfd { kind: 4 });
    assert_eq!(
        one(op::ENDS, |b| {
            let ends = [&7u64.to_le_bytes()[..], &[1; 28], &[2; 28]].concat();
            b.fd(3).arg(1).result(0).address(&ends);
        })
        .op,
        Op::Ends {
            fd: 3,
            accepted: true,
            network: 7,
            own: [1; 28][..].into(),
            other: [2; 28][..].into(),
        }
    );
    assert_eq!(
        address(op::DATAGRAM),
        Op::Datagram {
            fd: 3,
            received: false,
            address: b"\x01\x00/s\0".as_slice().into()
        }
    );
}

#[test]
fn statements_of_a_source_keep_their_fields() {
    let (one, two) = (bytes("one"), bytes("two"));
    let work = Op::Work {
        inside: Some(4),
        what: one.clone(),
        text: two.clone(),
    };
    assert_eq!(plain(op::WORK), work);
    let resource = Op::Resource {
        number: 3,
        access: ResourceAccess::Read,
        name: one.clone(),
    };
    assert_eq!(plain(op::RESOURCE), resource);
    let fact = Op::Extended {
        kind: one,
        payload: two,
    };
    assert_eq!(plain(op::FACT), fact);
}

#[test]
fn statements_of_a_description_keep_their_fields() {
    use backstory_abi as abi;
    let statement = |aux: u32, fill: fn(&mut RecordBuilder)| {
        let record = |b: &mut RecordBuilder| {
            b.aux(aux).fd(7).arg(5).result(0x200);
            fill(b);
        };
        match one(op::DESCRIBED, record).op {
            Op::Described(statement) => statement,
            other => panic!("{other:?}"),
        }
    };
    let times = |b: &mut RecordBuilder| {
        b.string(b"-3 9");
    };
    let ended = abi::DESCRIBED_ACTIVITY | 2 << 8 | abi::DESCRIBED_ENDED | abi::DESCRIBED_PART;
    let activity = Described::Activity {
        number: 7,
        parent: Some(5),
        epoch: 2,
        start: -3,
        end: 9,
        status: Some(0x200),
        is_part: true,
        execed: false,
    };
    assert_eq!(statement(ended, times), activity);
    let edge = Described::Edge {
        activity: 7,
        entity: 5,
        relation: 6,
        is_certain: true,
        start: -3,
        end: 9,
    };
    let certain = abi::DESCRIBED_EDGE | 6 << 8 | abi::DESCRIBED_CERTAIN;
    assert_eq!(statement(certain, times), edge);
    let entity = Described::Entity {
        number: 7,
        kind: 8,
        version: 0x200,
        previous: Some(5),
        last: true,
        path: bytes("/a"),
    };
    let last = abi::DESCRIBED_ENTITY | 8 << 8 | abi::DESCRIBED_LAST;
    assert_eq!(
        statement(last, |b| {
            b.string(b"/a");
        }),
        entity
    );
    let derived = Described::Derived {
        entity: 7,
        from: 5,
        activity: 0x200,
        time: -3,
    };
    assert_eq!(statement(abi::DESCRIBED_DERIVED, times), derived);
    let word = Described::Word {
        activity: 7,
        role: WordRole::Directory,
        text: bytes("/w"),
        more: true,
    };
    let directory = abi::DESCRIBED_WORD | 2 << 8;
    assert_eq!(
        statement(directory, |b| {
            b.string(b"/w").more();
        }),
        word
    );
    let inform = Described::Inform {
        from: 7,
        to: 5,
        why: 3,
        time: -3,
    };
    assert_eq!(statement(abi::DESCRIBED_INFORM | 3 << 8, times), inform);
    let rank = Described::Rank {
        activity: 7,
        place: bytes("{}"),
    };
    assert_eq!(
        statement(abi::DESCRIBED_RANK, |b| {
            b.string(b"{}");
        }),
        rank
    );
}

#[test]
fn every_operation_is_an_event_or_part_of_one() {
    for info in OPS {
        let mut log = Scratch::new();
        let mut stream = ThreadStream::new(1, 10, 10);
        stream.record(info.number, 1, |b| {
            b.aux(1).result(0).string(b"x").string(b"y");
        });
        // `RUNS` occurs only among resolved identities.
        let none = matches!(info.number, op::ARGS | op::ENV | op::RUNS);
        assert_eq!(
            log.add(&stream).events().len(),
            usize::from(!none),
            "{}",
            info.name
        );
    }
}

#[test]
fn outcomes_say_how_they_are_known() {
    let seen = one(op::OPEN, |b| {
        b.result(-2).string(b"x");
    });
    assert_eq!(seen.outcome, Outcome::Done(-2));
    let concluded = one(op::OPEN, |b| {
        b.predicted(0).resolved().string(b"/x");
    });
    assert_eq!(concluded.outcome, Outcome::Predicted(0));
    assert!(concluded.resolved && !seen.resolved);
    let open = one(op::EXEC, |b| {
        b.string(b"/x");
    });
    assert_eq!(open.outcome, Outcome::Unknown);
    assert_eq!((open.pid, open.tid, open.time), (10, 11, 5));
}

fn ident(ino: u64, mode: u32) -> backstory_files::Ident {
    backstory_files::Ident {
        dev: 1,
        ino,
        size: 3,
        mtime: -4,
        ctime: 5,
        birth: 6,
        mode,
        nlink: 8,
    }
}

#[test]
fn an_identity_comes_with_its_record() {
    let event = one(op::CLOSE, |b| {
        b.fd(3).result(0).ident(&ident(7, 0o100_644));
    });
    assert_eq!(event.ident, Some(ident(7, 0o100_644)));
}

fn exec_of(events: &[Event]) -> Vec<(Vec<Bytes>, Option<Vec<Bytes>>)> {
    let exec = |e: &Event| match &e.op {
        Op::Exec { args, env, .. } => Some((args.clone(), env.as_ref().map(|e| e.to_vec()))),
        _ => None,
    };
    events.iter().filter_map(exec).collect()
}

#[test]
fn arguments_and_environment_are_joined_from_their_pieces() {
    let mut log = Scratch::new();
    let mut stream = ThreadStream::new(1, 10, 10);
    stream.record(op::ARGS, 1, |b| {
        b.result(0).string(b"cc").string(b"").string(b"-ofi").more();
    });
    stream.record(op::ARGS, 2, |b| {
        b.result(0).string(b"rs").more();
    });
    stream.record(op::ARGS, 3, |b| {
        b.result(0)
            .string(b"t")
            .string(b"x.c")
            .string(b"")
            .string(b"");
    });
    stream.record(op::ENV, 4, |b| {
        b.fd(77).arg(-1).result(0).string(b"A=1");
    });
    stream.record(op::ENV, 5, |b| {
        b.fd(77).arg(-1).result(0).string(b"B=2");
    });
    stream.record(op::EXEC, 6, |b| {
        b.arg(6).string(b"/bin/cc");
    });
    // Another program in the same environment, with unreadable arguments.
    let mut other = ThreadStream::new(2, 20, 20);
    other.record(op::ENV, 1, |b| {
        b.fd(77).arg(-1).result(0);
    });
    other.record(op::EXEC, 2, |b| {
        b.arg(3).string(b"/bin/ld");
    });
    let args: Vec<Bytes> = ["cc", "", "-ofirst", "x.c", "", ""].map(bytes).into();
    let env = Some(vec![bytes("A=1"), bytes("B=2")]);
    let execs = exec_of(&log.add(&other).add(&stream).events());
    assert_eq!(execs, [(vec![], env.clone()), (args, env)]);
}

#[test]
fn empty_arguments_at_a_records_end_are_not_padding() {
    let mut log = Scratch::new();
    let mut stream = ThreadStream::new(1, 10, 10);
    stream.record(op::ARGS, 1, |b| {
        b.result(0).string(b"sh").string(b"").string(b"");
    });
    stream.record(op::ARGS, 2, |b| {
        b.result(0).string(b"x");
    });
    stream.record(op::EXEC, 3, |b| {
        b.arg(4).string(b"/bin/sh");
    });
    let args: Vec<Bytes> = ["sh", "", "", "x"].map(bytes).into();
    assert_eq!(exec_of(&log.add(&stream).events()), [(args, None)]);
}

#[test]
fn an_environment_that_is_not_in_the_log_is_unknown_if_something_was_lost() {
    let mut log = Scratch::new();
    let mut stream = ThreadStream::new(1, 10, 10);
    stream.record(op::ENV, 1, |b| {
        b.fd(77).arg(-1).result(0);
    });
    stream.record(op::EXEC, 2, |b| {
        b.string(b"/bin/ld");
    });
    // No record was lost, so it can only be the empty one.
    assert_eq!(
        exec_of(&log.add(&stream).events()),
        [(vec![], Some(vec![]))]
    );
    let end = backstory_eventlog::run::RunEnd {
        lost: 1,
        ..Default::default()
    };
    log.writer.end(&end).expect("append");
    assert_eq!(exec_of(&log.events()), [(vec![], None)]);
}

#[test]
fn the_guard_joins_each_threads_own_pieces() {
    let mut log = Scratch::new();
    let (mut first, mut second) = (ThreadStream::guard(0), ThreadStream::guard(1));
    for (pid, name) in [(10, "ten"), (20, "twenty")] {
        first.by(pid, pid).record(op::ARGS, 1, |b| {
            b.result(0).string(name.as_bytes());
        });
        first.by(pid, pid).record(op::ENV, 1, |b| {
            b.result(0).string(format!("NAME={name}").as_bytes());
        });
    }
    for pid in [20, 10] {
        second.by(pid, pid).record(op::EXEC, 2, |b| {
            b.arg(1).resolved().string(b"/bin/x");
        });
    }
    let events = log.add(&first).add(&second).events();
    let of = |name: &str| {
        (
            vec![bytes(name)],
            Some(vec![bytes(&format!("NAME={name}"))]),
        )
    };
    assert_eq!(exec_of(&events), [of("twenty"), of("ten")]);
    assert_eq!(events[0].pid, 20);
}

#[test]
fn a_string_that_does_not_fit_is_cut_and_says_so() {
    let long = vec![b'x'; 70_000];
    let mut builder = RecordBuilder::new();
    let bytes = builder
        .start(op::OPEN, 1)
        .string(&long)
        .string(&long)
        .finish();
    let raw = record::RawRecord::parse(bytes).expect("a record");
    assert!(raw.head.flags & F_CUT != 0);
    assert_eq!(usize::from(raw.head.size), bytes.len());
    assert!(bytes.len() <= record::MAX && raw.strings()[0].len() > 65_000);
}

#[test]
fn identities_answer_for_paths() {
    let mut log = Scratch::new();
    let mut builder = RecordBuilder::new();
    let (file, link) = (ident(1, 0o100_644), ident(2, 0o120_777));
    let mut records = Vec::new();
    records.extend_from_slice(builder.identity(1, b"/file", false, Ok(&file)));
    records.extend_from_slice(builder.identity(1, b"/link", false, Ok(&link)));
    records.extend_from_slice(builder.identity(1, b"/gone", false, Err(2)));
    records.extend_from_slice(builder.identity(1, b"/through", true, Ok(&file)));
    log.writer.idents(&records).expect("append");
    assert!(!log.open().resolved());
    records.clear();
    records.extend_from_slice(builder.identity(1, b"/link", true, Ok(&file)));
    log.writer.resolved(&records).expect("append");
    let log = log.open();
    assert!(log.resolved() && log.damage().is_none());
    let found = log.identities();
    assert_eq!(found.len(), 4);
    assert_eq!(found.of(b"/file", false), Some(Some(file)));
    assert_eq!(found.of(b"/file", true), Some(Some(file)), "it is no link");
    assert_eq!(found.of(b"/link", false), Some(Some(link)));
    assert_eq!(found.of(b"/link", true), Some(Some(file)));
    assert_eq!(found.of(b"/gone", true), Some(None));
    assert_eq!(found.of(b"/through", false), None, "it may be a link");
    assert_eq!(found.of(b"/unheard-of", true), None);
    assert_eq!(
        log.events().count(),
        0,
        "what is said after the end is no event"
    );
}

#[test]
fn a_settlement_of_many_paths_is_read_whole() {
    let mut log = Scratch::new();
    let mut builder = RecordBuilder::new();
    let mut records = Vec::new();
    for i in 0..30_000 {
        records.extend_from_slice(builder.identity(
            1,
            format!("/file{i}").as_bytes(),
            true,
            Ok(&ident(i, 0)),
        ));
    }
    log.writer.resolved(&records).expect("append");
    assert_eq!(log.open().identities().len(), 30_000);
}

#[test]
fn the_dump_has_a_line_for_each_record() {
    let mut log = Scratch::new();
    let mut stream = ThreadStream::new(1, 10, 10);
    stream.record(op::OPEN, 1, |b| {
        b.fd(-100).result(3).string(b"new\nline");
    });
    stream.record(op::CONNECT, 2, |b| {
        b.fd(3).address(b"\x01\x00/s");
    });
    log.add(&stream).clock(3);
    let mut text = Vec::new();
    dump(&log.open(), &mut text).expect("dump");
    let text = String::from_utf8(text).expect("ASCII");
    assert!(
        text.contains("1 OPEN fd=-100 arg=0x0 aux=0x0 -> 3 \"new\\nline\"\n"),
        "{text}"
    );
    assert!(
        text.contains("2 CONNECT fd=3 arg=0x0 aux=0x4 -> ? \\x01\\x00/s\n"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 5);
}
