//! Tests of the steps after a run: resolving identities, and recovering a log that no process
//! ended.

#![allow(clippy::unwrap_used)]

use super::harness;
use harness::{MODES, Run, eventually, text};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};

#[test]
fn resolving_says_of_every_path_what_is_there() {
    let run = Run::new(&["--guard", "off"]);
    run.shell("true");
    let [file, link, missing] = ["file", "link", "missing"].map(|name| run.path(name));
    std::fs::write(&file, "12345").unwrap();
    symlink("file", &link).unwrap();
    let bytes = |path: &std::path::Path| path.as_os_str().as_bytes().to_vec();
    assert!(!run.log().resolved());
    let mut resolver = backstory_session::IdentityResolver::begin(&run.log_path()).unwrap();
    let asked = [
        (&file, true),
        (&link, true),
        (&link, false),
        (&missing, true),
    ];
    let told = asked.map(|(path, follow)| resolver.of(&bytes(path), follow));
    resolver.finish().unwrap();
    let log = run.log();
    assert!(log.resolved());
    let known = log.identities();
    let of = |path: &std::path::Path, follow| known.of(&bytes(path), follow);
    let stat = std::fs::metadata(&file).unwrap();
    let found = of(&file, true).unwrap().unwrap();
    assert_eq!(
        (found.dev, found.ino, found.size),
        (stat.dev(), stat.ino(), 5)
    );
    assert_eq!(
        found.mtime,
        stat.mtime() * 1_000_000_000 + stat.mtime_nsec()
    );
    assert_eq!(of(&link, true).unwrap().unwrap().ino, stat.ino());
    assert_ne!(of(&link, false).unwrap().unwrap().ino, stat.ino());
    assert_eq!(of(&missing, true), Some(None), "looked for and not there");
    let kept = asked.map(|(path, follow)| of(path, follow).unwrap());
    assert_eq!(told, kept, "the log gives the same answers again");
}

#[test]
fn resolving_many_paths_is_done_in_pieces() {
    let run = Run::new(&["--guard", "off"]);
    run.shell("true");
    let path = |number: usize| format!("/missing/{number}").into_bytes();
    let mut resolver = backstory_session::IdentityResolver::begin(&run.log_path()).unwrap();
    assert!((0..20_000).all(|n| resolver.of(&path(n), true).is_none()));
    resolver.finish().unwrap();
    let log = run.log();
    assert!(log.resolved());
    let known = log.identities();
    assert!((0..20_000).all(|n| known.of(&path(n), true) == Some(None)));
}

/// The kernel stops a write of a killed process at any page.
#[test]
fn an_indexer_that_was_killed_while_it_resolved_leaves_no_damage() {
    let run = Run::new(&["--guard", "off"]);
    run.shell("true");
    let whole = std::fs::read(run.log_path()).unwrap().len();
    let resolve = || {
        let path = |number: usize| format!("/missing/{number}").into_bytes();
        let mut resolver = backstory_session::IdentityResolver::begin(&run.log_path()).unwrap();
        assert!((0..9000).all(|n| resolver.of(&path(n), true).is_none()));
        resolver.finish().unwrap();
    };
    resolve();
    let resolved = std::fs::read(run.log_path()).unwrap();
    let cut = |length: usize| {
        std::fs::write(run.log_path(), &resolved[..length]).unwrap();
        assert!(run.log().damage().is_none(), "cut at {length}");
        assert!(!run.log().resolved(), "cut at {length}");
    };
    for more in [2, 10, 17, 5000] {
        cut(whole + more);
    }
    cut(resolved.len() - 1);
    let first_page = whole.next_multiple_of(4096);
    for length in [first_page, first_page + 8192] {
        cut(length);
        resolve();
        assert!(run.log().damage().is_none(), "appended at {length}");
        assert!(run.log().resolved());
    }
    let mut damaged = resolved.clone();
    damaged[whole + 5000] ^= 1;
    std::fs::write(run.log_path(), &damaged).unwrap();
    assert!(!run.log().damage().is_none(), "all bytes are there");
}

