//! Small named scenes and the graph of each.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use crate::common::*;
use backstory_eventlog::Reason;
use backstory_eventlog::event::{CWD, MetadataPart, Op, Outcome};
use backstory_files::Ident;
use backstory_graph::lineage::Follow;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{Certainty, Relation};

fn check(scene: &Scene, expected: &str) {
    let graph = scene.graph();
    let expected: Vec<&str> = expected
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let told = told(&graph);
    assert_eq!(told.lines().collect::<Vec<_>>(), expected, "\n{told}\n");
}

#[test]
fn cp_reads_one_file_and_writes_the_other() {
    let mut s = Scene::new(&["cp", "a", "b"]);
    s.open(2, "a", RDONLY, 3);
    s.open(2, "b", OUT, 4);
    s.read(2, 3);
    s.write(2, 4);
    s.close(2, 3);
    s.close(2, 4);
    check(
        &s,
        "cp#1 Read a@0
         cp#1 Write b@1",
    );
    let graph = s.graph();
    assert_eq!(
        graph.activities.len(),
        1,
        "the command is one activity: {:?}",
        graph.activities
    );
    let cp = graph.activities.values().next().unwrap();
    assert_eq!(cp.exec_path.as_deref(), Some(&b"/bin/cp"[..]));
    assert_eq!((cp.epoch, cp.exit, cp.parent), (1, Some(0), None));
}

#[test]
fn a_pipe_joins_writer_and_reader() {
    let mut s = Scene::new(&["sh"]);
    s.pipe(2, 3, 4);
    s.fork(2, 3);
    s.fork(2, 4);
    s.close(2, 3);
    s.close(2, 4);
    for (pid, from, to, name) in [(3, 4, 1, "cat"), (4, 3, 0, "sort")] {
        s.start(pid, 2, true);
        s.dup2(pid, from, to);
        s.close(pid, 3);
        s.close(pid, 4);
        s.exec(pid, &format!("/bin/{name}"), &[name]);
        s.start(pid, 2, false);
    }
    s.reads(3, "a");
    s.write(3, 1);
    s.read(4, 0);
    s.writes(4, "b", OUT);
    check(
        &s,
        "cat#1 Read a@0
         cat#1 Write pipe:1@0
         sh#1 Fork cat#1
         sh#1 Fork sort#1
         sort#1 Read pipe:1@0
         sort#1 Write b@1",
    );
}

#[test]
fn a_replaced_file_comes_from_the_temporary_one() {
    let mut s = Scene::new(&["sed", "-i"]);
    s.reads(2, "a");
    s.writes(2, "tmp", WRONLY | CREAT | EXCL);
    s.rename(2, "tmp", "a");
    s.runs(2, 3, &["cat"]);
    s.reads(3, "a");
    check(
        &s,
        "a@2 from tmp@1
         cat#1 Read a@2
         sed#1 Delete tmp@1
         sed#1 Fork cat#1
         sed#1 Read a@0
         sed#1 Rename a@2
         sed#1 Write tmp@1",
    );
    assert_eq!(
        came_from(&s.graph(), "/w/a", Follow::default()),
        ["a@0", "tmp@1"]
    );
}

#[test]
fn an_appended_file_derives_from_its_former_version() {
    let mut s = Scene::new(&["tee", "-a"]);
    s.writes(2, "log", WRONLY | CREAT | APPEND);
    check(
        &s,
        "log@1 from log@0
         tee#1 Write log@1",
    );
}

#[test]
fn a_truncated_file_does_not_derive_from_its_former_version() {
    let mut s = Scene::new(&["sh"]);
    s.reads(2, "log");
    s.writes(2, "log", OUT);
    let graph = s.graph();
    assert!(graph.derived.is_empty());
    let newest = graph.newest(b"/w/log").unwrap();
    assert_eq!(newest.version, 1);
    assert_eq!(entity(&graph, newest.previous.unwrap()), "log@0");
}

