//! A look at a run that goes on: which uses it gives.
#![allow(clippy::unwrap_used)]

use crate::common::{OUT, STEP, Scene};
use backstory_graph::Fold;
use backstory_graph::memory::MemorySink;

/// A moment that is shorter than the time between a fork and an exec.
const SOON: i64 = 1_000_000;
/// A time that is longer.
const LONG: i64 = 1_000_000_000;

/// A shell forks, and the child opens a file. `goes_on` is what it does then. Two looks, each so
/// long after the last event: the program that has written then, and whether something is left.
fn writer(goes_on: impl FnOnce(&mut Scene), passed: [i64; 2]) -> [(Option<String>, bool); 2] {
    let mut s = Scene::new(&["sh"]);
    s.fork(2, 3);
    s.time -= STEP - SOON;
    s.open(3, "out", OUT, 1);
    let first = s.events.len();
    s.time -= STEP - SOON;
    goes_on(&mut s);
    let mut fold = Fold::new(&s.header, None, &(), MemorySink::default()).noting_news();
    let mut looks = Vec::new();
    for (part, passed) in [&s.events[..first], &s.events[first..]]
        .into_iter()
        .zip(passed)
    {
        for event in part {
            let Ok(()) = fold.event(event.clone());
        }
        let last = part.last().map_or(s.time, |event| event.time);
        let Ok(is_left) = fold.tell_news(last + passed);
        let sink = fold.sink();
        let written = |entity: &_| &*sink.entities[entity].path == b"/w/out";
        let edge = sink.edges.iter().rfind(|edge| written(&edge.entity));
        let by = edge.and_then(|edge| sink.activities[&edge.activity].exec_path.as_ref());
        looks.push((by.map(|path| crate::common::text(path)), is_left));
    }
    looks.try_into().unwrap()
}

#[test]
fn a_look_leaves_a_new_process_to_the_next_one_until_its_program_is_known() {
    let told = |path: &str, is_left| (Some(path.to_owned()), is_left);
    let exec = |s: &mut Scene| {
        s.exec(3, "/bin/cat", &["cat"]);
        s.start(3, 2, false);
    };
    let executes = writer(exec, [SOON, SOON]);
    assert_eq!(executes, [(None, true), told("/bin/cat", false)]);
    // It executes no program for a while.
    let waits = writer(|_| (), [SOON, LONG]);
    assert_eq!(waits, [(None, true), told("/bin/sh", false)]);
    let had_a_child = writer(
        |s| {
            s.fork(3, 4);
        },
        [SOON, SOON],
    );
    assert_eq!(had_a_child, [(None, true), told("/bin/sh", false)]);
}
