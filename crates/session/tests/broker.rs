//! The broker executes set-user-id programs of an ordinary user with their privilege, as the user's
//! shell would have. It gives a restricted caller nothing.

#![allow(clippy::unwrap_used)]

use super::harness;
use backstory_testkit::need::{needs, skipped};
use backstory_testkit::program;
use backstory_testkit::user::User;
use harness::Run;
use rustix::fs::XattrFlags;
use rustix::process::geteuid;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A run of an ordinary user in a directory with the test program: `gain` has a set-user-id bit of
/// root, `plain` has none. `None` if there is no root to make it.
fn run() -> Option<Run> {
    if !geteuid().is_root() {
        skipped("the broker", "needs root to make a set-user-id program");
        return None;
    }
    if !needs("the broker", &["cc", "setpriv", "unshare"]) {
        return None;
    }
    let run = Run::new(&["--broker"]);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/gain.c");
    let mut cc = Command::new("cc");
    cc.args(["-D_GNU_SOURCE", "-O1", "-o"]);
    assert!(
        cc.arg(run.path("gain"))
            .arg(source)
            .status()
            .unwrap()
            .success()
    );
    program::copy(&run.path("gain"), &run.path("plain")).unwrap();
    let session = env!("CARGO_BIN_EXE_backstory-session");
    program::copy(session.as_ref(), &run.path("backstory-session")).unwrap();
    User::ordinary().owns(run.dir.path()).unwrap();
    std::os::unix::fs::chown(run.path("gain"), Some(0), Some(0)).unwrap();
    set_permissions(run.path("gain"), Permissions::from_mode(0o4755)).unwrap();
    Some(run)
}

/// The output of a script of the ordinary user in a recording with a broker.
fn printed(run: &Run, script: &str) -> String {
    printed_by(run, "sh", script)
}

/// The same by another shell.
fn printed_by(run: &Run, shell: &str, script: &str) -> String {
    let mut command = Command::new(run.path("backstory-session"));
    command.args(run.command(&[shell, "-c", script]).get_args());
    command.current_dir(run.dir.path());
    output(User::ordinary().runs(&mut command))
}

