//! A file's content before a change is preserved byte for byte, however it is changed and whichever
//! observer sees the change.

#![allow(clippy::unwrap_used)]

use super::harness;

use harness::kept::{Kept, kept, kept_of};
use harness::{Run, SEEING, eventually, kill, others, text};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A run in whose directory `data` lies, with a content of its own.
fn run(options: &[&str]) -> (Run, Vec<u8>, fs::Metadata) {
    let run = Run::new(options);
    let mut content = b"first line\n".repeat(900);
    content.extend_from_slice(run.id.as_bytes());
    fs::write(run.path("data"), &content).unwrap();
    let before = fs::metadata(run.path("data")).unwrap();
    (run, content, before)
}

/// Asserts that the program behaves as ever, and that the content of `data` is preserved once.
#[track_caller]
fn keeps(options: &[&str], words: &[&str]) {
    let (run, content, before) = run(options);
    let native = Run::new(&[]);
    fs::write(native.path("data"), &content).unwrap();
    let expected = std::process::Command::new(words[0])
        .args(&words[1..])
        .current_dir(native.dir.path())
        .output()
        .unwrap();
    let output = run.record(words);
    assert_eq!(text(&output.stdout), text(&expected.stdout), "{words:?}");
    assert_eq!(text(&output.stderr), text(&expected.stderr), "{words:?}");
    assert_eq!(output.status, expected.status, "{words:?}");
    assert_eq!(
        fs::read(run.path("data")).ok(),
        fs::read(native.path("data")).ok(),
        "{words:?}"
    );
    let kept = kept(&run);
    let of_data: Vec<&Kept> = kept
        .iter()
        .filter(|k| {
            k.ident
                .is_some_and(|i| i.ino == before.ino() && i.dev == before.dev())
        })
        .collect();
    let first = of_data
        .first()
        .unwrap_or_else(|| panic!("{words:?}: not kept"));
    assert!(first.path.starts_with(run.dir.path()), "{:?}", first.path);
    assert_eq!(first.bytes.as_deref(), Ok(&content[..]), "{words:?}");
    let ident = first.ident.unwrap();
    assert_eq!(ident.size, content.len() as i64);
    assert_eq!(
        ident.mtime,
        before.mtime() * 1_000_000_000 + before.mtime_nsec()
    );
    // A link or a new name changes the status change time.
    if ident.nlink == 1 && first.path.ends_with("data") {
        assert_eq!(
            ident.ctime,
            before.ctime() * 1_000_000_000 + before.ctime_nsec()
        );
    }
    run.assert_tidy();
}

/// Runs with the recorder and without, preserving every content or only those that were read.
#[track_caller]
fn keeps_however_seen(script: &str) {
    for contents in ["all", "lazy"] {
        for &guard in SEEING {
            keeps(
                &["--contents", contents, "--guard", guard],
                &["sh", "-c", script],
            );
        }
        if let Some(busybox) = busybox() {
            keeps(
                &["--contents", contents],
                &[&busybox, "sh", "-c", &format!("PATH=; {script}")],
            );
        }
    }
}

fn busybox() -> Option<String> {
    let found = backstory_testkit::busybox::busybox();
    if found.is_none() {
        backstory_testkit::need::skipped("contents of static programs", "needs a static busybox");
    }
    found.map(|path| path.display().to_string())
}

#[test]
fn a_file_that_is_truncated_by_opening_it_is_kept() {
    keeps_however_seen("cat data; echo new > data");
}

#[test]
fn a_file_that_is_appended_to_is_kept() {
    keeps_however_seen("cat data; echo more >> data");
}

/// Not into a pipe: busybox's `cat` puts the file's own pages there (`sendfile`). A reader of the
/// pipe after the change then reads the change, recorded or not.
#[test]
fn a_file_that_is_overwritten_in_place_is_kept() {
    keeps_however_seen("cat data >seen; printf over | dd of=data conv=notrunc 2>/dev/null");
}

/// Not into a pipe, as above: the reader would get zeros.
#[test]
fn a_file_that_is_truncated_by_name_is_kept() {
    keeps_however_seen("cat data >seen; truncate -s 5 data");
}

#[test]
fn a_file_that_another_is_renamed_over_is_kept() {
    keeps_however_seen("cat data; echo new > other; mv -f other data");
}

#[test]
fn a_file_that_is_removed_is_kept() {
    keeps_however_seen("cat data; rm -f data");
}

#[test]
fn a_file_that_is_changed_by_its_second_name_is_kept() {
    keeps_however_seen("ln data second; cat data >/dev/null; echo new >> second");
}

