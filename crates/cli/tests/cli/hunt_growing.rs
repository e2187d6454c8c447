//! `record --watch` takes only what is new in a growing log. It finds what a look at the whole log
//! finds, wherever its looks cut the log.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use backstory_abi::Chunk;
use backstory_eventlog::frame::{self, Frame, FrameKind, LogPiece};
use backstory_eventlog::{Log, Patience};
use backstory_hunt::{Found, Library, Limits, MatchKey, Rule, RunGraph, RunInProgress, find};
use backstory_testkit::need::find as find_program;
use serde_json::Value;

use super::Place;

/// Processes that wait for each other, share directories, rename and remove files, and read what
/// others have received.
const TREE: &str = "
mkdir -p d/x; echo a > d/a; ln -s d l
(sleep 0.05; echo x > d/b; mv d/b d/c) &
for i in 1 2 3; do echo $i | cat | sort > out$i; cp out$i l/copy$i; done
wait; mv d e; cat e/a
x=$(sh -c 'sleep 0.02; cat e/c; (cd e; mv a renamed; cat renamed)'); echo \"$x\" > result
for i in 1 2 3; do cp keys/id_$i taken$i; mv taken$i taken$i.locked; rm keys/id_$i; done
cat keys/id_4 | sh -c 'sleep 0.02; cat' | sort > collected
";

/// Children by other calls, threads, connections, and a status that is not zero.
const PYTHON: &str = "
import os, socket, subprocess, threading
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
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
other = server.accept()[0]
with open('keys/id_5') as file:
    client.sendall(file.read().encode())
with open('received', 'wb') as file:
    file.write(other.recv(100))
os.remove('keys/id_5')
os.system('cat received')
";

/// Rules of each kind, which match often.
const RULES: &str = r"
title: one
id: one
detection: {a: {Operation: [write, make, rename], TargetFilename|endswith: ['1', '.locked', /other]}, condition: a}
---
title: process
id: process
detection: {a: {Operation: read, TargetFilename|contains: /keys/}, b: {Operation: write, TargetKind: file}}
correlation: {type: temporal_ordered, rules: [a, b], group-by: process}
---
title: descendants
id: descendants
detection: {a: {Operation: start}, b: {Operation: read, TargetFilename|contains: /keys/}}
correlation: {type: temporal_ordered, rules: [a, b], group-by: descendants}
---
title: flow
id: flow
detection: {a: {Operation: read, TargetFilename|contains: /keys/id_}, b: {Operation: [write, send]}}
correlation: {type: temporal_ordered, rules: [a, b], group-by: flow}
---
title: three
id: three
detection: {a: {Operation: read, Existing: true, TargetKind: file}, b: {Operation: send}, c: {Operation: delete, Existing: true}}
correlation: {type: temporal_ordered, rules: [a, b, c], group-by: flow, same-file: [a, c]}
---
title: count
id: count
detection: {a: {Operation: delete, Existing: true, SuccessorFilename|exists: false}}
correlation: {type: event_count, rules: a, group-by: descendants, timespan: 1m, condition: {gte: 3}}
";

/// A match of a rule. Of many operations, the first and the last one are those so far.
type FoundMatch = (String, Option<MatchKey>);

