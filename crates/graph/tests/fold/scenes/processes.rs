//! Scenes of programs: their starts, descriptors, environments and marks.

use super::check;
use crate::common::*;
use backstory_eventlog::event::{CWD, Op, Outcome};
use backstory_files::Ident;
use backstory_graph::lineage::Follow;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{Certainty, Relation};

#[test]
fn a_redirection_belongs_to_the_program_it_is_for() {
    // sort < in > out: the shell's child opens both files, then becomes sort. The libc of sort
    // reads and writes unseen.
    let mut s = Scene::new(&["sh"]);
    s.fork(2, 3);
    s.start(3, 2, true);
    for (path, flags, to) in [("in", RDONLY, 0), ("out", OUT, 1)] {
        s.open(3, path, flags, 5);
        s.dup2(3, 5, to);
        s.close(3, 5);
    }
    s.exec(3, "/bin/sort", &["sort"]);
    s.start(3, 2, false);
    s.exits(3, 2);
    check(
        &s,
        "sh#1 Fork sort#1
         sort#1 Read in@0
         sort#1 Write out@1",
    );
}

#[test]
fn inherited_descriptors_are_recorded_where_they_differ_from_the_parents() {
    use backstory_graph::standard::{KIND, decode};
    // sh: cat < in | sort >> out, then true, which has the descriptors of sh.
    let mut s = Scene::new(&["sh"]);
    s.pipe(2, 3, 4);
    for (child, from, to, program) in [(3, 4, 1, "cat"), (4, 3, 0, "sort")] {
        s.fork(2, child);
        s.start(child, 2, true);
        s.dup2(child, from, to);
        let (path, flags, fd) =
            [("in", RDONLY, 0), ("out", WRONLY | CREAT | APPEND, 1)][usize::from(to == 0)];
        s.open(child, path, flags, 5);
        s.dup2(child, 5, fd);
        for fd in [3, 4, 5] {
            s.close(child, fd);
        }
        s.exec(child, program, &[program]);
        s.start(child, 2, false);
    }
    s.runs(2, 5, &["true"]);
    let graph = s.graph();
    let told: Vec<String> = graph
        .extended
        .iter()
        .filter(|(.., kind, _)| kind == KIND)
        .map(|(who, .., payload)| {
            let ends = decode(payload).unwrap().all().map(|end| {
                end.map_or("-".to_owned(), |end| {
                    let path = &graph.entities[&end.entity].path;
                    let name = path.rsplit(|&b| b == b'/').next().unwrap();
                    format!(
                        "{}{}",
                        String::from_utf8_lossy(name),
                        if end.keeps { "+" } else { "" }
                    )
                })
            });
            format!("{} {}", activity(&graph, *who), ends.join(" "))
        })
        .collect();
    assert_eq!(told, ["cat#1 in pipe:1 -", "sort#1 pipe:1 out+ -"]);
}

#[test]
fn a_file_that_a_shell_opened_for_its_child_is_reported() {
    use backstory_graph::standard::{GIVEN, decode_given};
    // dash: sort > a; { echo; sort; } > b. The shell opens both outputs itself, and writes to the
    // second.
    let mut s = Scene::new(&["dash"]);
    for (child, path, writes) in [(3, "a", false), (4, "b", true)] {
        s.open(2, path, OUT, 1);
        if writes {
            s.write(2, 1);
        }
        s.runs(2, child, &["sort"]);
        s.close(2, 1);
    }
    let graph = s.graph();
    let given = graph.extended.iter().filter(|(.., kind, _)| kind == GIVEN);
    let given: Vec<String> = given
        .flat_map(|(who, .., payload)| {
            decode_given(payload)
                .map(|id| (*who, id))
                .collect::<Vec<_>>()
        })
        .map(|(who, id)| {
            format!(
                "{} {}",
                activity(&graph, who),
                String::from_utf8_lossy(&graph.entities[&id].path)
            )
        })
        .collect();
    assert_eq!(given, ["dash#1 /w/a"]);
}

#[test]
fn a_replaced_standard_descriptor_does_not_make_a_program_of_epoch_0() {
    let mut s = Scene::new(&["sh"]);
    s.header.descriptors = vec![(1, b"/w/terminal.log".to_vec())];
    s.pipe(2, 3, 4);
    s.fork(2, 3);
    s.start(3, 2, true);
    s.dup2(3, 4, 1);
    s.close(3, 4);
    s.exec(3, "/bin/cat", &["cat"]);
    s.start(3, 2, false);
    let graph = s.graph();
    let epochs: Vec<String> = graph
        .activities
        .keys()
        .map(|&a| activity(&graph, a))
        .collect();
    assert_eq!(epochs, ["sh#1", "cat#1"]);
}

#[test]
fn an_inherited_descriptor_is_written_possibly_until_seen() {
    let mut s = Scene::new(&["sh"]);
    s.open(2, "out", OUT, 1);
    s.runs(2, 3, &["quiet"]);
    s.exits(3, 2);
    s.runs(2, 4, &["loud"]);
    s.write(4, 1);
    s.exits(4, 2);
    check(
        &s,
        "loud#1 Write out@1
         quiet#1 Write? out@1
         sh#1 Fork loud#1
         sh#1 Fork quiet#1
         sh#1 Write out@1",
    );
}

