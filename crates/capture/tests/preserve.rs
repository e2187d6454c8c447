//! What a file held before it was changed is kept, byte for byte, however it is changed and whoever sees it.

mod harness;

use backstory_eventlog::event::{Event, Ident, Op};
use harness::{Run, text};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A content that had to be kept.
struct Kept {
    path: PathBuf,
    ident: Option<Ident>,
    /// What is in the kept file, or the errno.
    bytes: Result<Vec<u8>, i32>,
}

fn kept(run: &Run) -> Vec<Kept> {
    let one = |event: Event| {
        let Op::Kept { path, number, .. } = &event.op else {
            return None;
        };
        let result = event.outcome.value().unwrap();
        let file = run.path(&format!("{}.kept/{number}", run.id));
        Some(Kept {
            path: PathBuf::from(text(path)),
            ident: event.ident,
            bytes: match result {
                0 => Ok(fs::read(file).unwrap()),
                error => Err(-error),
            },
        })
    };
    run.events().into_iter().filter_map(one).collect()
}

/// A run in whose directory `data` lies, with a content of its own.
fn run(options: &[&str]) -> (Run, Vec<u8>, fs::Metadata) {
    let run = Run::new(options);
    let mut content = b"first line\n".repeat(900);
    content.extend_from_slice(run.id.as_bytes());
    fs::write(run.path("data"), &content).unwrap();
    let before = fs::metadata(run.path("data")).unwrap();
    (run, content, before)
}

/// The program must behave as ever, and `data` must be kept as it was, once.
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
    let first = of_data.first().unwrap_or_else(|| panic!("{words:?}: not kept"));
    assert!(first.path.starts_with(run.dir.path()), "{:?}", first.path);
    assert_eq!(first.bytes.as_deref(), Ok(&content[..]), "{words:?}");
    let ident = first.ident.unwrap();
    assert_eq!(ident.size, content.len() as i64);
    assert_eq!(ident.mtime, before.mtime() * 1_000_000_000 + before.mtime_nsec());
    if ident.nlink == 1 {
        assert_eq!(ident.ctime, before.ctime() * 1_000_000_000 + before.ctime_nsec());
    }
    run.assert_tidy();
}

/// With the recorder and without, every content or only what was read.
#[track_caller]
fn keeps_however_seen(script: &str) {
    for contents in ["all", "lazy"] {
        for guard in ["on", "strict"] {
            keeps(&["--contents", contents, "--guard", guard], &["sh", "-c", script]);
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
    let found = ["/bin/busybox", "/usr/bin/busybox"]
        .into_iter()
        .find(|p| Path::new(p).exists());
    if found.is_none() {
        eprintln!("SKIPPED: no static busybox");
    }
    found.map(str::to_owned)
}

#[test]
fn a_file_that_is_truncated_by_opening_it_is_kept() {
    keeps_however_seen("cat data; echo new > data");
}

#[test]
fn a_file_that_is_appended_to_is_kept() {
    keeps_however_seen("cat data; echo more >> data");
}

#[test]
fn a_file_that_is_overwritten_in_place_is_kept() {
    keeps_however_seen("cat data; printf over | dd of=data conv=notrunc 2>/dev/null");
}

#[test]
fn a_file_that_is_truncated_by_name_is_kept() {
    keeps_however_seen("cat data; truncate -s 5 data");
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

#[test]
fn a_file_that_another_process_changes_is_kept() {
    keeps_however_seen("cat data; sh -c 'echo new > data; rm data'");
}
