//! Descriptors that are copied before the record says where they lead.
#![allow(clippy::unwrap_used)]

use backstory_abi::deep;
use backstory_deep::{Call, Section};
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::process::{CallObject, ResultKey};
use libc::{S_IFREG, c_long};
use std::collections::BTreeSet;

fn call(number: c_long, fd: i32, result: i64) -> Call {
    Call {
        number: number as u16,
        fd,
        result,
        ..Call::default()
    }
}

fn with(mut call: Call, kind: u16, arg: u16, bytes: &[u8]) -> Call {
    let bytes = bytes.to_vec();
    call.sections.push(Section { kind, arg, bytes });
    call
}

fn begin(how: u64) -> Call {
    Call {
        a: how,
        ..call(c_long::from(deep::BEGIN), 0, 1)
    }
}

/// The fact that a descriptor leads to the file with this inode.
fn leads_to(fd: i32, inode: u64) -> Call {
    let ident = [1u64.to_le_bytes(), inode.to_le_bytes()].concat();
    let call = call(c_long::from(deep::DESCRIPTOR), fd, i64::from(S_IFREG));
    let call = with(call, deep::IDENT, 0, &ident);
    with(call, deep::PATH, 0, format!("/out/{inode}").as_bytes())
}

fn write(fd: i32) -> Call {
    with(call(libc::SYS_write, fd, 1), deep::LEFT, 1, b"x")
}

/// The inodes that each process wrote to.
fn written(processes: Vec<(u32, Vec<Call>)>) -> Vec<BTreeSet<u64>> {
    let all = processes.into_iter().enumerate();
    let all = all.map(|(at, (pid, calls))| (at as u64 + 1, pid, 1, calls.into_iter()));
    let run = RecordedRun::arrange(all);
    let inode = |id: &usize| run.resources[*id].ident.map_or(0, |(_, inode)| inode);
    let processes = run.processes.iter();
    let each = processes.map(|process| {
        let known: BTreeSet<usize> = process.inherited.iter().map(|(_, id, _)| *id).collect();
        let streams = process.streams.iter();
        let used = streams.filter(|(_, streams)| !streams.output.is_empty());
        used.map(|(id, _)| id)
            .inspect(|id| assert!(known.contains(id) || process.held.iter().any(|h| h.1 == **id)))
            .map(inode)
            .collect()
    });
    each.collect()
}

#[test]
fn a_copied_descriptor_is_the_resource_that_another_process_knows() {
    let copy = |from, to| call(libc::SYS_dup2, from, to);
    let all = written(vec![
        (10, vec![begin(deep::BY_EXEC), leads_to(2, 7), write(2)]),
        (
            11,
            vec![
                begin(deep::BY_EXEC),
                copy(1, 11),
                copy(3, 1),
                copy(11, 1),
                leads_to(1, 7),
                write(1),
                write(11),
            ],
        ),
    ]);
    assert_eq!(all, [BTreeSet::from([7]), BTreeSet::from([7])]);
}

#[test]
fn a_number_of_the_parent_says_nothing_of_a_child_without_a_record() {
    let parent = vec![
        begin(deep::BY_EXEC),
        leads_to(5, 8),
        call(libc::SYS_dup2, 1, 11),
        call(libc::SYS_vfork, -1, 12),
        leads_to(11, 7),
        write(11),
    ];
    // Before its program, the child moved descriptor 5 to 1.
    let child = vec![begin(deep::BY_EXEC), leads_to(1, 8), write(1)];
    let all = written(vec![(10, parent), (12, child)]);
    assert_eq!(all, [BTreeSet::from([7]), BTreeSet::from([8])]);
}

#[test]
fn a_file_that_the_parent_opened_is_the_same_where_a_child_without_a_record_moved_it() {
    let opened = |fd| {
        let opened = call(libc::SYS_openat, -100, fd);
        with(opened, deep::PATH, 1, format!("file-{fd}").as_bytes())
    };
    let parent = vec![
        begin(deep::BY_EXEC),
        opened(3),
        opened(4),
        leads_to(3, 7),
        leads_to(4, 8),
        write(4),
        call(libc::SYS_vfork, -1, 12),
    ];
    // Before its program, the child moved descriptor 4 to 3.
    let child = vec![begin(deep::BY_EXEC), leads_to(3, 8), write(3)];
    let all = vec![
        (1, 10, 1, parent.into_iter()),
        (2, 12, 10, child.into_iter()),
    ];
    let run = RecordedRun::arrange(all.into_iter());
    let [parent, child] = &run.processes[..] else {
        panic!("{:?}", run.processes);
    };
    assert!(child.inherited.is_empty(), "{:?}", child.inherited);
    let written: Vec<usize> = child.streams.keys().copied().collect();
    assert_eq!(written, parent.streams.keys().copied().collect::<Vec<_>>());
    assert_eq!(run.resources[written[0]].ident, Some((1, 8)));
    assert!(run.resources[written[0]].is_native());
}

