//! `record --watch` folds only what is new in a growing log. The graph is that of the whole log, at
//! each moment.

use std::time::Duration;

use backstory_eventlog::frame::{self, FrameKind, LogPiece};
use backstory_eventlog::{Log, Patience};
use backstory_hunt::{RunGraph, RunInProgress};
use backstory_testkit::need::find;

use super::Place;

/// Processes that wait for each other, share directories, and rename files that others use.
const TREE: &str = "
mkdir -p d/x; echo a > d/a; ln -s d l
(sleep 0.05; echo x > d/b; mv d/b d/c) &
for i in 1 2 3; do echo $i | cat | sort > out$i; cp out$i l/copy$i; done
wait; mv d e; cat e/a
x=$(sh -c 'sleep 0.02; cat e/c; (cd e; mv a renamed; cat renamed)'); echo \"$x\" > result
";

/// Children by other calls, threads, and a status that is not zero.
const PYTHON: &str = "
import os, subprocess, threading
subprocess.run(['sh', '-c', 'cat result; sleep 0.05; echo y >> result'], capture_output=True)
os.system('cat result > again; sleep 0.03; rm again')
child = os.fork()
if child == 0:
    os.rename('result', 'other')
    os._exit(3)
os.waitpid(child, 0)
os.spawnvp(os.P_WAIT, 'cat', ['cat', 'other'])
write = lambda number: open(f'thread{number}', 'w').write('x')
threads = [threading.Thread(target=write, args=(number,)) for number in range(5)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
";

#[test]
fn the_graph_of_a_growing_log_is_that_of_a_whole_fold_at_each_moment() {
    let place = Place::new();
    place.write("tree.sh", TREE);
    let mut line = "sh tree.sh".to_owned();
    if find("python3").is_some() {
        place.write("children.py", PYTHON);
        line.push_str("; python3 children.py");
    }
    let answer = place.run(&["record", "--watch", "all", "--", "sh", "-c", &line]);
    // On a busy machine, a message of the watch says that reports are late.
    let errors = answer
        .err
        .lines()
        .filter(|line| !line.starts_with("backstory: "));
    assert_eq!((answer.status, errors.count()), (0, 0), "{answer:?}");
    place.finalized();
    let run = place.runs()[0].clone();
    let log = place.stage.store().join("runs").join(format!("{run}.log"));
    let bytes = std::fs::read(&log).unwrap();
    let header = Log::header_of(&log).unwrap();
    let ends = frame::walk(&bytes).filter_map(|piece| match piece {
        LogPiece::Frame(frame) => Some(frame.payload.end),
        LogPiece::Garbage(_) => None,
    });
    let ends: Vec<usize> = ends.collect();
    // The shorter the patience, the more often an event changes that was taken as final.
    for late in [0, 1, 20, 1_000] {
        let late = Duration::from_millis(late);
        let patience = Patience {
            late,
            lasting: late * 3,
        };
        let mut run = RunInProgress::new(&header, patience);
        let mut growing: Option<Log> = None;
        for end in &ends {
            // A log is only appended to, so each of its beginnings was a state of it.
            let part = place.work().join("part");
            std::fs::write(&part, &bytes[..*end]).unwrap();
            let log = Log::open(&part).unwrap();
            let mut whole = RunGraph::default();
            let Ok(()) =
                backstory_graph::fold(log.header(), log.end(), log.events(), &(), &mut whole);
            whole.complete();
            let later = match growing.take() {
                Some(former) => former.later(&part),
                None => Log::growing(&part),
            };
            let later = later.unwrap();
            let is_same = run.look(&later, |graph| *graph == whole);
            assert!(is_same, "{late:?}, {end} bytes");
            drop(log);
            growing = Some(later);
            std::fs::remove_file(&part).unwrap();
        }
    }
}

#[test]
fn a_log_tells_how_fast_its_counter_counts_before_the_first_operation() {
    let place = Place::new();
    let answer = place.run(&["record", "--", "sleep", "0.2"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    place.finalized();
    let run = place.runs()[0].clone();
    let log = place.stage.store().join("runs").join(format!("{run}.log"));
    let bytes = std::fs::read(&log).unwrap();
    let frames = frame::walk(&bytes).filter_map(|piece| match piece {
        LogPiece::Frame(frame) => Some(frame),
        LogPiece::Garbage(_) => None,
    });
    // Each reading of the clocks, and whether an operation stands before it.
    let (mut readings, mut begun) = (Vec::new(), false);
    for frame in frames {
        begun |= frame.kind == Some(FrameKind::Chunk);
        if frame.kind == Some(FrameKind::Clock) {
            let (counter, real) = bytes[frame.payload].split_at(8);
            let counter = u64::from_le_bytes(counter.try_into().unwrap());
            readings.push((counter, i64::from_le_bytes(real.try_into().unwrap()), begun));
        }
    }
    let [first, second, .., last] = readings[..] else {
        panic!("{readings:?}");
    };
    assert!(
        !second.2,
        "a watch judges times from the first operation on"
    );
    let rate = |to: (u64, i64, bool)| (to.0 - first.0) as f64 / (to.1 - first.1) as f64;
    // With one reading, a counter counts as nanoseconds, which are two to four counts.
    let ratio = rate(second) / rate(last);
    assert!((0.7..1.4).contains(&ratio), "{readings:?}");
}