#[test]
fn a_file_that_is_changed_by_way_of_a_symbolic_link_is_kept() {
    keeps_however_seen("ln -s data link; cat data; echo new > link");
}

#[test]
fn a_file_that_is_changed_by_a_relative_path_after_chdir_is_kept() {
    keeps_however_seen("mkdir d; cat data; cd d; echo new > ../data");
}

/// The shell may leave the directory before its child has logged anything. The child ends only
/// after that: its `SIGCHLD` could interrupt the `chdir` of a static shell, see `limits.md`.
#[test]
fn a_file_that_a_child_reads_while_its_parent_changes_directory_is_kept() {
    for reading in ["read x; echo $x", "cat data"] {
        keeps_however_seen(&format!(
            "mkdir d; mkfifo go; exec 3<>go; {{ {reading}; read y <&3; }} <data & \
             cd d; echo >&3; wait; echo new > ../data"
        ));
    }
}

#[test]
fn a_file_that_another_process_changes_is_kept() {
    keeps_however_seen("cat data; sh -c 'echo new > data; rm data'");
}

/// Asserts that no content of `data` is preserved.
#[track_caller]
fn does_not_keep(script: &str) {
    let (run, _, before) = run(&["--contents", "lazy"]);
    let output = run.shell(script);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let kept: Vec<_> = kept(&run).into_iter().filter_map(|k| k.ident).collect();
    assert!(kept.iter().all(|i| i.ino != before.ino()), "{script}");
}

#[test]
fn an_unread_content_is_not_preserved() {
    does_not_keep("echo new > data");
    does_not_keep("rm data");
    does_not_keep("cat /dev/null; echo other > other; mv other data; echo more > data");
}

#[test]
fn an_unread_file_that_is_changed_in_part_is_preserved() {
    keeps_however_seen("echo more >> data");
    keeps_however_seen("printf over | dd of=data conv=notrunc 2>/dev/null; echo more >> data");
    // Preserved once, not before each further line, and without the contents that the run made.
    let (run, content, _) = run(&["--contents", "lazy"]);
    run.shell("for i in 1 2 3; do echo $i >> data; sh -c 'echo 4 >> data; echo 5 >> made'; done");
    let kept: Vec<_> = kept(&run).into_iter().map(|k| k.bytes.unwrap()).collect();
    assert_eq!(kept, [content]);
}

#[test]
fn a_long_file_that_is_appended_to_is_not_copied_and_that_is_reported() {
    let run = Run::new(&["--contents", "lazy"]);
    let file = fs::File::create(run.path("log")).unwrap();
    file.set_len(1 << 30).unwrap();
    run.shell("echo more >> log");
    let told: Vec<_> = kept(&run).into_iter().map(|k| k.bytes).collect();
    assert_eq!(told, [Err(libc::EFBIG)]);
}

#[test]
fn an_unread_content_that_the_run_made_is_not_preserved() {
    let run = Run::new(&["--contents", "lazy"]);
    run.shell("for i in 1 2 3; do echo $i > made; rm made; done; mkdir d; cd d; echo x > y; rm y");
    assert_eq!(kept(&run).len(), 0);
    assert!(!run.path(&format!("{}.kept", run.id)).exists());
}

#[test]
fn data_read_only_by_its_writer_is_not_preserved() {
    let script = |turns: u32| {
        let wait = format!("i=0; while [ $((i+=1)) -lt {turns} ]; do :; done");
        format!(
            "{wait}; echo 1 > made; read x < made; {wait}; echo 2 >> made; read x < made; {wait}; echo 3 > made; read x < made; {wait}; rm made"
        )
    };
    // `rm` is another program, but has not read the file. The file is preserved as a precaution in
    // two cases:
    // - An earlier call was not logged yet, as on a busy machine.
    // - The file was made before the file system's coarse clock had moved since the run began.
    //
    // Both cases end after a while. No program is started meanwhile, because that would end the
    // maker's knowledge of its files.
    let mut kept = [1, 10_000, 100_000, 1_000_000]
        .into_iter()
        .flat_map(|turns| std::iter::repeat_n(script(turns), 10))
        .map(|script| kept_of("made", &["sh", "-c", &script]));
    assert!(kept.any(|kept| kept.is_empty()), "it is always kept");
}