fn output(command: &mut Command) -> String {
    let output = command.process_group(0).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const GAINED: &str = "root 1, caller is root 0, ./gain\n";
const NOTHING: &str = "root 0, caller is root 0, ./gain\n";

#[test]
fn a_program_keeps_its_privilege_its_pipes_and_its_status() {
    let Some(run) = run() else { return };
    let script = "./gain ids; ./gain exit 7; echo $?; ./gain signal 15; echo $?
        echo text | ./gain copy | cat; exec 5>five; ./gain write 5; cat five; cd /; umask 27
        MINE=1 \"$OLDPWD/gain\" state | grep -v files";
    let nice = output(&mut Command::new("nice"));
    let nice = nice.trim_end();
    let wanted = format!("{GAINED}7\n143\ntext\nwritten\ndirectory /\numask 27 nice {nice}");
    let printed = printed(
        &run,
        &script.replace("| grep -v files", "| grep -v processors"),
    );
    assert!(printed.starts_with(&wanted), "{printed}");
    for line in [
        "MINE=1",
        "LD_PRELOAD=(none)",
        "BACKSTORY_ARENA=(none)",
        "BACKSTORY_PROGRAM=(none)",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    let reasons = run.reasons();
    assert!(
        reasons[0].contains("./gain ran outside of the recording"),
        "{reasons:?}"
    );
}

#[test]
fn a_signal_reaches_the_program_once_and_alone() {
    let Some(run) = run() else { return };
    let script = "./gain count 2 & until test -e ready; do sleep 0.1; done; \
                  kill -USR1 $!; kill -USR2 $!; wait";
    assert_eq!(printed(&run, script), "signals 2\n");
}

/// A client that gets no processor for long reports a signal to its group late. The program got the
/// signal as a member of the group.
#[test]
fn a_signal_to_the_group_reaches_the_program_once_however_late_the_client_reports_it() {
    let Some(run) = run() else { return };
    if !needs("job control", &["bash"]) {
        return;
    }
    let script = r"set -m
        ./gain count 2 &
        set +m
        until test -e ready; do sleep 0.1; done
        kill -STOP $!
        kill -USR1 -$!
        sleep 0.5
        kill -CONT $!
        sleep 0.5
        echo waits
        kill -USR2 $!
        wait $!";
    let printed = printed_by(&run, "bash", script);
    assert_eq!(printed, "waits\nsignals 2\n");
}

#[test]
fn a_program_stops_with_its_group_however_early_the_signal_comes() {
    let Some(run) = run() else { return };
    if !needs("job control", &["bash"]) {
        return;
    }
    // Each job has a process group of its own, and the delay before the signal grows.
    let script = r"for try in $(seq 60); do
            set -m
            ./gain wait &
            set +m
            for ((i = 0; i < try * 40; i++)); do :; done
            kill -TSTP -$!
            state=
            for ((i = 0; i < 3000; i++)); do
                read -r _ _ state _ </proc/$!/stat
                [ $state = T ] && break
                sleep 0.01
            done
            echo $state
            kill -KILL -$!
            wait $!
        done 2>/dev/null";
    let printed = printed_by(&run, "bash", script);
    assert_eq!(printed, "T\n".repeat(60));
}

/// As in a container whose first process began no session: both ids are 0 there.
#[test]
fn a_session_and_a_process_group_of_another_pid_namespace_are_no_obstacle() {
    let Some(run) = run() else { return };
    let contain = ["-pf", "--mount-proc"];
    let script = "./gain ids; cut -d' ' -f5,6 /proc/self/stat; ./gain exit 7; echo $?";
    let Some(printed) = printed_in_namespaces(&run, &contain, "", script) else {
        return skipped("the broker in a container", "no pid namespace can be made");
    };
    assert_eq!(printed, format!("{GAINED}0 0\n7\n"));
}

/// The output of a script, recorded in new namespaces in which root ran another script before.
/// `None` if they cannot be made.
fn printed_in_namespaces(
    run: &Run,
    namespaces: &[&str],
    before: &str,
    script: &str,
) -> Option<String> {
    let User::Other { uid, gid } = User::ordinary() else {
        return None;
    };
    let unshared = || {
        let mut command = Command::new("unshare");
        command.args(namespaces).current_dir(run.dir.path());
        command
    };
    if !unshared().arg("true").status().unwrap().success() {
        return None;
    }
    let mut command = unshared();
    command.args(["sh", "-ec", &format!("{before}\nexec \"$@\""), "sh"]);
    command.args(["setpriv", "--clear-groups"]);
    command.args([format!("--reuid={uid}"), format!("--regid={gid}")]);
    command.arg(run.path("backstory-session"));
    command.args(run.command(&["sh", "-c", script]).get_args());
    Some(output(&mut command))
}

#[test]
fn a_file_system_with_nosuid_gives_no_privilege() {
    let Some(run) = run() else { return };
    std::fs::create_dir(run.path("there")).unwrap();
    let before = "mount -t tmpfs -o nosuid none there; cp -p gain there; stat -c %a there/gain";
    let script = "cd there; ./gain ids; cd ..; ./gain ids";
    let Some(printed) = printed_in_namespaces(&run, &["-m"], before, script) else {
        return skipped("a file system with nosuid", "no mount can be made");
    };
    assert_eq!(printed, format!("4755\n{NOTHING}{GAINED}"));
}

/// The kernel's `struct vfs_cap_data` of revision 2 for `CAP_NET_RAW`, permitted and effective.
const NET_RAW: [u8; 20] = [1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn a_set_group_id_bit_and_capabilities_of_a_file_count() {
    let Some(run) = run() else { return };
    let group = run.path("group");
    program::copy(&run.path("plain"), &group).unwrap();
    std::os::unix::fs::chown(&group, None, Some(0)).unwrap();
    set_permissions(&group, Permissions::from_mode(0o2755)).unwrap();
    let capable = run.path("capable");
    program::copy(&run.path("plain"), &capable).unwrap();
    if rustix::fs::setxattr(
        &capable,
        "security.capability",
        &NET_RAW,
        XattrFlags::empty(),
    )
    .is_err()
    {
        return skipped(
            "capabilities of files",
            "the file system or the user cannot",
        );
    }
    let printed = printed(
        &run,
        "for p in plain group capable; do ./$p privileges; done",
    );
    let lines: Vec<&str> = printed.lines().collect();
    let none = "CapEff:\t0000000000000000";
    let nothing = "root group 0, caller's 0";
    assert_eq!(lines[..2], [nothing, none]);
    assert_eq!(lines[2..4], ["root group 1, caller's 0", none]);
    assert_eq!(lines[4..], [nothing, "CapEff:\t0000000000002000"]);
    let reasons = run.reasons();
    for program in ["./group", "./capable"] {
        let reason = format!("{program} ran outside of the recording");
        assert!(reasons.iter().any(|r| r.contains(&reason)), "{reasons:?}");
    }
}

#[test]
fn a_restricted_caller_gains_nothing() {
    let Some(run) = run() else { return };
    for caller in [
        "setpriv --no-new-privs",
        "setpriv --no-new-privs sh -c '(./gain ids) & wait'",
        "./plain restricted nnp",
        "./plain restricted filter",
        "./plain restricted landlock",
        "./plain restricted undone",
        "prlimit --rttime=1000000",
        "setsid -w",
        "unshare -U",
    ] {
        let script = format!("{caller} ./gain ids");
        assert_eq!(printed(&run, &script), NOTHING, "{caller}");
    }
    assert_eq!(
        printed(&run, "./plain restricted nothing ./gain ids"),
        GAINED
    );
    assert_eq!(printed(&run, "unshare -r ./gain copy </etc/shadow"), "");
}

#[test]
fn after_the_supervisors_death_programs_run_as_without_a_broker() {
    let Some(run) = run() else { return };
    let script = "./gain ids; kill -9 $PPID; sleep 0.5; ./gain ids";
    assert_eq!(printed(&run, script), format!("{GAINED}{NOTHING}"));
}
