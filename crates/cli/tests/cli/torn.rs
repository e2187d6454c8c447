//! An export is written completely or not at all. Its writer is killed at any changing call, or its
//! disk is full at any byte.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::{Answer, Place};
use backstory_testkit::need::needs;
use backstory_testkit::procs::eventually;

/// One format for each method of writing: short, long, with a database, archives, directories.
const FORMATS: [&str; 7] = [
    "make",
    "perfetto",
    "parquet",
    "ro-crate",
    "oci",
    "docker-archive",
    "reprozip",
];

/// Calls by which an export is written.
const CALLS: [&str; 5] = [
    "write,pwrite64",
    "mkdir,symlink,symlinkat",
    "chmod,fchmod",
    "fsync,fdatasync,syncfs",
    "rename,renameat,renameat2",
];

/// A run with contents, small enough to be exported often.
fn recorded() -> Option<Place> {
    if !needs("exports that are interrupted", &["strace", "busybox"]) {
        return None;
    }
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.keep("busybox sort in > out", &["--contents=lazy"]);
    Some(place)
}

/// The sizes of all files below a path, by name. `None` if the path does not exist. Times that an
/// archive stores about its own writing are not compared.
fn state(path: &Path) -> Option<BTreeMap<String, u64>> {
    let meta = fs::symlink_metadata(path).ok()?;
    let mut all = BTreeMap::new();
    if meta.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let below = state(&entry.path()).unwrap();
            all.extend(
                below
                    .into_iter()
                    .map(|(rest, size)| (format!("{name}/{rest}"), size)),
            );
        }
    } else {
        all.insert(String::new(), meta.len());
    }
    Some(all)
}

/// Names that an export left beside its own.
fn left(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with(".backstory-"))
        .collect()
}

fn clear(path: &Path) {
    drop(fs::remove_file(path));
    drop(fs::remove_dir_all(path));
}

#[test]
fn an_export_killed_at_any_change_leaves_the_whole_or_nothing() {
    let Some(place) = recorded() else { return };
    let out = place.work().join("export");
    for format in FORMATS {
        clear(&out);
        assert_eq!(
            place.run(&["export", format, "-o", "export"]).status,
            0,
            "{format}"
        );
        let whole = state(&out).unwrap();
        let mut interrupted = 0;
        for calls in CALLS {
            // Every early call, and some of thousands.
            let mut at = 1;
            loop {
                clear(&out);
                let killed = place.kill_in(calls, at, &["export", format, "-o", "export"]);
                match state(&out) {
                    None => assert!(killed, "{format} at {at}"),
                    Some(found) => assert_eq!(found, whole, "{format} killed in {calls} {at}"),
                }
                if !killed {
                    break;
                }
                interrupted += 1;
                at += 1 + at / 2;
            }
        }
        assert!(interrupted > 2, "{format}: {interrupted}");
        // The old file still exists, or the whole new one has replaced it.
        if !whole.contains_key("") {
            continue;
        }
        for calls in CALLS {
            clear(&out);
            place.write("export", "as it was");
            place.kill_in(calls, 1, &["export", format, "-o", "export"]);
            let found = state(&out).unwrap();
            assert!(
                found == whole || found[""] == 9,
                "{format} killed in {calls}: {found:?}"
            );
        }
    }
}

/// Starts a command and holds it at the first of these calls, for longer than any test takes.
/// Returns when there is a file that the command would leave behind.
fn held(place: &Place, calls: &str, args: &[&str]) -> Child {
    let mut command = place.stage.command("strace");
    // The tracer daemonizes, so that the command is a child of this process.
    command.args([
        "-D",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        &format!("trace={calls}"),
    ]);
    command.arg(format!("--inject={calls}:delay_enter=600s:when=1"));
    command.arg(place.program()).args(args);
    command
        .env("BACKSTORY_STORE", place.stage.store())
        .current_dir(place.work());
    let child = command.stderr(Stdio::null()).spawn().unwrap();
    let begun = || !left(&place.work()).is_empty();
    assert!(eventually(Duration::from_secs(120), begun), "{args:?}");
    child
}

/// Releases the held command, when no other part of it runs.
fn let_go(held: &Child) {
    let process = Path::new("/proc").join(held.id().to_string());
    let alone = || fs::read_dir(process.join("task")).is_ok_and(|threads| threads.count() == 1);
    assert!(eventually(Duration::from_secs(120), alone), "it goes on");
    let status = fs::read_to_string(process.join("status")).unwrap();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    if let Some(tracer) = Pid::from_raw(tracer.unwrap().trim().parse().unwrap()) {
        rustix::process::kill_process(tracer, Signal::KILL).unwrap();
    }
}

#[test]
fn an_export_ended_by_a_signal_leaves_no_file() {
    let Some(place) = recorded() else { return };
    let run = place.json(&["show", "--json"])["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let exports = FORMATS.map(|format| vec!["export", format, "-o", "export"]);
    let whole = vec!["store", "export", &run, "-o", "export"];
    for args in exports.into_iter().chain([whole]) {
        for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
            let mut exporter = held(&place, "fsync,fdatasync,syncfs", &args);
            rustix::process::kill_process(Pid::from_child(&exporter), signal).unwrap();
            let_go(&exporter);
            let status = exporter.wait().unwrap();
            assert_eq!(status.signal(), Some(signal.as_raw()), "{args:?}: {status}");
            assert_eq!(
                left(&place.work()),
                Vec::<String>::new(),
                "{args:?}: {signal:?}"
            );
            assert!(
                !place.work().join("export").exists(),
                "{args:?}: {signal:?}"
            );
        }
    }
}

#[test]
fn a_killed_exports_remains_go_with_the_next_and_a_running_ones_stay() {
    let Some(place) = recorded() else { return };
    assert!(place.kill_in("write", 2, &["export", "oci", "-o", "export"]));
    let there = left(&place.work());
    assert_eq!(there.len(), 1, "{there:?}");
    // As if some time had passed.
    let held = ".backstory-export-held";
    place.write(held, "somebody's");
    let lock = fs::File::open(place.path(held)).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    for name in [there[0].as_str(), held] {
        fs::File::open(place.path(name))
            .unwrap()
            .set_modified(before)
            .unwrap();
    }
    assert_eq!(place.run(&["export", "make", "-o", "makefile"]).status, 0);
    assert_eq!(left(&place.work()), [held]);
}

#[test]
fn an_export_to_a_full_disk_is_an_error_and_leaves_no_file() {
    let Some(place) = recorded() else { return };
    for format in FORMATS {
        clear(&place.work().join("export"));
        assert_eq!(
            place.run(&["export", format, "-o", "export"]).status,
            0,
            "{format}"
        );
        let bytes: u64 = state(&place.work().join("export")).unwrap().values().sum();
        // From no space at all to almost enough.
        for percent in [0, 40, 90] {
            let room = (bytes * percent / 100 / 4096).max(1) * 4096;
            if room >= bytes {
                continue;
            }
            let line = format!(
                "mkdir -p full; mount -t tmpfs -o size={room} none $PWD/full || exit 9; cd full; \
                 $B export {format} -o export; echo $?; ls -A | wc -l"
            );
            let Some(answer) = place.shell_in_namespaces("a full disk", &line) else {
                return;
            };
            let Answer { out, err, .. } = &answer;
            assert_eq!(out, "1\n0\n", "{format} with {room} of {bytes}: {answer:?}");
            assert!(
                err.starts_with("backstory: ")
                    && err.contains("export")
                    && err.to_lowercase().contains("no space left"),
                "{format}: {answer:?}"
            );
        }
    }
}