#[test]
fn a_file_truncated_without_o_creat_existed_before() {
    let mut s = Scene::new(&["dd"]);
    s.writes(2, "there", WRONLY | TRUNC);
    s.writes(2, "made", OUT);
    let graph = s.graph();
    assert!(graph.derived.is_empty(), "nothing comes from what it held");
    let before = |path: &str| {
        let newest = graph.newest(path.as_bytes()).unwrap();
        newest.previous.map(|id| entity(&graph, id))
    };
    assert_eq!(
        (before("/w/there").as_deref(), before("/w/made")),
        (Some("there@0"), None)
    );
}

#[test]
fn a_read_after_a_write_did_not_flow_into_it() {
    // A writes g, B reads g and writes h, A reads h. The programs form a cycle, but no path in time
    // does.
    let mut s = Scene::new(&["sh"]);
    s.runs(2, 3, &["A"]);
    s.runs(2, 4, &["B"]);
    s.reads(3, "x");
    s.writes(3, "g", OUT);
    s.reads(4, "g");
    s.writes(4, "h", OUT);
    s.reads(3, "h");
    let graph = s.graph();
    assert_eq!(came_from(&graph, "/w/g", Follow::default()), ["x@0"]);
    assert_eq!(came_from(&graph, "/w/h", Follow::default()), ["g@1", "x@0"]);
}

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
fn the_only_possible_writer_of_a_changed_file_wrote_it() {
    let mut s = Scene::new(&["prog"]);
    let before = ident(7, START - STEP, START - STEP);
    s.open(2, "db", RDWR, 3).ident = Some(before);
    let changed = s.time;
    s.close(2, 3).ident = Some(ident(7, START - STEP, changed));
    let same = ident(8, START - STEP, START - STEP);
    s.open(2, "idle", RDWR, 3).ident = Some(same);
    s.close(2, 3).ident = Some(same);
    check(
        &s,
        "db@1 from db@0
         idle@1 from idle@0
         prog#1 Read? db@0
         prog#1 Read? db@1
         prog#1 Read? idle@0
         prog#1 Read? idle@1
         prog#1 Write db@1
         prog#1 Write? idle@1",
    );
}

#[test]
fn a_file_that_did_not_change_until_the_end_was_not_written() {
    let mut s = Scene::new(&["prog"]);
    let idle = ident(7, START - STEP, START - STEP);
    s.open(2, "idle", RDWR, 3).ident = Some(idle);
    s.close(2, 3).ident = Some(idle);
    // Another file is at this path after the run.
    let moved = ident(8, START - STEP, START - STEP);
    s.open(2, "moved", RDWR, 3).ident = Some(moved);
    s.close(2, 3).ident = Some(moved);
    let other = ident(9, START - STEP, START - STEP);
    // A call that was seen counts, whatever the file system says.
    let still = ident(10, START - STEP, START - STEP);
    s.open(2, "still", RDWR, 3).ident = Some(still);
    s.write(2, 3);
    s.close(2, 3).ident = Some(still);
    let files = [("idle", idle), ("moved", other), ("still", still)];
    let files = files.map(|(name, ident)| (format!("/w/{name}").into_bytes(), ident));
    s.after = Some(After {
        files: files.into(),
        ..After::default()
    });
    check(
        &s,
        "moved@1 from moved@0
         prog#1 Read? idle@0
         prog#1 Read? moved@0
         prog#1 Read? moved@1
         prog#1 Read? still@0
         prog#1 Read? still@1
         prog#1 Write still@1
         prog#1 Write? moved@1
         still@1 from still@0",
    );
}

/// A file in memory (tmpfs) keeps its times.
#[test]
fn a_mapping_writes_another_version_although_the_times_stay() {
    let mut s = Scene::new(&["prog"]);
    let still = ident(7, START - STEP, START - STEP);
    s.open(2, "still", RDWR, 3).ident = Some(still);
    let (fd, prot, flags) = (3, 3, 1);
    s.done(2, Op::Map { fd, prot, flags });
    s.close(2, 3).ident = Some(still);
    s.after = Some(After {
        files: [(b"/w/still".to_vec(), still)].into(),
        ..After::default()
    });
    let told = told(&s.graph());
    assert!(told.contains("prog#1 Write still@1"), "{told}");
    assert!(told.contains("still@1 from still@0"), "{told}");
    assert!(!told.contains("Write still@0"), "{told}");
}

