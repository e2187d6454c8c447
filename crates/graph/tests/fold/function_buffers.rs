//! Calls of functions that share a buffer: which call can have filled the buffer of another one.
#![allow(dead_code, clippy::unwrap_used)]

use crate::common::*;
use backstory_eventlog::event::{FunctionStep, Op, Outcome, Pid, ValuePointer};
use backstory_graph::marks::ATTRIBUTE;

const POUR: Pid = 2;
const FILL_CALL: u32 = 1;
const POUR_CALL: u32 = 2;
const COPY_CALL: u32 = 3;

fn scene() -> Scene {
    let mut s = Scene::new(&["pour"]);
    for (number, name) in [
        (FILL_CALL, "fill"),
        (POUR_CALL, "pour"),
        (COPY_CALL, "copy"),
    ] {
        let (name, location) = (bytes(name), bytes("pour.c:1"));
        let function = Op::Function {
            number,
            name,
            location,
            kind: bytes(""),
        };
        s.kernel(POUR, Outcome::Done(0), function);
    }
    s
}

/// A parameter with its address and bytes. `const ` before the name is as in C.
type Pointer = (&'static str, u64, u64);

fn values(
    s: &mut Scene,
    pid: Pid,
    number: u32,
    returned: bool,
    words: &[&str],
    pointers: &[Pointer],
) {
    let pointers = pointers.iter().map(|&(name, address, bytes)| ValuePointer {
        name: name.trim_start_matches("const ").as_bytes().into(),
        address,
        bytes,
        is_constant: name.starts_with("const "),
    });
    let op = Op::Values {
        number,
        returned,
        values: words.iter().map(|value| bytes(value)).collect(),
        pointers: pointers.collect(),
    };
    s.push(pid, Outcome::Done(0), op);
}

fn begin(s: &mut Scene, pid: Pid, number: u32, words: &[&str], pointers: &[Pointer]) {
    let step = FunctionStep::Call { number, after: 1 };
    s.push(pid, Outcome::Done(0), Op::Calls(Box::new([step])));
    values(s, pid, number, false, words, pointers);
}

fn end(s: &mut Scene, pid: Pid) {
    let step = FunctionStep::Return { after: 1 };
    s.push(pid, Outcome::Done(0), Op::Calls(Box::new([step])));
}

/// A call that reads a file into a buffer.
fn fill(s: &mut Scene, file: &str, pointer: Pointer) {
    let name = format!("name=\"{file}\"");
    let words = ["buffer=\"\"", &name];
    let pointers = [pointer, ("const name", 0x9000, 1)];
    begin(s, POUR, FILL_CALL, &words, &pointers);
    s.reads(POUR, file);
    end(s, POUR);
}

/// A call that writes a file from a buffer.
fn pour(s: &mut Scene, file: &str, pointer: Pointer) {
    pour_in(s, POUR, file, pointer);
}

fn pour_in(s: &mut Scene, pid: Pid, file: &str, pointer: Pointer) {
    begin(s, pid, POUR_CALL, &["buffer=\"a\""], &[pointer]);
    s.writes(pid, file, OUT);
    end(s, pid);
}

/// The attributes `buffer of ...` of all calls.
fn buffers(s: &Scene) -> Vec<String> {
    let graph = s.graph();
    let attributes = graph.extended.iter().filter(|one| one.2 == ATTRIBUTE);
    let attributes = attributes.map(|one| text(&one.3).replace('\0', ": "));
    let mut found: Vec<String> = attributes
        .filter_map(|one| Some(one.strip_prefix("buffer of ")?.to_owned()))
        .collect();
    found.sort();
    found
}

#[test]
fn a_call_names_the_calls_that_can_have_filled_its_buffer_and_no_others() {
    let mut s = scene();
    fill(&mut s, "ia", ("buffer", 0x1000, 64));
    fill(&mut s, "ib", ("buffer", 0x2000, 64));
    pour(&mut s, "oa", ("const buffer", 0x1000, 1));
    pour(&mut s, "ob", ("const from", 0x203f, 1));
    pour(&mut s, "oc", ("const behind", 0x2040, 1));
    // A call of pour() fills nothing: it cannot change its buffer.
    pour(&mut s, "od", ("const buffer", 0x1000, 1));
    let a = "buffer: possibly filled by fill() in pour.c:1 name=\"ia\"";
    let b = "from: possibly filled by fill() in pour.c:1 name=\"ib\"";
    assert_eq!(buffers(&s), [a, a, b]);
}

#[test]
fn a_join_of_buffers_changes_no_edge() {
    let mut with = scene();
    fill(&mut with, "ia", ("buffer", 0x1000, 64));
    pour(&mut with, "oa", ("const buffer", 0x1000, 1));
    let mut without = scene();
    fill(&mut without, "ia", ("buffer", 0x1000, 64));
    pour(&mut without, "oa", ("const buffer", 0x5000, 1));
    assert_eq!(buffers(&with).len(), 1);
    assert!(buffers(&without).is_empty());
    assert_eq!(told(&with.graph()), told(&without.graph()));
}

#[test]
fn a_call_that_read_nothing_passes_on_what_its_pointers_led_to() {
    let mut s = scene();
    fill(&mut s, "ia", ("buffer", 0x1000, 64));
    let pointers = [("to", 0x3000, 64), ("const from", 0x1000, 64)];
    begin(
        &mut s,
        POUR,
        COPY_CALL,
        &["to=\"\"", "from=\"a\""],
        &pointers,
    );
    end(&mut s, POUR);
    pour(&mut s, "oa", ("const buffer", 0x3000, 1));
    let expected = "buffer: possibly filled by fill() in pour.c:1 name=\"ia\"";
    assert_eq!(buffers(&s), [expected]);
}

#[test]
fn a_call_that_read_nothing_filled_nothing() {
    let mut s = scene();
    begin(&mut s, POUR, COPY_CALL, &["to=\"\""], &[("to", 0x3000, 64)]);
    s.writes(POUR, "log", OUT);
    end(&mut s, POUR);
    pour(&mut s, "oa", ("const buffer", 0x3000, 1));
    assert!(buffers(&s).is_empty(), "{:?}", buffers(&s));
}

#[test]
fn a_buffer_that_a_call_returned_was_filled_by_it() {
    let mut s = scene();
    begin(
        &mut s,
        POUR,
        FILL_CALL,
        &["name=\"ia\""],
        &[("const name", 0x9000, 1)],
    );
    s.reads(POUR, "ia");
    let result = ("const return", 0x4000, 8);
    values(&mut s, POUR, FILL_CALL, true, &["return=0x4000"], &[result]);
    end(&mut s, POUR);
    pour(&mut s, "oa", ("const buffer", 0x4000, 1));
    let expected = "buffer: possibly filled by fill() in pour.c:1 name=\"ia\"";
    assert_eq!(buffers(&s), [expected]);
}

#[test]
fn a_read_of_a_function_inside_counts_for_the_function_around_it() {
    let mut s = scene();
    begin(&mut s, POUR, COPY_CALL, &["to=\"\""], &[("to", 0x3000, 64)]);
    fill(&mut s, "ia", ("buffer", 0x7000, 8));
    end(&mut s, POUR);
    pour(&mut s, "oa", ("const buffer", 0x3000, 1));
    let expected = "buffer: possibly filled by copy() in pour.c:1";
    assert_eq!(buffers(&s), [expected]);
}

#[test]
fn of_many_calls_the_last_ones_are_named() {
    let mut s = scene();
    for file in ["a", "b", "c", "d", "e", "a"] {
        fill(&mut s, file, ("buffer", 0x1000, 64));
    }
    pour(&mut s, "oa", ("const buffer", 0x1000, 1));
    let names = ["c", "d", "e", "a"].map(|file| format!("fill() in pour.c:1 name=\"{file}\""));
    let expected = format!("buffer: possibly filled by {}; others", names.join("; "));
    // Each call of fill() may have kept what the one before left.
    let all = buffers(&s);
    assert_eq!(all.last(), Some(&expected), "{all:?}");
}

#[test]
fn a_buffer_that_was_filled_before_a_fork_is_filled_in_the_child_up_to_its_next_program() {
    const CHILD: Pid = 3;
    const GRANDCHILD: Pid = 4;
    let by = |file: &str| format!("buffer: possibly filled by fill() in pour.c:1 name=\"{file}\"");
    let mut s = scene();
    fill(&mut s, "ia", ("buffer", 0x1000, 64));
    s.fork(POUR, CHILD);
    s.start(CHILD, POUR, true);
    fill(&mut s, "ib", ("buffer", 0x2000, 64));
    // The child of a child that called no function.
    s.fork(CHILD, GRANDCHILD);
    s.start(GRANDCHILD, CHILD, true);
    pour_in(&mut s, GRANDCHILD, "og", ("const buffer", 0x1000, 1));
    assert_eq!(buffers(&s), [by("ia")]);
    pour_in(&mut s, CHILD, "oa", ("const buffer", 0x1000, 1));
    // The parent filled it after the fork.
    pour_in(&mut s, CHILD, "ob", ("const buffer", 0x2000, 1));
    assert_eq!(buffers(&s), [by("ia"), by("ia")]);
    pour(&mut s, "oc", ("const buffer", 0x2000, 1));
    assert_eq!(buffers(&s), [by("ia"), by("ia"), by("ib")]);
    s.exec(CHILD, "/bin/other", &["other"]);
    s.start(CHILD, POUR, false);
    pour_in(&mut s, CHILD, "od", ("const buffer", 0x1000, 1));
    assert_eq!(buffers(&s).len(), 3);
}