#[test]
fn a_descriptor_that_is_open_both_ways_is_used_as_libcs_stream_of_its_number() {
    // `>& both <&1` with a file that was opened to read and to write.
    let mut s = Scene::new(&["sh"]);
    s.open(2, "input", RDWR, 0);
    s.open(2, "output", RDWR, 1);
    s.runs(2, 3, &["quiet"]);
    s.exits(3, 2);
    let told = told(&s.graph());
    let own: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("quiet"))
        .collect();
    assert_eq!(
        own,
        ["quiet#1 Read? input@1", "quiet#1 Write? output@1"],
        "{told}"
    );
}

#[test]
fn vfork_and_exec_are_one_activity() {
    let mut s = Scene::new(&["make"]);
    s.fork_by(2, 3, Some(backstory_eventlog::event::Spawn::Vfork));
    s.exec(3, "/bin/cc", &["cc", "-c"]);
    s.start(3, 2, false);
    s.reads(3, "x.c");
    s.writes(3, "x.o", OUT);
    s.exits(3, 2);
    check(
        &s,
        "cc#1 Read x.c@0
         cc#1 Write x.o@1
         make#1 Fork cc#1",
    );
    let graph = s.graph();
    assert_eq!(graph.activities.len(), 2);
    let cc = graph.activities.values().find(|a| a.pid == 3).unwrap();
    assert_eq!((cc.epoch, cc.exit, cc.parent.is_some()), (1, Some(0), true));
    assert!(
        graph
            .informs
            .iter()
            .any(|i| i.why == backstory_graph::model::Informed::Wait)
    );
}

#[test]
fn a_static_program_is_known_by_what_the_guard_sees() {
    let mut s = Scene::new(&["sh"]);
    s.fork(2, 3);
    s.exec(3, "/bin/static", &["static"]);
    s.kernel_open(3, "/w/in", RDONLY);
    s.kernel_open(3, "/w/out", OUT);
    s.kernel_open(3, "/w/db", RDWR);
    let exe = bytes("/bin/static");
    s.kernel(
        4,
        Outcome::Done(0),
        Op::Born {
            parent: 3,
            exe,
            cwd: bytes("/w"),
        },
    );
    s.kernel(4, Outcome::Done(0), Op::Gone { status: Some(9) });
    let graph = s.graph();
    let told = told(&graph);
    for line in [
        "static#1 Read in@0",
        "static#1 Write out@1",
        "static#1 Read? db@0",
        "static#1 Write? db@1",
    ] {
        assert!(told.lines().any(|l| l == line), "{line} is not in\n{told}");
    }
    assert!(
        told.contains("static#0 Write? out@1"),
        "the child may have used what it inherited\n{told}"
    );
    let child = graph.activities.values().find(|a| a.pid == 4).unwrap();
    assert_eq!(
        (child.signal, child.exit, child.lookups_known),
        (Some(9), None, false)
    );
}

#[test]
fn an_environment_is_given_as_its_difference_to_the_parents() {
    let mut s = Scene::new(&["sh"]);
    s.fork(2, 3);
    let env = Some(vec![bytes("A=1")].into());
    let exec = Op::Exec {
        dir: CWD,
        path: bytes("/bin/x"),
        flags: 0,
        args: vec![bytes("x")],
        env,
    };
    s.push(3, Outcome::Unknown, exec);
    let graph = s.graph();
    let x = graph.activities.values().find(|a| a.pid == 3).unwrap();
    assert_eq!(
        (x.env_set.as_slice(), x.env_unset.as_slice()),
        (&[bytes("A=1")][..], &[bytes("PATH")][..])
    );
}

#[test]
fn a_pid_given_again_is_another_process() {
    let mut s = Scene::new(&["sh"]);
    s.runs(2, 3, &["first"]);
    s.push(
        2,
        Outcome::Done(3),
        Op::Wait {
            status: 7 << 8,
            looked: false,
        },
    );
    s.runs(2, 3, &["second"]);
    let graph = s.graph();
    let exits: Vec<_> = graph
        .activities
        .values()
        .filter(|a| a.pid == 3)
        .map(|a| a.exit)
        .collect();
    assert_eq!(exits, [Some(7), None]);
}

/// A file system in which programs name the interpreters that the kernel runs them with.
#[derive(Default)]
struct Programs {
    interpreters: std::collections::BTreeMap<Vec<u8>, Vec<u8>>,
    /// The times at which programs were changed. All other programs are older than the run.
    changed: std::collections::BTreeMap<Vec<u8>, i64>,
}

impl backstory_graph::FinalState for Programs {
    fn identity(&self, path: &[u8], _follow: bool) -> Option<Option<Ident>> {
        let changed = self.changed.get(path).copied().unwrap_or(START - STEP);
        let number = path.iter().map(|byte| u64::from(*byte)).sum();
        Some(Some(ident(number, START - STEP, changed)))
    }