#[test]
fn a_content_written_by_others_and_read_by_its_maker_is_preserved() {
    let mut others = vec!["sh".to_owned()];
    others.extend(busybox().map(|busybox| format!("{busybox} sh")));
    for other in others {
        let script = format!(
            "echo 1 > made; {other} -c 'echo 2 >> made'; read x < made; echo 3 > made; rm made"
        );
        // No process had read the content that the other program found, nor the last one. They may
        // be preserved, but need not be.
        let kept = kept_of("made", &["sh", "-c", &script]);
        assert!(kept.iter().any(|one| one == "1\n2\n"), "{other}: {kept:?}");
    }
}

#[test]
fn another_process_changing_a_file_its_maker_read_is_noticed() {
    if !backstory_testkit::need::needs("two processes side by side", &["python3"]) {
        return;
    }
    // The other process exists before the file does, and acts when it is signalled.
    let beside = |other: &str| {
        format!(
            "import subprocess\np=subprocess.Popen({other},stdin=subprocess.PIPE,stdout=subprocess.PIPE)\n\
             f=open('made','w'); f.write('1'); f.close()\nopen('made').read()\n\
             p.stdin.write(b'x\\n'); p.stdin.flush(); p.stdout.readline()\n\
             open('made').read()\nimport os; os.unlink('made'); p.communicate()"
        )
    };
    let append = "read x; printf 2 >> made; echo";
    let look = "read x; read y < made; echo";
    let mut others = vec!["['sh','-c',".to_owned()];
    others.extend(busybox().map(|busybox| format!("['{busybox}','sh','-c','PATH=;'+")));
    for other in others {
        for (does, expected) in [(append, "12"), (look, "1")] {
            let program = beside(&format!("{other}'{does}']"));
            let kept = kept_of("made", &["python3", "-c", &program]);
            assert_eq!(kept, [expected], "{program}");
        }
    }
}

#[test]
fn a_content_read_through_its_makers_descriptor_is_preserved() {
    let script = "echo 1 > made; exec 3< made; cat <&3; rm made";
    assert_eq!(kept_of("made", &["sh", "-c", script]), ["1\n"]);
    let script = "echo 1 > made; exec 3< made; exec 4<&3 3<&-; sh -c 'cat <&4; echo 2 > made'";
    assert_eq!(kept_of("made", &["sh", "-c", script]), ["1\n"]);
    if !backstory_testkit::need::needs("descriptors that are passed on", &["python3"]) {
        return;
    }
    let made = "import os,socket,subprocess\nopen('made','w').write('1')\nf=open('made')\n";
    let ways = [
        "subprocess.run(['cat'],stdin=f,close_fds=False)\nos.unlink('made')",
        "os.dup2(f.fileno(),0)\nos.execlp('sh','sh','-c','cat; rm made')",
        "a,b=socket.socketpair()\np=os.fork()\nif not p: a.recv(1); f=socket.recv_fds(a,1,1)[1][0]; os.read(f,9); os._exit(0)\n\
         b.send(b'x'); socket.send_fds(b,[b'x'],[f.fileno()]); os.wait(); os.unlink('made')",
        "import mmap\nm=mmap.mmap(f.fileno(),0,prot=mmap.PROT_READ)\nf.close()\np=os.fork()\nif not p: m[0]; os._exit(0)\n\
         os.wait(); os.unlink('made')",
    ];
    for way in ways {
        assert_eq!(
            kept_of("made", &["python3", "-c", &format!("{made}{way}")]),
            ["1"],
            "{way}"
        );
    }
}

#[test]
fn a_file_with_the_inode_of_a_removed_one_is_another_file() {
    let made = "echo 1 > made; read x < made; rm made";
    let script = format!("{made}; sh -c 'echo 2 > other'; read x < other; echo 3 > other");
    assert_eq!(kept_of("other", &["sh", "-c", &script]), ["2\n"]);
}

/// The number of requests that a program makes before changes, as strace counts them. `None`
/// without strace.
fn asks(run: &Run, before: &str, program: &str) -> Option<usize> {
    if !backstory_testkit::need::needs("how often is asked", &["strace"]) {
        return None;
    }
    let said = run.shell(&format!(
        "{before}; strace -f -qq -e trace=getpriority -o ..asked {program} && wc -l < ..asked"
    ));
    Some(text(&said.stdout).trim().parse().unwrap())
}

#[test]
fn a_process_changing_unread_made_files_asks_once_not_for_each_file() {
    let run = Run::new(&["--contents", "lazy"]);
    let made = "mkdir d; i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i > d/$i; done";
    let Some(asked) = asks(&run, made, "rm -r d") else {
        return;
    };
    // A program that starts has read its libraries. With `auto`, it also asks whether it has the
    // filter.
    let most = 3 + usize::from(SEEING == ["auto"]);
    assert!(asked <= most, "{asked}");
    assert_eq!(kept(&run).len(), 0);
}

