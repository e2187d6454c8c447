//! `doctor`, on machines that are broken in one respect each. The oracle is `record` itself, under
//! the same condition: its exit status, what it prints, and whether its run is complete.

use std::process::Command;

use backstory_testkit::need::{needs, skipped};
use serde_json::Value;

use super::{Answer, Place};

/// What `doctor` says under a condition, and what `record` does.
struct Examined {
    status: i32,
    report: Value,
    recorded: Answer,
    /// The recorded run is complete. `None`: there is no run.
    complete: Option<bool>,
}

impl Examined {
    /// Runs `doctor`, `record` and `show` in a shell below `outer`, after `before`.
    fn under(place: &Place, outer: &[&str], before: &str) -> Examined {
        Examined::limited(place, outer, before, ":")
    }

    /// The same. The shell line `limit` stands before `doctor` and before `record` only, since it
    /// may stop the shell from writing files.
    fn limited(place: &Place, outer: &[&str], before: &str, limit: &str) -> Examined {
        let line = format!(
            "{before}
             {{ ({limit}; exec $B doctor --json); echo $? >status; }} | cat >report
             {{ ({limit}; exec $B record -- sh -c 'cat in >out'); echo $? >ended; }} 2>&1 | cat >said
             $B show --json >show 2>/dev/null; cat said; exit $(cat ended)"
        );
        place.write_aged("in", "text\n");
        let mut words = outer.to_vec();
        words.extend(["sh", "-c", &line]);
        let mut command = place.stage.command(words[0]);
        command
            .args(&words[1..])
            .env("B", place.program())
            .env("BACKSTORY_STORE", place.stage.store())
            .current_dir(place.work());
        let recorded = Answer::of(command.output().unwrap());
        let read =
            |name: &str| std::fs::read_to_string(place.work().join(name)).unwrap_or_default();
        let report = serde_json::from_str(&read("report"))
            .unwrap_or_else(|error| panic!("{error}: {}{recorded:?}", read("report")));
        let show: Value = serde_json::from_str(&read("show")).unwrap_or_default();
        Examined {
            status: read("status").trim().parse().unwrap(),
            report,
            recorded,
            complete: show["complete"].as_bool(),
        }
    }

    fn check(&self, name: &str) -> &Value {
        let checks = self.report["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {:#}", self.report))
    }

    /// The check has the verdict, and says what follows and what to do.
    fn says(&self, name: &str, verdict: &str) -> &Examined {
        let check = self.check(name);
        assert_eq!(check["verdict"], verdict, "{check:#}");
        for field in ["consequence", "remedy"] {
            assert_eq!(check[field].is_null(), verdict == "works", "{check:#}");
        }
        self
    }

    /// The status and the trial agree with `record`.
    fn agrees_with_record(&self) -> &Examined {
        let cannot = self.recorded.status == 125;
        assert_eq!(
            self.status,
            i32::from(cannot),
            "{:#} {:?}",
            self.report,
            self.recorded
        );
        let trial = match (cannot, self.complete) {
            (true, _) => "fails",
            (false, Some(true)) if self.recorded.out.is_empty() => "works",
            _ => "limited",
        };
        self.says("trial", trial)
    }
}

/// The words before a shell that may mount.
const MOUNTING: [&str; 2] = ["unshare", "-rm"];

fn can_mount(what: &str) -> bool {
    let can = Command::new("unshare").args(["-rm", "true"]).status();
    let can = can.is_ok_and(|status| status.success());
    if !can {
        skipped(what, "no user namespaces here");
    }
    can
}

#[test]
fn doctor_finds_nothing_that_fails_where_recording_works() {
    let place = Place::new();
    let examined = Examined::under(&place, &["env"], "");
    assert_eq!(examined.complete, Some(true));
    examined
        .agrees_with_record()
        .says("kernel", "works")
        .says("seccomp notification", "works")
        .says("memory of descendants", "works");
    for check in examined.report["checks"].as_array().unwrap() {
        assert_ne!(check["verdict"], "fails", "{check:#}");
    }
    let release = Command::new("uname").arg("-r").output().unwrap().stdout;
    let release = String::from_utf8(release).unwrap();
    let kernel = examined.check("kernel")["found"].as_str().unwrap();
    assert_eq!(kernel, format!("Linux {}", release.trim()));
}