#[test]
fn a_status_tells_that_a_number_of_the_parent_leads_elsewhere_in_a_child() {
    const DEVICE: u64 = 5;
    let made = [0i32.to_le_bytes(), 4i32.to_le_bytes()].concat();
    let pipe = with(call(libc::SYS_pipe2, -1, 0), deep::ENTERED, 0, &made);
    let parent = vec![begin(deep::BY_EXEC), pipe, call(libc::SYS_vfork, -1, 12)];
    let mut status = vec![0; 144];
    status[..8].copy_from_slice(&1u64.to_le_bytes());
    status[8..16].copy_from_slice(&DEVICE.to_le_bytes());
    status[24..28].copy_from_slice(&libc::S_IFCHR.to_le_bytes());
    let asked = with(call(libc::SYS_fstat, 0, 0), deep::ENTERED, 1, &status);
    let sought = call(libc::SYS_lseek, 0, 0);
    let child = vec![begin(deep::BY_EXEC), asked, sought];
    let all = vec![
        (1, 10, 1, parent.into_iter()),
        (2, 12, 10, child.into_iter()),
    ];
    let run = RecordedRun::arrange(all.into_iter());
    let child = &run.processes[1];
    let [(0, device, None)] = child.inherited[..] else {
        panic!("{:?}", child.inherited);
    };
    assert_eq!(run.resources[device].kind, libc::S_IFCHR);
    assert_eq!(run.resources[device].ident, Some((1, DEVICE)));
    let about_device = |key: &ResultKey| key.object == CallObject::Resource(device);
    assert_eq!(child.results.len(), 2);
    assert!(
        child.results.keys().all(about_device),
        "{:?}",
        child.results
    );
}

#[test]
fn a_closed_descriptor_leads_nowhere() {
    let closed = Call {
        a: 4,
        ..call(libc::SYS_write, 2, 0)
    };
    let failed = call(libc::SYS_write, 1, -i64::from(libc::EBADF));
    let calls = vec![begin(deep::BY_EXEC), closed, failed].into_iter();
    let run = RecordedRun::arrange([(1, 10, 1, calls)].into_iter());
    assert!(run.resources.is_empty(), "{:?}", run.resources);
}

#[test]
fn a_thread_that_closes_a_descriptor_takes_no_file_that_another_opens_meanwhile() {
    let open = |name: &[u8], time, took| {
        let call = Call {
            time,
            took,
            ..call(libc::SYS_openat, -100, 5)
        };
        with(call, deep::PATH, 1, name)
    };
    let close = |time| Call {
        time,
        ..call(libc::SYS_close, 5, 0)
    };
    let calls = vec![
        begin(deep::BY_EXEC),
        open(b"first", 64, 64),
        // It began before the other thread closed the number that it got.
        open(b"second", 256, 256),
        close(320),
        leads_to(5, 9),
        write(5),
        close(640),
    ];
    let run = RecordedRun::arrange([(1, 10, 1, calls.into_iter())].into_iter());
    let names: Vec<&[u8]> = run.resources.iter().map(|one| &*one.name).collect();
    assert_eq!(names, [b"first".as_slice(), b"second"]);
    assert_eq!(run.resources[1].ident, Some((1, 9)));
}

#[test]
fn a_file_under_a_number_that_a_call_had_used_was_not_open_from_the_start() {
    let opened = call(libc::SYS_openat, -100, 3);
    let calls = vec![
        begin(deep::BY_EXEC),
        with(opened, deep::PATH, 1, b"own"),
        call(libc::SYS_close, 3, 0),
        // A child in the same table of descriptors opened it.
        leads_to(3, 7),
        write(3),
        // No call had this number.
        leads_to(4, 8),
        write(4),
    ];
    let run = RecordedRun::arrange([(1, 10, 1, calls.into_iter())].into_iter());
    let of = |inode| {
        let mut all = run.resources.iter();
        all.position(|one| one.ident == Some((1, inode))).unwrap()
    };
    let inherited = &run.processes[0].inherited;
    assert!(inherited.iter().all(|(fd, id, _)| (*fd, *id) == (4, of(8))));
    assert_eq!(inherited.len(), 1);
    assert!(run.resources[of(7)].is_native() && !run.resources[of(8)].is_native());
}
