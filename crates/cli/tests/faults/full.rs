//! A disk that is full at every write in turn.

use super::common;
use backstory_testkit::need::skipped;
use backstory_testkit::oracle::watch;
use backstory_testkit::user::User;
use std::process::Command;

/// Records with this many KiB left for the store, then adds space and asks. Prints comparable
/// results.
const SCRIPT: &str = "set -u; store=$1; size=$2; mount -t tmpfs -o size=${size}k,mode=700 none \"$store\" || exit 99; \
    $FIX/backstory record --store \"$store\" -- sh -c 'cp /etc/passwd out; for i in 1 2 3 4 5; do cat out >out$i; done; echo said; exit 4' \
    2>\"$store.err\"; code=$?; mount -o remount,size=64m none \"$store\"; \
    $FIX/backstory log --store \"$store\" >/dev/null 2>\"$store.log\"; log=$?; \
    $FIX/backstory record --store \"$store\" --name after -- true; after=$?; \
    whole=$($FIX/backstory show --store \"$store\" --json after | grep -c '\"complete\": true'); \
    first=$($FIX/backstory log --store \"$store\" | grep -vc ' after '); \
    told=; [ \"$first\" = 0 ] || told=$($FIX/backstory files --store \"$store\" --all \"$($FIX/backstory log --store \"$store\" | \
    grep -v ' after ' | head -n 1 | cut -d ' ' -f 1)\" | grep -c 'out[1-5]$'); \
    complete=; [ \"$first\" = 0 ] || $FIX/backstory log --store \"$store\" | grep -v ' after ' | grep -q incomplete || complete=yes; \
    echo code=$code log=$log after=$after whole=$whole first=$first told=$told complete=$complete";

#[test]
fn a_disk_that_is_full_at_any_write_disturbs_no_command_and_spoils_no_store() {
    let namespaces = Command::new("unshare").args(["-rm", "true"]).status();
    if !namespaces.is_ok_and(|status| status.success()) {
        skipped("a full disk at each write", "no user namespaces here");
        return;
    }
    let bench = common::bench(User::ordinary());
    // Page by page from too little space for anything, then in larger steps to enough for
    // everything.
    for size in (4..=68).step_by(4).chain((80..=240).step_by(40)) {
        let directory = bench.stage().directory(&format!("work/{size}")).unwrap();
        let store = bench
            .stage()
            .directory(&format!("store/full-{size}"))
            .unwrap();
        let mut command = bench.stage().command("unshare");
        command
            .args(["-rm", "sh", "-c", SCRIPT, "full"])
            .arg(&store)
            .arg(size.to_string());
        let outcome = watch(&mut command, &directory).unwrap();
        let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let error = String::from_utf8_lossy(&outcome.stderr).into_owned();
        let said = text.lines().last().unwrap_or_default().to_owned();
        let what = format!("{size} KiB: {said} {error}");
        let ran = directory.join("out5").exists();
        assert!(
            said.contains(if ran { "code=4 " } else { "code=125 " }),
            "{what}"
        );
        assert_eq!(text.contains("said\n"), ran, "{what}");
        assert!(said.contains("log=0 after=0 whole=1 "), "{what}");
        // The run is complete only if all of it is recorded.
        assert!(
            !said.contains("complete=yes") || said.contains("told=5 "),
            "{what}"
        );
    }
}

/// A file of 2 MB is read and changed while the store has space for one.
const CHANGED: &str = "set -u; store=$1; mount -t tmpfs -o size=1m,mode=700 none \"$store\" || exit 99; head -c 2000000 /dev/zero >in; \
    $FIX/backstory record --store \"$store\" -- sh -c 'wc -c <in; cat in >/dev/null; echo new >in; cat in; exit 4'; code=$?; \
    mount -o remount,size=64m none \"$store\"; $FIX/backstory index --store \"$store\" --wait || exit 98; \
    $FIX/backstory show --store \"$store\" | grep 'not stored'; $FIX/backstory store verify --store \"$store\" >/dev/null; echo code=$code verify=$?";

#[test]
fn a_content_without_space_in_the_store_is_reported_and_disturbs_no_program() {
    let namespaces = Command::new("unshare").args(["-rm", "true"]).status();
    if !namespaces.is_ok_and(|status| status.success()) {
        skipped("a content that finds no room", "no user namespaces here");
        return;
    }
    let bench = common::bench(User::ordinary());
    let directory = bench.stage().directory("work/changed").unwrap();
    let store = bench.stage().directory("store/changed").unwrap();
    let mut command = bench.stage().command("unshare");
    command
        .args(["-rm", "sh", "-c", CHANGED, "full"])
        .arg(&store);
    let outcome = watch(&mut command, &directory).unwrap();
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(text.starts_with("2000000\nnew\n"), "{text}");
    assert!(
        text.contains("/in") && text.contains("No space left"),
        "{text}"
    );
    assert!(text.ends_with("code=4 verify=0\n"), "{text}");
}