#[test]
fn a_program_without_a_recorder_may_have_written_a_file_that_did_not_change() {
    let mut s = Scene::new(&["sh"]);
    let still = ident(7, START - STEP, START - STEP);
    s.fork(2, 3);
    s.exec(3, "/bin/static", &["static"]);
    s.kernel_open(3, "/w/still", RDWR).ident = Some(still);
    s.after = Some(After {
        files: [(b"/w/still".to_vec(), still)].into(),
        ..After::default()
    });
    let told = told(&s.graph());
    assert!(told.contains("static#1 Write? still@"), "{told}");
}

/// `fdatasync` makes a content durable, and not always the times of its file.
#[test]
fn a_file_with_the_times_of_before_may_be_written_if_the_machine_crashed() {
    let mut s = Scene::new(&["prog"]);
    let idle = ident(7, START - STEP, START - STEP);
    s.open(2, "idle", RDWR, 3).ident = Some(idle);
    s.close(2, 3).ident = Some(idle);
    s.after = Some(After {
        files: [(b"/w/idle".to_vec(), idle)].into(),
        ..After::default()
    });
    let mut end = s.end();
    end.incomplete_because = vec![Reason::NoEnd {}.to_string()];
    let graph = folded(&s.header, &end, &s.events, s.after.as_ref());
    let told = told(&graph);
    assert!(told.contains("prog#1 Write? idle@1"), "{told}");
}

#[test]
fn a_symbolic_link_is_another_name_for_its_target() {
    let mut s = Scene::new(&["sh"]);
    s.symlink(2, "real", "alias");
    s.writes(2, "alias", OUT);
    s.reads(2, "real");
    check(
        &s,
        "sh#1 Make alias@1
         sh#1 Read real@1
         sh#1 Write real@1",
    );
    let graph = s.graph();
    assert_eq!(&*graph.newest(b"/w/real").unwrap().aliases[0], b"/w/alias");
}

#[test]
fn an_older_link_is_known_by_the_identity_behind_it() {
    let mut s = Scene::new(&["sh"]);
    s.writes(2, "real", WRONLY);
    s.reads(2, "alias");
    let file = ident(7, START - STEP, s.at(4));
    let mut link = ident(8, START - STEP, START - STEP);
    link.mode = 0o120_777;
    let files = [(b"/w/real".to_vec(), file), (b"/w/alias".to_vec(), file)];
    s.after = Some(After {
        files: files.into(),
        links: [(b"/w/alias".to_vec(), link)].into(),
        ..After::default()
    });
    check(
        &s,
        "real@1 from real@0
         sh#1 Read real@1
         sh#1 Write real@1",
    );
}

/// Adds `utimensat(path)`. `before` is the identity that the file had before the call.
fn dates(s: &mut Scene, path: &str, before: Option<Ident>) {
    let op = Op::Meta {
        dir: CWD,
        path: bytes(path),
        what: MetadataPart::Times,
        link: false,
    };
    s.done(2, op).ident = before;
}

#[test]
fn new_times_of_a_file_from_before_the_run_make_another_version() {
    let mut s = Scene::new(&["sh"]);
    dates(&mut s, "a", None);
    s.reads(2, "a");
    check(
        &s,
        "a@1 from a@0
         sh#1 Meta a@1
         sh#1 Read a@1",
    );
}

#[test]
fn new_times_of_a_file_that_the_run_wrote_belong_to_the_written_version() {
    let mut s = Scene::new(&["sh"]);
    s.writes(2, "a", WRONLY | CREAT | TRUNC);
    dates(&mut s, "a", None);
    check(
        &s,
        "sh#1 Meta a@1
         sh#1 Write a@1",
    );
}