#[test]
fn doctor_leaves_nothing_behind_and_makes_no_store() {
    let place = Place::new();
    let directory = place.path("never");
    assert_eq!(place.run(&["doctor", "--store", &directory]).status, 0);
    let left: Vec<_> = std::fs::read_dir(place.work()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn doctor_prints_the_consequence_and_the_remedy_below_each_limit() {
    let place = Place::new();
    let answer = place.shell("ulimit -n 12; exec $B doctor");
    assert_eq!(answer.status, 1, "{answer:?}");
    let mut lines = answer
        .out
        .lines()
        .skip_while(|line| !line.contains("open files: "));
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("fails    open files: at most 12"),
        "{answer:?}"
    );
    assert!(
        lines
            .next()
            .unwrap()
            .contains("`record` has too few descriptors"),
        "{answer:?}"
    );
    assert!(
        lines.next().unwrap().starts_with("           to do: "),
        "{answer:?}"
    );
    assert!(
        answer
            .out
            .ends_with("Recording cannot work here: see the findings that fail.\n")
    );
}

#[test]
fn doctor_names_the_limit_that_is_too_low_to_record() {
    for (limit, name) in [("ulimit -n 12", "open files"), ("ulimit -f 1", "file size")] {
        let place = Place::new();
        let examined = Examined::limited(&place, &["env"], "", limit);
        assert_eq!(
            examined.recorded.status, 125,
            "{limit}: {:?}",
            examined.recorded
        );
        examined.agrees_with_record().says(name, "fails");
    }
}

#[test]
fn doctor_says_that_the_guard_needs_more_descriptors_than_the_recorder() {
    let place = Place::new();
    let examined = Examined::limited(&place, &["env"], "", "ulimit -n 20");
    assert_eq!(examined.complete, Some(false), "{:?}", examined.recorded);
    examined.agrees_with_record().says("open files", "limited");
}

#[test]
fn doctor_says_that_a_small_shared_memory_is_replaced_by_a_memory_file() {
    if !can_mount("a tiny /dev/shm") {
        return;
    }
    let place = Place::new();
    let tiny = "mount -t tmpfs -o size=64k none /dev/shm || exit 99";
    let examined = Examined::under(&place, &MOUNTING, tiny);
    examined
        .agrees_with_record()
        .says("shared memory", "limited");
    let small = "mount -t tmpfs -o size=16m none /dev/shm || exit 99";
    let examined = Examined::under(&place, &MOUNTING, small);
    examined
        .agrees_with_record()
        .says("shared memory", "limited");
    let found = examined.check("shared memory")["found"].as_str().unwrap();
    assert!(found.contains("of 16 MB are free"), "{found}");
}

#[test]
fn doctor_says_that_no_program_loads_a_library_from_a_noexec_mount() {
    if !can_mount("a store mounted noexec") {
        return;
    }
    let place = Place::new();
    let noexec = "for d in $BACKSTORY_STORE /run; do mount -t tmpfs -o noexec,mode=700 none $d || exit 99; done";
    let examined = Examined::under(&place, &MOUNTING, noexec);
    examined
        .says("library directory", "limited")
        .agrees_with_record();
}

#[test]
fn doctor_says_that_a_read_only_home_holds_no_store() {
    if !can_mount("a read-only home") {
        return;
    }
    let place = Place::new();
    let read_only = "unset BACKSTORY_STORE; export HOME=$PWD/home; mkdir $HOME && mount --bind $HOME $HOME && \
                     mount -o remount,bind,ro $HOME || exit 99";
    let examined = Examined::under(&place, &MOUNTING, read_only);
    assert_eq!(examined.recorded.status, 125, "{:?}", examined.recorded);
    examined.agrees_with_record().says("store", "fails");
}

#[test]
fn doctor_says_that_a_full_disk_has_no_room_for_the_store() {
    if !can_mount("a full disk") {
        return;
    }
    let place = Place::new();
    let full = "mount -t tmpfs -o size=8k,mode=700 none $BACKSTORY_STORE || exit 99";
    let examined = Examined::under(&place, &MOUNTING, full);
    assert_eq!(examined.recorded.status, 125, "{:?}", examined.recorded);
    examined
        .agrees_with_record()
        .says("room of the store", "fails");
}

#[test]
fn doctor_says_that_another_recording_has_the_listener() {
    let place = Place::new();
    let outer = place.path("outer");
    let binary = place.program();
    let words = [binary.as_str(), "--store", &outer, "record", "--"];
    let examined = Examined::under(&place, &words, "");
    assert_eq!(examined.complete, Some(false));
    examined
        .says("seccomp notification", "limited")
        .agrees_with_record();
    let found = examined.check("seccomp notification")["found"]
        .as_str()
        .unwrap();
    assert!(
        found.contains("an outer filter already has a listener"),
        "{found}"
    );
}

/// Refuses seccomp(2) and prctl(PR_SET_SECCOMP) to what it executes, as a container runtime does.
pub(super) const REFUSING: &str = r"
import ctypes, os, struct, sys
def instruction(code, jt, jf, k): return struct.pack('HBBI', code, jt, jf, k)
code = b''.join([
    instruction(0x20, 0, 0, 0),        # load the number
    instruction(0x15, 0, 1, 317),      # seccomp
    instruction(0x06, 0, 0, 0x50001),  # fail with EPERM
    instruction(0x06, 0, 0, 0x7fff0000),
])
buffer = ctypes.create_string_buffer(code)
program = struct.pack('HxxxxxxQ', 4, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
";

#[test]
fn doctor_says_that_an_outer_filter_refuses_seccomp() {
    if !needs("an outer filter that refuses seccomp(2)", &["python3"]) {
        return;
    }
    let place = Place::new();
    let examined = Examined::under(&place, &["python3", "-c", REFUSING], "");
    assert_eq!(examined.complete, Some(false), "{:?}", examined.recorded);
    examined
        .says("seccomp notification", "limited")
        .agrees_with_record();
    let found = examined.check("seccomp notification")["found"]
        .as_str()
        .unwrap();
    assert!(found.contains("forbids seccomp(2)"), "{found}");
}

#[test]
fn doctor_says_which_setting_forbids_namespaces() {
    if !can_mount("namespaces that are forbidden") {
        return;
    }
    let place = Place::new();
    let forbidden = "echo 0 >/proc/sys/user/max_user_namespaces || exit 99";
    let examined = Examined::under(&place, &["unshare", "-rm"], forbidden);
    examined.says("namespaces", "limited");
    let remedy = examined.check("namespaces")["remedy"].as_str().unwrap();
    assert!(remedy.contains("user.max_user_namespaces"), "{remedy}");
}