/// Makes 50 files, which another process reads.
const MADE_AND_READ: &str =
    "mkdir d; i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo $i > d/$i; done; cat d/* >/dev/null";

#[test]
fn a_process_overwriting_read_files_asks_for_each_file() {
    let run = Run::new(&["--contents", "lazy"]);
    let program = "sh -c 'for file in d/*; do : > $file; done'";
    let Some(asked) = asks(&run, MADE_AND_READ, program) else {
        return;
    };
    assert!(asked >= 50, "{asked}");
    assert_eq!(kept(&run).len(), 50);
}

/// `rm` names each file relative to a descriptor of its directory.
#[test]
fn a_process_removing_read_files_asks_once_not_for_each_file() {
    let run = Run::new(&["--contents", "lazy"]);
    let Some(asked) = asks(&run, MADE_AND_READ, "rm -r d") else {
        return;
    };
    assert!(asked < 10, "{asked}");
    let mut contents: Vec<u32> = kept(&run)
        .into_iter()
        .map(|one| text(&one.bytes.unwrap()).trim().parse().unwrap())
        .collect();
    contents.sort_unstable();
    assert!(contents.into_iter().eq(1..=50));
}

#[test]
fn a_file_on_another_file_system_is_preserved_by_copying() {
    let mut run = Run::new(&["--contents", "lazy"]);
    let here = std::mem::replace(&mut run.dir, tempfile::tempdir_in("/dev/shm").unwrap());
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(here.path()) == device(run.dir.path()) {
        return backstory_testkit::need::skipped(
            "contents across file systems",
            "there is only one",
        );
    }
    let content = b"far away\n".repeat(200_000);
    for name in ["a", "b"] {
        fs::write(here.path().join(name), &content).unwrap();
    }
    let output = run.shell(&format!(
        "cd {}; cat a b >/dev/null; rm a; echo new > b; cat b; rm b",
        here.path().display()
    ));
    assert_eq!(
        (text(&output.stdout), output.status.code()),
        ("new\n".into(), Some(0))
    );
    let told = kept(&run);
    for name in ["a", "b"] {
        let first = told
            .iter()
            .find(|k| k.path == here.path().join(name))
            .unwrap();
        assert!(first.bytes.as_deref() == Ok(&content[..]), "{name}");
    }
    run.assert_tidy();
}

#[test]
fn every_version_that_was_read_is_kept() {
    let run = Run::new(&["--contents", "lazy"]);
    run.shell("for i in 1 2 3 4 5; do echo $i$i > made; cat made; done; rm made");
    let versions: Vec<_> = kept(&run)
        .into_iter()
        .map(|k| text(&k.bytes.unwrap()))
        .collect();
    assert_eq!(versions, ["11\n", "22\n", "33\n", "44\n", "55\n"]);
}

/// The supervisor does not look up a name each time if its directory has not changed for three
/// seconds.
#[test]
fn a_file_in_the_place_of_one_that_was_read_again_and_again_is_kept() {
    let make = |&guard: &&str| {
        let run = Run::new(&["--contents", "lazy", "--guard", guard]);
        fs::create_dir(run.path("d")).unwrap();
        for (name, content) in [("d/a", "1\n"), ("other", "2\n"), ("written", "x\n")] {
            fs::write(run.path(name), content).unwrap();
        }
        run
    };
    let runs: Vec<Run> = SEEING.iter().map(make).collect();
    std::thread::sleep(std::time::Duration::from_millis(3200));
    // Before it writes, the shell sends a request, with which the reads are looked up.
    let reads = "for i in 1 2 3; do cat d/a; echo $i > written; done";
    for (run, guard) in runs.iter().zip(SEEING) {
        let output = run.shell(&format!("{reads}; mv -f other d/a; {reads}; echo 3 > d/a"));
        assert_eq!(text(&output.stdout), "1\n1\n1\n2\n2\n2\n", "{guard}");
        let of_it = kept(run).into_iter().filter(|k| k.path.ends_with("d/a"));
        let versions: Vec<_> = of_it.map(|k| text(&k.bytes.unwrap())).collect();
        assert_eq!(versions, ["1\n", "2\n"], "{guard}");
        run.assert_tidy();
    }
}

