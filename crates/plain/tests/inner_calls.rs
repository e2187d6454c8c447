//! The lists of functions are right for the libc of this machine, if its release is known.
//!
//! The test decodes libc, and follows all direct calls from each exported function to the system
//! calls that the guard watches.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use backstory_plain::symbols::{AT_CALL, UNSEEN};
use backstory_plain::{Classifier, Object};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The watched calls that no redirection of the recorder sees inside libc. Not among them: opens,
/// `connect` and `bind`, and the `execve` of a child that libc makes.
const WATCHED: &[u64] = &[
    76, 80, 81, 82, 83, 84, 86, 87, 88, 90, 91, 92, 93, 94, 101, 132, 133, 134, 155, 161, 163, 165,
    166, 167, 188, 189, 190, 197, 198, 199, 235, 240, 258, 259, 260, 261, 263, 264, 265, 266, 268,
    272, 280, 300, 304, 308, 311, 316, 425, 426, 427, 429, 438, 452, 463, 466, 469,
];

/// The functions that a function calls directly, and the numbers of its own system calls.
#[derive(Default)]
struct Calls {
    functions: BTreeSet<u64>,
    numbers: BTreeSet<u64>,
}

fn calls(bytes: &[u8], start: u64, end: u64) -> Calls {
    let mut calls = Calls::default();
    let mut number = None;
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut one = Instruction::default();
    while decoder.can_decode() && decoder.ip() < end {
        decoder.decode_out(&mut one);
        let near = one.op_count() > 0 && one.op0_kind() == OpKind::NearBranch64;
        let target = one.near_branch_target();
        if near && !(start..end).contains(&target) {
            calls.functions.insert(target);
        }
        let accumulator = one.op_count() > 0
            && one.op0_kind() == OpKind::Register
            && matches!(one.op0_register(), Register::EAX | Register::RAX);
        match one.mnemonic() {
            Mnemonic::Syscall => calls.numbers.extend(number),
            Mnemonic::Mov if accumulator && one.op1_kind() == OpKind::Immediate32 => {
                number = Some(u64::from(one.immediate32()));
            }
            Mnemonic::Ret => number = None,
            _ => {}
        }
    }
    calls
}

#[test]
fn every_function_with_an_unseen_call_inside_libc_is_listed() {
    let path = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
    let known = Classifier::of_machine().map(|mut machine| machine.library(path));
    if !matches!(known, Some(Ok(_))) {
        return println!("SKIPPED: this machine's libc is not of a known release: {known:?}");
    }
    let file = std::fs::read(path).unwrap();
    let libc = Object::parse(&file).unwrap();
    assert!(libc.functions.len() > 2000 && libc.exports.len() > 2000);
    let mut graph = BTreeMap::new();
    for segment in libc.segments.iter().filter(|s| s.executable) {
        let end = segment.address + segment.bytes.len() as u64;
        let mut starts: Vec<u64> = libc.functions.clone();
        // `vfork` and `clone` are written in assembly, without an entry in the table.
        starts.extend(libc.exports.iter().map(|(_, address)| *address));
        starts.retain(|start| (segment.address..end).contains(start));
        starts.sort_unstable();
        starts.dedup();
        for (n, &start) in starts.iter().enumerate() {
            let next = starts.get(n + 1).copied().unwrap_or(end);
            let bytes = &segment.bytes[(start - segment.address) as usize..];
            graph.insert(start, calls(bytes, start, next));
        }
    }
    let mut reach: BTreeSet<u64> = BTreeSet::new();
    let watched = |calls: &Calls| WATCHED.iter().any(|nr| calls.numbers.contains(nr));
    reach.extend(
        graph
            .iter()
            .filter(|(_, calls)| watched(calls))
            .map(|(at, _)| *at),
    );
    assert!(
        reach.len() > 40,
        "only {} functions make watched calls",
        reach.len()
    );
    loop {
        let more: Vec<u64> = graph
            .iter()
            .filter(|(at, calls)| {
                !reach.contains(at) && calls.functions.iter().any(|one| reach.contains(one))
            })
            .map(|(at, _)| *at)
            .collect();
        if more.is_empty() {
            break;
        }
        reach.extend(more);
    }
    let recorder = Object::parse(backstory_recorder::LIBRARY).unwrap();
    let wrapped: BTreeSet<&[u8]> = recorder.exports.iter().map(|(name, _)| *name).collect();
    let listed = |name: &[u8]| {
        let mut all = UNSEEN.iter().chain(AT_CALL);
        wrapped.contains(name) || all.any(|one| one.as_bytes() == name)
    };
    let missing: BTreeSet<String> = libc
        .exports
        .iter()
        .filter(|(name, address)| reach.contains(address) && !listed(name))
        .map(|(name, _)| String::from_utf8_lossy(name).into_owned())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
