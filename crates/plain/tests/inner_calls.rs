//! The lists of functions are right for the libc of this machine, if its release is known.
//!
//! The test decodes libc, and follows all direct calls from each exported function to the system
//! calls that the guard watches.
#![allow(clippy::unwrap_used)]

use backstory_plain::symbols::{AT_CALL, CONNECTS, UNSEEN};
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

/// The direct calls inside libc, by the address of the calling function.
type Graph = BTreeMap<u64, Calls>;

/// The machine's libc. `None`, with a line that says so, if it is not of a known release.
fn libc_of_machine() -> Option<Vec<u8>> {
    let path = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
    let known = Classifier::of_machine().map(|mut machine| machine.library(path));
    if !matches!(known, Some(Ok(()))) {
        let why = format!("libc is not of a known release: {known:?}");
        backstory_testkit::need::skipped("calls inside of libc", &why);
        return None;
    }
    Some(std::fs::read(path).unwrap())
}

fn graph_of(libc: &Object<'_>) -> Graph {
    assert!(libc.functions.len() > 2000 && libc.exports.len() > 2000);
    let mut graph = Graph::new();
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
    graph
}

/// These functions, and all that reach them.
fn callers(graph: &Graph, of: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
    let mut reach: BTreeSet<u64> = of.into_iter().collect();
    loop {
        let more: Vec<u64> = graph
            .iter()
            .filter(|(at, calls)| {
                !reach.contains(at) && calls.functions.iter().any(|one| reach.contains(one))
            })
            .map(|(at, _)| *at)
            .collect();
        if more.is_empty() {
            return reach;
        }
        reach.extend(more);
    }
}

/// The names of exported functions that are not listed.
fn missing(
    libc: &Object<'_>,
    reach: &BTreeSet<u64>,
    is_listed: impl Fn(&[u8]) -> bool,
) -> BTreeSet<String> {
    let exports = libc.exports.iter();
    exports
        .filter(|(name, address)| reach.contains(address) && !is_listed(name))
        .map(|(name, _)| String::from_utf8_lossy(name).into_owned())
        .collect()
}

fn is_in(lists: &[&[&str]], name: &[u8]) -> bool {
    lists.concat().iter().any(|one| one.as_bytes() == name)
}

#[test]
fn every_function_with_an_unseen_call_inside_libc_is_listed() {
    let Some(file) = libc_of_machine() else {
        return;
    };
    let libc = Object::parse(&file).unwrap();
    let graph = graph_of(&libc);
    let watched = |calls: &Calls| WATCHED.iter().any(|nr| calls.numbers.contains(nr));
    let makers: Vec<u64> = graph
        .iter()
        .filter(|(_, calls)| watched(calls))
        .map(|(at, _)| *at)
        .collect();
    assert!(
        makers.len() > 40,
        "only {} functions make watched calls",
        makers.len()
    );
    let recorder = Object::parse(backstory_recorder::LIBRARY).unwrap();
    let wrapped: BTreeSet<&[u8]> = recorder.exports.iter().map(|(name, _)| *name).collect();
    let listed = |name: &[u8]| wrapped.contains(name) || is_in(&[UNSEEN, AT_CALL], name);
    let missing = missing(&libc, &callers(&graph, makers), listed);
    assert!(missing.is_empty(), "{missing:?}");
}

/// The name service calls its parts by pointers, which may connect. So its entries count, too.
#[test]
fn every_function_that_connects_inside_libc_is_listed() {
    const ENTRIES: &[&str] = &[
        "connect",
        "bind",
        "__nss_lookup",
        "__nss_lookup_function",
        "__nss_next2",
    ];
    let Some(file) = libc_of_machine() else {
        return;
    };
    let libc = Object::parse(&file).unwrap();
    let entries: Vec<u64> = libc
        .exports
        .iter()
        .filter(|(name, _)| is_in(&[ENTRIES], name))
        .map(|(_, address)| *address)
        .collect();
    assert!(entries.len() >= ENTRIES.len());
    let reach = callers(&graph_of(&libc), entries);
    let own = ["connect", "bind", "__connect"];
    let missing = missing(&libc, &reach, |name| is_in(&[UNSEEN, CONNECTS, &own], name));
    assert!(missing.is_empty(), "{missing:?}");
}