#[test]
fn hard_links_share_the_written_content() {
    let mut s = Scene::new(&["sh"]);
    s.link(2, "a", "b");
    s.writes(2, "b", WRONLY | APPEND);
    s.reads(2, "a");
    check(
        &s,
        "a@1 from b@1
         b@0 from a@0
         b@1 from a@0
         sh#1 Make b@0
         sh#1 Meta a@0
         sh#1 Read a@1
         sh#1 Write b@1",
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
fn two_writers_at_once_share_a_version() {
    let mut s = Scene::new(&["sh"]);
    s.runs(2, 3, &["A"]);
    s.runs(2, 4, &["B"]);
    s.open(3, "f", OUT, 3);
    s.open(4, "f", WRONLY, 3);
    s.write(4, 3);
    s.write(3, 3);
    s.close(3, 3);
    s.close(4, 3);
    s.writes(2, "f", WRONLY);
    check(
        &s,
        "A#1 Write f@1
         B#1 Write f@1
         f@2 from f@1
         sh#1 Fork A#1
         sh#1 Fork B#1
         sh#1 Write f@2",
    );
}

#[test]
fn a_file_that_does_not_exist_is_missing() {
    let mut s = Scene::new(&["cc"]);
    let open = Op::Open {
        dir: CWD,
        path: bytes("inc/../x.h"),
        flags: RDONLY,
        mode: 0,
    };
    s.push(2, Outcome::Done(-2), open);
    s.push(
        2,
        Outcome::Done(-2),
        Op::Stat {
            dir: CWD,
            path: bytes("y.h"),
            flags: 0,
        },
    );
    s.push(
        2,
        Outcome::Done(-13),
        Op::Access {
            dir: CWD,
            path: bytes("z.h"),
            mode: 4,
        },
    );
    check(
        &s,
        "cc#1 Missing x.h@0
         cc#1 Missing y.h@0
         cc#1 Stat z.h@0",
    );
}

#[test]
fn a_renamed_directory_takes_files_and_directories_in_use_along() {
    let mut s = Scene::new(&["sh"]);
    s.done(
        2,
        Op::Mkdir {
            dir: CWD,
            path: bytes("d"),
        },
    );
    s.open(2, "d", RDONLY, 3);
    s.writes(2, "d/x", OUT);
    s.rename(2, "d", "e");
    s.push(
        2,
        Outcome::Done(4),
        Op::Open {
            dir: 3,
            path: bytes("x"),
            flags: RDONLY,
            mode: 0,
        },
    );
    s.close(2, 4);
    check(
        &s,
        "e/x@2 from d/x@1
         e@2 from d@1
         sh#1 Delete d@1
         sh#1 Make d@1
         sh#1 Read e/x@2
         sh#1 Rename e@2
         sh#1 Stat e@2
         sh#1 Write d/x@1",
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
fn a_server_and_its_client_are_joined_by_address() {
    let mut s = Scene::new(&["sh"]);
    s.runs(2, 3, &["server"]);
    s.runs(2, 4, &["client"]);
    let address: Box<[u8]> = [&1u16.to_le_bytes()[..], b"/run/s\0"].concat().into();
    s.push(3, Outcome::Done(3), Op::Socket { domain: 1, kind: 1 });
    s.done(
        3,
        Op::Bind {
            fd: 3,
            address: address.clone(),
        },
    );
    s.push(4, Outcome::Done(3), Op::Socket { domain: 1, kind: 1 });
    s.push(
        3,
        Outcome::Done(4),
        Op::Accept {
            fd: 3,
            address: bytes(""),
        },
    );
    s.done(
        4,
        Op::Connect {
            fd: 3,
            kind: 1,
            address,
        },
    );
    s.reads(4, "question");
    s.write(4, 3);
    s.read(3, 4);
    s.writes(3, "answer", OUT);
    let found = came_from(
        &s.graph(),
        "/w/answer",
        Follow {
            possible: false,
            lookups: false,
        },
    );
    assert_eq!(found, ["question@0", "unix:/run/s@0"]);
}

/// An internet address: family, port, and the four bytes of the host.
fn internet(host: [u8; 4], port: u16) -> Box<[u8]> {
    let parts = [&2u16.to_le_bytes()[..], &port.to_be_bytes(), &host, &[0; 8]];
    parts.concat().into()
}

/// A server at `bound` answers a client whose host is `client`, and which connected to `reached`.
fn asked_over_the_network(bound: [u8; 4], reached: [u8; 4], client: [u8; 4]) -> Vec<String> {
    let mut s = Scene::new(&["sh"]);
    s.runs(2, 3, &["server"]);
    s.runs(2, 4, &["client"]);
    s.push(3, Outcome::Done(3), Op::Socket { domain: 2, kind: 1 });
    let address = internet(bound, 8080);
    s.done(3, Op::Bind { fd: 3, address });
    s.push(4, Outcome::Done(3), Op::Socket { domain: 2, kind: 1 });
    let address = internet(reached, 8080);
    s.done(
        4,
        Op::Connect {
            fd: 3,
            kind: 1,
            address,
        },
    );
    let address = internet(client, 41000);
    s.push(3, Outcome::Done(4), Op::Accept { fd: 3, address });
    s.reads(4, "question");
    s.write(4, 3);
    s.read(3, 4);
    s.writes(3, "answer", OUT);
    let follow = Follow {
        possible: false,
        lookups: false,
    };
    came_from(&s.graph(), "/w/answer", follow)
}

#[test]
fn a_server_of_all_addresses_is_joined_with_the_clients_of_its_machine() {
    let (all, local, own) = ([0; 4], [127, 0, 0, 1], [192, 168, 1, 5]);
    for (reached, name) in [
        (local, "tcp:127.0.0.1:8080@0"),
        (own, "tcp:192.168.1.5:8080@0"),
    ] {
        let found = asked_over_the_network(all, reached, reached);
        assert_eq!(found, ["question@0", name]);
    }
    // A client that connects to all addresses reaches the local one.
    let found = asked_over_the_network(all, all, local);
    assert_eq!(found, ["question@0", "tcp:127.0.0.1:8080@0"]);
    // The client asked another machine, and the server's client is on a third.
    let found = asked_over_the_network(all, [192, 168, 1, 9], [192, 168, 1, 7]);
    assert_eq!(found, ["tcp:0.0.0.0:8080@0"]);
}

#[test]
fn process_substitution_is_a_pipe() {
    let mut s = Scene::new(&["bash"]);
    s.pipe(2, 62, 63);
    s.runs(2, 3, &["cat"]);
    s.open(3, "/dev/fd/62", RDONLY, 3);
    s.read(3, 3);
    check(
        &s,
        "bash#1 Fork cat#1
         cat#1 Read pipe:1@0",
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
fn the_final_state_is_read_once_and_only_for_paths_that_content_flows_through() {
    struct Listener(std::cell::RefCell<Vec<(String, bool)>>);
    impl backstory_graph::FinalState for Listener {
        fn identity(&self, path: &[u8], follow: bool) -> Option<Option<Ident>> {
            self.0.borrow_mut().push((text(path), follow));
            None
        }
    }
    let mut s = Scene::new(&["cp"]);
    for path in ["looked", "a"] {
        let (dir, path, flags) = (CWD, bytes(path), 0);
        s.push(2, Outcome::Done(0), Op::Stat { dir, path, flags });
    }
    s.reads(2, "a");
    s.reads(2, "/w/./a");
    let listener = Listener(Default::default());
    let (mut sink, end) = (backstory_graph::memory::NullSink, s.end());
    let Ok(()) = backstory_graph::fold(
        &s.header,
        Some(&end),
        s.events.iter().cloned(),
        &listener,
        &mut sink,
    );
    let asked = listener.0.into_inner();
    assert!(!asked.iter().any(|(p, _)| p == "/w/looked"), "{asked:?}");
    let a: Vec<_> = asked
        .iter()
        .filter(|(p, follow)| p == "/w/a" && *follow)
        .collect();
    assert_eq!(a.len(), 1, "{asked:?}");
    let mut unique = asked.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), asked.len());
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
