//! `rerun` asks before a step that takes privilege, and says which scripts have changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use backstory_testkit::program;

use super::rerun_safety::is_refused_without_yes;
use super::{Answer, Place};

/// The program belongs to root if the suite runs as root, else to the user.
#[test]
fn a_step_that_executes_a_set_user_id_program_needs_consent() {
    let place = Place::new();
    let helper = place.work().join("helper");
    program::copy("/bin/cat".as_ref(), &helper).unwrap();
    is_refused_with_mode(&place, 0o4755);
}

#[test]
fn a_step_that_executes_a_set_group_id_program_needs_consent() {
    let place = Place::new();
    let helper = place.work().join("helper");
    program::copy("/bin/cat".as_ref(), &helper).unwrap();
    place.stage.user().owns(&helper).unwrap();
    is_refused_with_mode(&place, 0o2755);
}

/// A step executes `helper` with this mode, and is not run again without consent.
fn is_refused_with_mode(place: &Place, mode: u32) {
    let helper = place.work().join("helper");
    fs::set_permissions(&helper, fs::Permissions::from_mode(mode)).unwrap();
    place.age("helper");
    place.write_aged("in", "one\n");
    place.sh("record sh -c './helper in > out'");
    place.write_aged("in", "two\n");
    is_refused_without_yes(place, ".", "out", "takes privilege: helper");
}

/// The run of an ordinary user came into root's store with `store import`.
#[test]
fn root_is_asked_before_the_step_of_another_user_runs_as_root() {
    let Some(root) = Place::of_root() else {
        return;
    };
    let place = Place::new();
    place.write_aged("in", "one\n");
    let run = place.keep("cat in > out", &["--contents=lazy"]);
    place.write_aged("in", "two\n");
    let own = place.run(&["rerun", "--dry-run", "out"]);
    let asked = "was run by user ";
    assert!(own.status == 1 && !own.out.contains(asked), "{own:?}");
    let file = place.path("exported");
    let exported = place.run(&["store", "export", "-o", &file, &run]);
    assert_eq!(exported.status, 0, "{exported:?}");
    assert_eq!(root.run(&["store", "import", &file]).status, 0);
    let as_root = |more: &[&str]| {
        let mut command = root.command(&[&["rerun", "out"], more].concat());
        Answer::of(command.current_dir(place.work()).output().unwrap())
    };
    let plan = as_root(&["--dry-run"]);
    assert!(plan.status == 1 && plan.out.contains(asked), "{plan:?}");
    let words = ["nothing was run", asked, "root would run it now", "--yes"];
    as_root(&[]).is_error(2, &words);
    assert_eq!(fs::read_to_string(place.path("out")).unwrap(), "one\n");
    let agreed = as_root(&["--yes"]);
    assert_eq!(agreed.status, 0, "{agreed:?}");
    assert_eq!(fs::read_to_string(place.path("out")).unwrap(), "two\n");
}

#[test]
fn the_plan_says_that_a_script_changed_since_it_was_recorded() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.write_aged("one.awk", "{ print \"1\", $0 }\n");
    place.write_program("two", "#!/usr/bin/awk -f\n{ print \"2\", $0 }\n");
    place.keep("awk -f one.awk in > out1", &["--contents=lazy"]);
    place.keep("./two in > out2", &["--contents=lazy"]);
    place.write_aged("one.awk", "{ print \"one\", $0 }\n");
    place.write_program("two", "#!/usr/bin/awk -f\n{ print \"two\", $0 }\n");
    place.write_aged("in", "c\n");
    for (result, script) in [("out1", "one.awk"), ("out2", "two")] {
        let plan = place.run(&["rerun", "--dry-run", result]);
        let says = format!("the script {script} changed since it was recorded");
        assert!(plan.status == 1 && plan.out.contains(&says), "{plan:?}");
        assert_eq!(place.run(&["rerun", "--yes", result]).status, 0);
    }
    assert_eq!(fs::read_to_string(place.path("out2")).unwrap(), "two c\n");
}

#[test]
fn the_plan_shows_the_program_first() {
    let place = Place::new();
    place.stage.directory("work/sub").unwrap();
    place.write_aged("in", "b\na\n");
    place.keep(
        "cd sub && LC_ALL=C A='x y' sort ../in > out; env B=1 uniq out out2",
        &["--contents=lazy"],
    );
    place.write_aged("in", "d\nc\n");
    let plan = place.run(&["rerun", "--dry-run", "sub/out2"]);
    assert_eq!(plan.status, 1, "{plan:?}");
    let steps: Vec<&str> = plan
        .out
        .lines()
        .filter(|line| line.starts_with("sub/") && !line.contains(": "))
        .collect();
    let [sort, uniq] = &steps[..] else {
        panic!("{plan:?}");
    };
    assert!(sort.starts_with("sub/out   sort ../in > out "), "{plan:?}");
    assert!(uniq.starts_with("sub/out2  uniq out out2 "), "{plan:?}");
    let json = place.json_of(&["rerun", "--dry-run", "--json", "sub/out2"], 1);
    let script = json[0]["script"].as_str().unwrap();
    assert!(
        script.contains("LC_ALL=C") && script.contains("cd sub"),
        "{json}"
    );
    assert_eq!(place.run(&["rerun", "sub/out2"]).status, 0);
    assert_eq!(
        fs::read_to_string(place.path("sub/out2")).unwrap(),
        "c\nd\n"
    );
}

impl Place {
    /// The JSON answer of a command that ends with this status.
    fn json_of(&self, args: &[&str], status: i32) -> serde_json::Value {
        let answer = self.run(args);
        assert_eq!(answer.status, status, "{answer:?}");
        serde_json::from_str(&answer.out).unwrap()
    }
}
