//! A small disk: the deep log leaves the room that the log of the run needs.

use crate::deep::bytes::deep_log;
use crate::harness::Run;
use backstory_testkit::need::{needs, skipped};
use std::fs;
use std::process::Command;

/// Bytes of the disk.
const SIZE: u64 = 24 << 20;

/// Records on a disk of its own (`$1`), and copies the logs to `$2` when they are finished.
const ON_A_SMALL_DISK: &str = r#"
mount -t tmpfs -o size=$3 none "$1" || exit 99
small=$1 kept=$2; shift 3
"$@"; status=$?
while ls "$small"/*.part >/dev/null 2>&1; do sleep 0.01; done
cp "$small"/*.log "$small"/*.deep "$kept" && exit $status
"#;

#[test]
fn a_deep_log_leaves_an_eighth_of_a_small_disk_and_the_run_says_that_it_is_shallow() {
    if !needs("a small disk", &["unshare", "mount"]) {
        return;
    }
    let run = Run::new(&[]);
    let small = run.path("small");
    fs::create_dir(&small).unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["-Urm", "sh", "-c", ON_A_SMALL_DISK, "small"])
        .arg(&small)
        .arg(run.dir.path())
        .arg(SIZE.to_string())
        .arg(env!("CARGO_BIN_EXE_backstory-session"))
        .arg(&small)
        .arg(&run.id)
        .args(["--deep", "full", "--", "sh", "-c"])
        // Its bytes cannot be compressed.
        .arg("head -c 60000000 /dev/urandom | cat - | wc -c");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare") || output.status.code() == Some(99) {
        return skipped("a small disk", &said);
    }
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "60000000");
    // The log of the run is whole, on the same disk.
    let end = run.log().end().unwrap().clone();
    assert_eq!(end.exit, Some(0));
    assert_eq!(end.incomplete_because, Vec::<String>::new());
    let warnings = end.warnings.concat();
    for part in [
        "are shallow from some moment on",
        "the disk has less than 3145 kB left",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    let log = deep_log(&run);
    assert_eq!(log.damage().bytes, 0);
    let whole = log.programs().iter().filter(|one| one.is_whole).count();
    assert!(whole < log.programs().len());
    // Programs that started before the disk was full have a start, however little they did.
    let paths: Vec<String> = log
        .programs()
        .iter()
        .filter_map(|one| Some(String::from_utf8_lossy(one.program.as_deref()?).into_owned()))
        .collect();
    for name in ["/sh", "/head", "/cat", "/wc"] {
        let has_start = paths.iter().any(|path| path.ends_with(name));
        assert!(has_start, "{name}: {paths:?}");
    }
    let length = fs::metadata(run.path(&format!("{}.deep", run.id)))
        .unwrap()
        .len();
    assert!(length <= SIZE / 8 * 7, "{length} bytes");
    // It used the room that it may use.
    assert!(length > SIZE / 2, "{length} bytes");
}