    fn interpreter(&self, path: &[u8]) -> Option<Box<[u8]>> {
        self.interpreters
            .get(path)
            .map(|found| found.as_slice().into())
    }
}

impl Programs {
    fn told(&self, s: &Scene) -> String {
        let mut graph = MemorySink::default();
        backstory_graph::fold(
            &s.header,
            Some(&s.end()),
            s.events.clone(),
            self,
            &mut graph,
        )
        .unwrap();
        let executed = graph
            .edges
            .iter()
            .filter(|edge| edge.relation == Relation::Execute);
        let lines = executed.map(|edge| {
            let sure = if edge.certainty == Certainty::Seen {
                ""
            } else {
                "?"
            };
            format!(
                "{}{sure} {}\n",
                activity(&graph, edge.activity),
                entity(&graph, edge.entity)
            )
        });
        lines.collect()
    }
}

#[test]
fn a_programs_interpreter_was_executed_too() {
    let mut s = Scene::new(&["sh"]);
    s.runs(2, 3, &["script"]);
    let mut programs = Programs::default();
    for (program, interpreter) in [
        ("/bin/sh", "/lib64/ld.so"),
        ("/bin/script", "tools/run"),
        ("/w/tools/run", "/bin/sh"),
    ] {
        programs
            .interpreters
            .insert(program.into(), interpreter.into());
    }
    let graph = programs.told(&s);
    for wanted in [
        "sh#1 /lib64/ld.so@0",
        "script#1 /bin/script@0",
        "script#1 tools/run@0",
        "script#1 /bin/sh@0",
        "script#1 /lib64/ld.so@0",
    ] {
        assert!(
            graph.lines().any(|line| line.trim() == wanted),
            "{wanted}: {graph}"
        );
    }
    programs
        .changed
        .insert(b"/bin/script".to_vec(), s.time + STEP);
    let graph = programs.told(&s);
    for wanted in ["script#1 /bin/script@0", "script#1? tools/run@0"] {
        assert!(
            graph.lines().any(|line| line.trim() == wanted),
            "{wanted}: {graph}"
        );
    }
    programs
        .interpreters
        .insert(b"/bin/sh".to_vec(), b"/bin/sh".to_vec());
    assert!(programs.told(&s).contains("/bin/sh@0"), "a ring ends");
}

#[test]
fn a_marked_activity_has_its_own_reads_and_passes_its_memory_on() {
    let mut s = Scene::new(&["python"]);
    s.reads(2, "setup.py");
    s.mark(2, "begin/cell 1");
    s.reads(2, "a.csv");
    s.runs(2, 3, &["true"]);
    s.mark(2, "next/cell 2/x%2fy");
    s.writes(2, "fig.png", OUT);
    s.mark(2, "end");
    s.reads(2, "later");
    s.mark(2, "end");
    check(
        &s,
        "cell 1#2 Fork true#1
         cell 1#2 Read a.csv@0
         cell 1#2 Read memory:2@1
         cell 1#2 Write memory:2@2
         cell 2#3 Read memory:2@2
         cell 2#3 Write fig.png@1
         cell 2#3 Write memory:2@3
         python#1 Read setup.py@0
         python#1 Write memory:2@1
         python#4 Read later@0
         python#4 Read memory:2@3",
    );
    let graph = s.graph();
    let named = |name: &str| {
        let mut all = graph.activities.values();
        all.find(|one| activity(&graph, one.id) == name).unwrap()
    };
    let (python, second) = (named("python#1").id, named("cell 2#3"));
    assert_eq!(&*second.argv[1], b"x/y");
    for inside in ["cell 1#2", "cell 2#3", "python#4"] {
        assert_eq!(named(inside).parent, Some(python), "{inside}");
    }
    let nested: Vec<String> = graph
        .extended
        .iter()
        .filter(|(.., kind, payload)| {
            kind == backstory_graph::nested::KIND && payload == backstory_graph::nested::NESTED
        })
        .map(|(who, ..)| activity(&graph, *who))
        .collect();
    assert_eq!(nested, ["cell 1#2", "cell 2#3"]);
    let from = came_from(&graph, "/w/fig.png", Follow::default());
    assert!(from.contains(&"a.csv@0".to_owned()), "{from:?}");
    assert!(!from.contains(&"later@0".to_owned()), "{from:?}");
}

#[test]
fn a_file_that_stays_open_is_possibly_used_by_the_next_marked_activity() {
    let mut s = Scene::new(&["python"]);
    s.open(2, "log", RDONLY, 5);
    s.read(2, 5);
    s.mark(2, "begin/cell 1");
    s.open(2, "fresh", RDONLY, 6);
    s.mark(2, "end");
    check(
        &s,
        "cell 1#2 Read fresh@0
         cell 1#2 Read memory:2@1
         cell 1#2 Read? log@0
         cell 1#2 Write memory:2@2
         python#1 Read log@0
         python#1 Write memory:2@1
         python#3 Read memory:2@2
         python#3 Read? log@0",
    );
}