#[test]
fn secrets_stay_out_of_the_header() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let mut command = run.command(&["sh", "-c", "echo $MY_TOKEN"]);
        let out = command
            .env("MY_TOKEN", "hush-hush-hush")
            .env("PLAIN", "seen")
            .output()
            .unwrap();
        assert_eq!(text(&out.stdout), "hush-hush-hush\n", "the program has it");
        let log = run.log();
        let environment = &log.header().environment;
        assert!(
            environment
                .iter()
                .any(|e| e.starts_with(b"MY_TOKEN=<redacted"))
        );
        assert!(!environment.iter().any(|e| text(e).contains("hush-hush")));
        assert!(environment.contains(&b"PLAIN=seen".to_vec()));
    }
}

#[test]
fn programs_do_not_see_our_variables() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let out = run.shell("env; cat /proc/self/environ | tr '\\0' '\\n'");
        let out = text(&out.stdout);
        assert!(
            !out.contains("BACKSTORY_ARENA") && !out.contains("linux-backstory"),
            "{out}"
        );
    }
}

#[test]
fn a_log_without_an_arena_is_recovered_too() {
    let run = Run::new(&["--guard", "off"]);
    run.shell("true");
    eventually("nobody records", || {
        !backstory_session::is_recording(&run.log_path())
    });
    let whole = std::fs::read(run.log_path()).unwrap();
    // The log as a power loss leaves it: cut anywhere behind its header, without its arena.
    for cut in [3, 40, 400] {
        let cut = whole.len() - cut;
        std::fs::remove_file(run.log_path()).ok();
        std::fs::write(run.part_path(), &whole[..cut]).unwrap();
        backstory_session::recover(Some(&run.arena_path()), &run.part_path(), &run.log_path())
            .unwrap();
        assert_eq!(run.reasons().len(), 1, "{:?}", run.reasons());
        run.assert_tidy();
    }
}

#[test]
fn a_log_that_another_process_finishes_is_not_being_recorded() {
    let run = Run::new(&["--guard", "off"]);
    run.shell("true");
    eventually("no process records", || {
        !backstory_session::is_recording(&run.log_path())
    });
    std::fs::rename(run.log_path(), run.part_path()).unwrap();
    let other = std::fs::File::open(run.part_path()).unwrap();
    other.lock().unwrap();
    assert!(!backstory_session::is_recording(&run.part_path()));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            backstory_session::recover(None, &run.part_path(), &run.log_path()).unwrap();
            assert!(run.log_path().exists());
        });
        std::fs::rename(run.part_path(), run.log_path()).unwrap();
        drop(other);
        waits.join().unwrap();
    });
    run.assert_tidy();
}

#[test]
fn a_finalized_end_is_kept_by_recovery() {
    let run = Run::new(&["--guard", "off"]);
    run.shell("exit 3");
    run.log();
    eventually("nobody records", || {
        !backstory_session::is_recording(&run.log_path())
    });
    std::fs::rename(run.log_path(), run.part_path()).unwrap();
    backstory_session::recover(None, &run.part_path(), &run.log_path()).unwrap();
    assert_eq!(run.log().end().unwrap().exit, Some(3));
    assert!(run.reasons().is_empty());
}

#[test]
fn a_resolved_log_says_what_programs_are_run_with() {
    let run = Run::new(&["--guard", "off"]);
    run.shell("true");
    let script = run.path("script");
    std::fs::write(&script, "#!/bin/sh -e\n").unwrap();
    let script = script.as_os_str().as_encoded_bytes();
    let mut resolver = backstory_session::IdentityResolver::begin(&run.log_path()).unwrap();
    let told =
        [script, b"/bin/sh", b"/dev/null", b"/nowhere"].map(|path| resolver.interpreter(path));
    resolver.finish().unwrap();
    assert_eq!(told[0].as_deref(), Some(&b"/bin/sh"[..]));
    assert!(
        told[1]
            .as_ref()
            .is_some_and(|loader| loader.starts_with(b"/lib")),
        "{told:?}"
    );
    assert_eq!((&told[2], &told[3]), (&None, &None));
    let known = run.log().identities();
    assert_eq!(known.interpreter(script), Some(&b"/bin/sh"[..]));
    assert_eq!(known.interpreter(b"/bin/sh"), told[1].as_deref());
    assert_eq!(known.interpreter(b"/dev/null"), None);
}