fn found_match(rule: &Rule, graph: &RunGraph, found: &Found) -> FoundMatch {
    let is_many = found.count > found.facts.len();
    let key = (!is_many).then(|| MatchKey::of(graph, rule, &found.facts).unwrap());
    (rule.id.clone(), key)
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

const LIMITS: Limits = Limits {
    time: Duration::from_secs(600),
    findings: 10_000,
};

/// The matches that a look at the whole log finds.
fn of_whole(log: &Log, rules: &[Rule]) -> BTreeSet<FoundMatch> {
    let mut graph = RunGraph::default();
    let Ok(()) = backstory_graph::fold(log.header(), None, log.events(), &(), &mut graph);
    graph.complete();
    let found = rules.iter().flat_map(|rule| {
        let found = find(&graph, rule, LIMITS).found;
        let keys = found
            .into_iter()
            .map(|found| found_match(rule, &graph, &found));
        keys.collect::<Vec<_>>()
    });
    found.collect()
}

/// The result of looks at a growing log.
#[derive(Default)]
struct OfLooks {
    /// The matches since the log was last taken from its beginning.
    found: BTreeSet<FoundMatch>,
    /// How many times records came late, and the log was taken from its beginning.
    again: usize,
}

/// The matches that a look gives.
fn look(run: &mut RunInProgress<'_>, quiet: Duration) -> BTreeSet<FoundMatch> {
    let mut found = BTreeSet::new();
    run.look(quiet, |graph, rule, findings| {
        let all = findings.found.iter();
        found.extend(all.map(|one| found_match(rule, graph, one)));
    });
    found
}

/// Looks at these beginnings of a log.
fn of_looks(bytes: &[u8], ends: &[usize], rules: &[Rule], log: &Log, part: &Path) -> OfLooks {
    let mut run = RunInProgress::new(log.header(), rules, LIMITS, Patience::default());
    let mut looks = OfLooks::default();
    for (number, end) in ends.iter().enumerate() {
        // A log is only appended to, so each of its beginnings was a state of it.
        std::fs::write(part, &bytes[..*end]).unwrap();
        run.grow(part).unwrap();
        // At the end, the log does not grow any more.
        let is_last = number + 1 == ends.len();
        let quiet = Duration::from_secs(if is_last { 60 } else { 0 });
        let mut found = look(&mut run, quiet);
        if run.is_disordered() {
            looks.again += 1;
            run.begin_again(part).unwrap();
            // A graph that got records late can have matches that the whole log has not.
            looks.found.clear();
            found = look(&mut run, quiet);
        }
        looks.found.extend(found);
        std::fs::remove_file(part).unwrap();
    }
    looks
}

/// The ends of a log's frames.
fn frame_ends(bytes: &[u8]) -> Vec<usize> {
    frames(bytes).map(|frame| frame.payload.end).collect()
}

fn frames(bytes: &[u8]) -> impl Iterator<Item = Frame> {
    frame::walk(bytes).filter_map(|piece| match piece {
        LogPiece::Frame(frame) => Some(frame),
        LogPiece::Garbage(_) => None,
    })
}

/// The process whose records a frame has.
fn process_of(bytes: &[u8], frame: &Frame) -> Option<u32> {
    let is_chunk = matches!(frame.kind, Some(FrameKind::Chunk | FrameKind::More));
    let head = Chunk::read(&bytes[frame.payload.clone()]).filter(|_| is_chunk);
    head.map(|head| head.pid)
}

fn processes(bytes: &[u8]) -> Vec<u32> {
    let processes = frames(bytes).filter_map(|frame| process_of(bytes, &frame));
    let processes: BTreeSet<u32> = processes.collect();
    processes.into_iter().collect()
}

/// The log if the supervisor had appended the records of a process later than those of others, by
/// so many frames.
fn delayed(bytes: &[u8], delay: usize, process: u32) -> Vec<u8> {
    let frames: Vec<Frame> = frames(bytes).collect();
    let of = |frame: &Frame| process_of(bytes, frame);
    let last = frames.iter().rposition(|frame| of(frame).is_some());
    let mut order: Vec<(usize, &Frame)> = frames.iter().enumerate().collect();
    order.sort_by_key(|(at, frame)| match of(frame) == Some(process) {
        true => (*at + delay).min(last.unwrap()),
        false => *at,
    });
    let whole = |frame: &Frame| frame.payload.start - frame::HEADER..frame.payload.end;
    let all = order.iter().map(|(_, frame)| &bytes[whole(frame)]);
    all.collect::<Vec<_>>().concat()
}

/// Compares the reports of the watch with the matches in the finished run.
fn what_was_reported_is_what_hunt_finds(place: &Place, run: &str) {
    let essence = |finding: &Value| {
        let steps = finding["steps"].as_array().unwrap();
        let (first, last) = (&steps[0], &steps[steps.len() - 1]);
        let rule = finding["rule"].as_str().unwrap().to_owned();
        let parts = match rule.as_str() {
            // The first and the last one are those so far.
            "count" => vec![],
            "one" => vec![&first["target"], &first["process"]["pid"]],
            _ => vec![&first["target"], &last["operation"], &last["target"]],
        };
        let parts: Vec<String> = parts.into_iter().map(Value::to_string).collect();
        (rule, parts)
    };
    let text = std::fs::read_to_string(place.work().join("m.jsonl")).unwrap();
    let reported = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut reported: Vec<_> = reported.map(|finding: Value| essence(&finding)).collect();
    let found = place.json(&["hunt", run, "--rules", "rules.yml", "--json"]);
    let found = found.as_array().unwrap().iter();
    let ours = |rule: &str| RULES.contains(&format!("\nid: {rule}\n"));
    let found = found.map(essence).filter(|(rule, _)| ours(rule));
    let mut found: Vec<_> = found.collect();
    reported.sort();
    found.sort();
    assert_eq!(reported, found);
}

/// A finished run that was watched, in a store.
struct WatchedRun {
    place: Place,
    id: String,
    rules: Vec<Rule>,
    /// The bytes of its log.
    log: Vec<u8>,
}

impl WatchedRun {
    /// Records the commands, and watches them with the rules.
    fn new() -> WatchedRun {
        let place = Place::new();
        let keys = place.work().join("keys");
        std::fs::create_dir(&keys).unwrap();
        place.stage.user().owns(&keys).unwrap();
        for number in 1..6 {
            place.write(format!("keys/id_{number}"), "secret");
        }
        place.write("tree.sh", TREE);
        let mut line = "sh tree.sh".to_owned();
        if find_program("python3").is_some() {
            place.write("children.py", PYTHON);
            line.push_str("; python3 children.py");
        }
        place.write("rules.yml", RULES);
        let watch = ["record", "--watch", "rules.yml", "--watch-to", "m.jsonl"];
        let answer = place.run(&[&watch[..], &["--", "sh", "-c", &line]].concat());
        assert_eq!(answer.status, 0, "{answer:?}");
        place.finalized();
        let id = place.runs()[0].clone();
        let mut library = Library::default();
        library.load(&place.work().join("rules.yml")).unwrap();
        assert_eq!(library.mistakes, Vec::<String>::new());
        let path = place.stage.store().join("runs").join(format!("{id}.log"));
        let log = std::fs::read(path).unwrap();
        WatchedRun {
            place,
            id,
            rules: library.rules,
            log,
        }
    }

    /// Compares looks at a log with one look at the whole log. Returns whether records came late.
    fn compare(&self, bytes: &[u8], ends: &[usize], words: &str) -> bool {
        let path = self.place.work().join("whole");
        std::fs::write(&path, bytes).unwrap();
        let log = Log::open(&path).unwrap();
        let whole = of_whole(&log, &self.rules);
        let ids: BTreeSet<&str> = whole.iter().map(|(id, ..)| id.as_str()).collect();
        let all = self.rules.len();
        assert_eq!(ids.len(), all, "each rule matches: {whole:?}");
        let part = self.place.work().join("part");
        let looks = of_looks(bytes, ends, &self.rules, &log, &part);
        let missing: Vec<_> = whole.difference(&looks.found).collect();
        let more: Vec<_> = looks.found.difference(&whole).collect();
        let (count, again) = (ends.len(), looks.again);
        assert!(
            missing.is_empty() && more.is_empty(),
            "{words}, {count} looks, {again} again: not {missing:?}, but {more:?}"
        );
        again > 0
    }
}

#[test]
fn looks_at_a_growing_log_find_what_a_look_at_the_whole_log_finds() {
    let run = WatchedRun::new();
    what_was_reported_is_what_hunt_finds(&run.place, &run.id);
    let ends = frame_ends(&run.log);
    for seed in 0..24 {
        // The first time at all ends of frames, later at fewer and fewer of them.
        let mut random = Random(seed);
        let mut some = ends.clone();
        some.retain(|end| random.below(1 + seed) == 0 || Some(end) == ends.last());
        run.compare(&run.log, &some, &format!("seed {seed}"));
    }
}

/// As on a busy machine, where the supervisor is interrupted between the chunks of two processes.
#[test]
fn records_that_come_late_are_looked_at_in_the_order_of_time() {
    let run = WatchedRun::new();
    let compare = |process: u32, delay: usize| {
        let log = delayed(&run.log, delay, process);
        let words = format!("process {process}, {delay} frames late");
        run.compare(&log, &frame_ends(&log), &words)
    };
    let processes = processes(&run.log);
    let mut is_late = false;
    for seed in 0..24 {
        let place = Random(seed).below(processes.len() as u64) as usize;
        is_late |= compare(processes[place], 20 + 10 * seed as usize);
    }
    // Most processes end long before the run does. If the records of such a one come last, others
    // were looked at before.
    let all = frame_ends(&run.log).len();
    let is_late = is_late || processes.iter().any(|process| compare(*process, all));
    assert!(is_late, "no process is late: {processes:?}");
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
    // Each reading of the clocks, and whether an operation stands before it.
    let (mut readings, mut begun) = (Vec::new(), false);
    for frame in frames(&bytes) {
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
