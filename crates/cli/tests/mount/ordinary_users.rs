//! A mount of an ordinary user, and processes in a container below a mount.

use std::path::Path;
use std::process::{Command, Output};

use backstory_testkit::need::{needs, skipped};
use backstory_testkit::stage::Stage;
use backstory_testkit::user::User;

use crate::mount::mounted::mounted;

/// Mounts, works below the mount, and unmounts. `$1`: the program, `$2`: the directory, `$3`: the
/// mount point, `$4`: the command that unmounts. `MOUNT_OPTIONS`: options of the mount.
const SESSION: &str = "
    \"$1\" mount $MOUNT_OPTIONS \"$2\" \"$3\" & server=$!
    until grep -q \" $3 fuse\" /proc/mounts; do kill -0 $server || exit 41; sleep 0.05; done
    cd \"$3\"; printf 'b\\na\\n' > in; sort in > out; cd /
    $4 \"$3\"; wait $server";

/// A stage of the ordinary user. `None`, with a notice, if this suite cannot have one.
fn place(what: &str) -> Option<Stage> {
    if !rustix::process::geteuid().is_root() {
        skipped(what, "needs root, to become the user");
        return None;
    }
    if !Path::new("/dev/fuse").exists() {
        skipped(what, "needs /dev/fuse");
        return None;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_backstory"));
    let stage = Stage::of(User::ordinary(), program).unwrap();
    stage.directory("behind").unwrap();
    stage.directory("at").unwrap();
    Some(stage)
}

/// Runs a session by a command that becomes the user.
fn session(stage: &Stage, become_user: &str, unmount: &str, options: &str) -> Output {
    // The same program and store as that of the stage.
    let own = stage.backstory(&[] as &[&str]);
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", become_user, "become", SESSION]);
    command.arg(own.get_program());
    command.args(["behind", "at"].map(|name| stage.path().join(name)));
    command.arg(unmount);
    let set = own
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let command = command.envs(set).env("MOUNT_OPTIONS", options);
    command.current_dir("/").output().unwrap()
}

fn assert_recorded(stage: &Stage, done: &Output) {
    assert!(done.status.success(), "{done:?}");
    let out = stage.path().join("behind/out");
    assert_eq!(std::fs::read(&out).unwrap(), b"a\nb\n");
    let answer = stage.backstory(&["of", out.to_str().unwrap()]).output();
    let answer = answer.unwrap();
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(text.contains("sort in\n      made out"), "{answer:?}");
}

/// The device belongs to root alone on some machines. Then the user gets a node of its own.
const OWN_DEVICE: &str = "
    mknod \"$4.fuse\" c 10 229 || exit 42
    chmod 666 \"$4.fuse\"; mount --bind \"$4.fuse\" /dev/fuse";

fn ids() -> Option<(u32, u32)> {
    match User::ordinary() {
        User::Other { uid, gid } => Some((uid, gid)),
        User::Myself => None,
    }
}

/// A session of the ordinary user in a user namespace of its own, by a mount with these options.
/// `None`, with a notice, where this machine cannot do it.
fn session_in_own_namespace(what: &str, options: &str) -> Option<(Stage, Output)> {
    if !needs(what, &["unshare", "setpriv", "sort"]) {
        return None;
    }
    let (stage, (uid, gid)) = (place(what)?, ids()?);
    let become_user = format!(
        "{OWN_DEVICE}
         setpriv --reuid {uid} --regid {gid} --clear-groups \\
             unshare --user --map-root-user --mount true || exit 43
         exec setpriv --reuid {uid} --regid {gid} --clear-groups \\
             unshare --user --map-root-user --mount sh -ec \"$1\" session \"$2\" \"$3\" \"$4\" \"$5\""
    );
    let done = session(&stage, &become_user, "umount", options);
    let lacking = match done.status.code() {
        Some(42) => "may not make a device node",
        Some(43) => "the kernel permits no user namespaces",
        _ => return Some((stage, done)),
    };
    skipped(what, lacking);
    None
}

#[test]
fn a_user_mounts_in_a_user_namespace_of_its_own() {
    let what = "a mount by a user in a user namespace";
    if let Some((stage, done)) = session_in_own_namespace(what, "") {
        assert_recorded(&stage, &done);
    }
}

#[test]
fn a_user_without_the_privilege_of_passthrough_is_told_so_once() {
    let what = "the message about passthrough to an ordinary user";
    let Some((stage, done)) = session_in_own_namespace(what, "--passthrough on") else {
        return;
    };
    assert!(done.status.success(), "{done:?}");
    let out = stage.path().join("behind/out");
    assert_eq!(std::fs::read(out).unwrap(), b"a\nb\n");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let said: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("--passthrough"))
        .collect();
    let [message] = said[..] else {
        panic!("{said:?}");
    };
    // A kernel before Linux 6.9 lacks more than the privilege.
    let reasons = ["permits it only to root", "has no FUSE passthrough"];
    assert!(
        reasons.iter().any(|reason| message.contains(reason)),
        "{message}"
    );
    assert!(
        message.contains(stage.path().join("at").to_str().unwrap()),
        "{message}"
    );
}

#[test]
fn a_user_mounts_by_fusermount3() {
    let what = "a mount by a user with fusermount3";
    if !needs(what, &["unshare", "setpriv", "sort", "fusermount3"]) {
        return;
    }
    let (Some(stage), Some((uid, gid))) = (place(what), ids()) else {
        return;
    };
    let become_user = format!(
        "{OWN_DEVICE}
         exec setpriv --reuid {uid} --regid {gid} --clear-groups \\
             sh -ec \"$1\" session \"$2\" \"$3\" \"$4\" \"$5\""
    );
    let done = session(&stage, &become_user, "fusermount3 -u", "");
    if done.status.code() == Some(42) {
        return skipped(what, "may not make a device node");
    }
    assert_recorded(&stage, &done);
}

#[test]
fn a_process_in_a_container_below_a_mount_is_recorded() {
    let what = "a container below a mount";
    if !needs(what, &["bwrap", "sort"]) {
        return;
    }
    let Some(mut mounted) = mounted(what, &[]) else {
        return;
    };
    std::fs::write(mounted.at.join("in"), "b\na\n").unwrap();
    let contained = "bwrap --bind / / --dev /dev --proc /proc --unshare-pid --unshare-ipc \
                     --unshare-uts --hostname contained sh -c 'sort in > out'";
    let done = mounted.shell(contained);
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        if said.starts_with("bwrap:") {
            return skipped(what, &said);
        }
        panic!("{done:?}");
    }
    assert!(mounted.unmount().success());
    let out = mounted.behind.join("out");
    let of = mounted.answer(&["of", out.to_str().unwrap()]);
    assert!(of.contains("sort in > out"), "{of}");
    let json = mounted.answer(&["of", "--json", out.to_str().unwrap()]);
    assert!(json.contains("\"/usr/bin/sort\""), "{json}");
}