#[test]
fn a_file_that_was_moved_after_it_was_read_is_kept() {
    keeps_however_seen("cat data; mv data moved; echo x > data; echo new > moved");
    keeps_however_seen("mkdir d; ln data d/data; cat d/data; mv d e; echo new > e/data");
    keeps_however_seen(
        "mkdir d; ln data d/data; ln -s d l; cat l/data; ln -sfn /tmp l; echo new > d/data",
    );
}

/// Actions of Python itself: mappings, children with a directory of their own, descriptors of
/// directories.
#[track_caller]
fn keeps_from_python(program: &str) {
    if !backstory_testkit::need::needs("contents changed from Python", &["python3"]) {
        return;
    }
    for &guard in SEEING {
        keeps(
            &["--contents", "lazy", "--guard", guard],
            &["python3", "-c", program],
        );
    }
}

#[test]
fn a_file_that_is_changed_through_a_mapping_is_kept() {
    keeps_from_python(
        "import mmap\nf=open('data','r+b')\nm=mmap.mmap(f.fileno(),0)\nm[0:4]=b'XXXX'\nm.flush()",
    );
}

#[test]
fn a_childs_reads_in_its_own_directory_are_preserved() {
    let cut = "open('data','w').write('new')";
    keeps_from_python(&format!(
        "import os,subprocess\nos.mkdir('d')\nos.link('data','d/inner')\nsubprocess.run(['cat','inner'],cwd='d',close_fds=False)\n{cut}"
    ));
    keeps_from_python(&format!(
        "import os\nos.mkdir('d')\nos.link('data','d/inner')\nd=os.open('d',os.O_RDONLY)\nos.close(os.open('inner',os.O_RDONLY,dir_fd=d))\n{cut}"
    ));
}

#[test]
fn files_that_change_places_stay_readable() {
    let (run, content, _) = run(&["--contents", "lazy"]);
    fs::write(run.path("other"), "other").unwrap();
    let script = "import ctypes;ctypes.CDLL(None).renameat2(-100,b'data',-100,b'other',2)";
    run.record(&["python3", "-c", script]);
    assert_eq!(fs::read(run.path("other")).unwrap(), content);
    run.assert_tidy();
}

#[test]
fn a_file_that_a_spawned_child_truncates_is_preserved() {
    keeps_from_python(
        "import os\nopen('data').read()\na=[(os.POSIX_SPAWN_OPEN,1,'data',os.O_WRONLY|os.O_TRUNC,420)]\n\
         os.waitpid(os.posix_spawn('/bin/echo',['echo','new'],os.environ,file_actions=a),0)",
    );
}

#[test]
fn a_supervisor_killed_while_it_preserves_disturbs_no_program() {
    let run = Run::new(&["--contents", "lazy"]);
    let script = "i=0; while [ $i -lt 400 ]; do i=$((i+1)); (echo $i > f$i); read x < f$i; echo $x new > f$i; done; exit 5";
    let mut launcher = run.command(&["sh", "-c", script]).spawn().unwrap();
    let kept = run.path(&format!("{}.kept", run.id));
    eventually("something is kept", || {
        fs::read_dir(&kept).is_ok_and(|d| d.count() > 3)
    });
    let (_, supervisor) = others(launcher.id());
    kill(supervisor, 9);
    assert_eq!(launcher.wait().unwrap().code(), Some(5));
    for i in 1..=400 {
        assert_eq!(
            fs::read_to_string(run.path(&format!("f{i}"))).unwrap(),
            format!("{i} new\n")
        );
    }
    let reasons = run.reasons();
    assert!(
        reasons.iter().any(|r| r.contains("the supervisor died")),
        "{reasons:?}"
    );
    run.assert_tidy();
}

#[test]
fn a_content_that_cannot_be_preserved_is_reported_and_disturbs_no_program() {
    let (run, _, _) = run(&["--contents", "lazy"]);
    // A file in the place of the directory.
    fs::write(run.path(&format!("{}.kept", run.id)), "").unwrap();
    let output = run.shell(
        "cat data >/dev/null; echo new > data; cat data; rm data; ls data 2>/dev/null || echo gone",
    );
    assert_eq!(text(&output.stdout), "new\ngone\n");
    let told: Vec<_> = kept(&run).into_iter().map(|k| (k.path, k.bytes)).collect();
    let refused = |path: &(PathBuf, Result<Vec<u8>, i32>)| path.1 == Err(libc::ENOTDIR);
    assert!(told.len() == 2 && told.iter().all(refused), "{told:?}");
    run.assert_tidy();
}
