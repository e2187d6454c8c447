//! Which steps run, and what they leave.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Mutex;

use super::super::Reason;
use super::super::output_states::OutputStates;
use super::*;

struct Silent;

impl StepProgress for Silent {
    fn begins(&mut self, _: usize, _: &PlannedStep) {}
    fn done(&mut self, _: usize, _: &PlannedStep, _: &StepOutcome, _: Duration) {}
}

/// Writes a text into the outputs of a step.
struct Writes<'w>(&'w str, Mutex<Vec<String>>);

impl StepRunner for Writes<'_> {
    fn run(&self, step: &PlannedStep, started: &dyn Fn(u32)) -> io::Result<i32> {
        started(std::process::id());
        self.1.lock().unwrap().push(step.name.clone());
        if step.name.starts_with("forgets") {
            return Ok(0);
        }
        for (path, _) in &step.outputs {
            std::fs::write(OsStr::from_bytes(path), self.0)?;
        }
        Ok(i32::from(step.name.starts_with("fails")))
    }
}

/// A directory for the files of steps, and for what is put aside.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Bench {
        let bench = Bench(tempfile::tempdir().unwrap());
        std::fs::create_dir(bench.path("p")).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn bytes(&self, name: &str) -> Bytes {
        self.path(name).as_os_str().as_bytes().into()
    }

    fn step(&self, name: &str, output: &str, fed_by: &[(usize, &str)], stale: bool) -> PlannedStep {
        let path = self.bytes(output);
        PlannedStep {
            name: name.to_owned(),
            script: String::new(),
            headline: String::new(),
            cwd: b"/"[..].into(),
            env: Vec::new(),
            run: String::new(),
            is_imported: false,
            members: Vec::new(),
            is_whole_run: false,
            contents: None,
            directories: Vec::new(),
            outputs: vec![(path.clone(), None)],
            fed_by: fed_by
                .iter()
                .map(|&(from, name)| (from, self.bytes(name)))
                .collect(),
            had: HashMap::new(),
            reasons: if stale {
                vec![Reason::InputChanged(path)]
            } else {
                Vec::new()
            },
        }
    }

    /// The outcomes of the steps, and the names of those that ran. The project is the directory
    /// `p`.
    fn done(
        &self,
        steps: &[PlannedStep],
        text: &str,
        jobs: usize,
        keep_going: bool,
        forced: &[usize],
    ) -> (Vec<StepOutcome>, Vec<String>) {
        let project = self.bytes("p");
        let is_inside = |path: &[u8]| path.starts_with(&project);
        let forced: BTreeSet<usize> = forced.iter().copied().collect();
        let work = WorkList::new(steps, &is_inside, forced);
        let runner = Writes(text, Mutex::default());
        let aside = self.path("aside");
        let options = ExecutionOptions {
            jobs,
            keep_going,
            aside: &aside,
            overwritten: &self.path("overwritten"),
        };
        let done = bring_up_to_date(&work, options, &runner, &mut Silent);
        (done, runner.1.into_inner().unwrap())
    }
}

#[test]
fn a_step_behind_an_unchanged_result_is_not_run() {
    let bench = Bench::new();
    std::fs::write(bench.path("p/a"), "same").unwrap();
    let steps = [
        bench.step("first", "p/a", &[], true),
        bench.step("second", "p/b", &[(0, "p/a")], false),
    ];
    let (done, _) = bench.done(&steps, "same", 2, false, &[]);
    assert_eq!(done, [StepOutcome::Again(Vec::new()), StepOutcome::Current]);
    let (done, ran) = bench.done(&steps, "other", 2, false, &[]);
    assert!(
        matches!(&done[1], StepOutcome::Again(different) if different.len() == 1),
        "{done:?}"
    );
    assert_eq!(ran, ["first", "second"]);
}

#[test]
fn after_a_failure_no_step_starts() {
    let bench = Bench::new();
    let steps = [
        bench.step("fails", "p/a", &[], true),
        bench.step("fed", "p/b", &[(0, "p/a")], false),
        bench.step("other", "p/b", &[], true),
    ];
    let (done, _) = bench.done(&steps, "x", 1, false, &[]);
    let expected = [
        StepOutcome::Failed(Ok(1)),
        StepOutcome::NotBegun,
        StepOutcome::NotBegun,
    ];
    assert_eq!(done, expected);
}

#[test]
fn with_keep_going_a_failure_stops_only_the_steps_that_it_feeds() {
    let bench = Bench::new();
    let steps = [
        bench.step("fails", "p/a", &[], true),
        bench.step("fed", "p/b", &[(0, "p/a")], true),
        bench.step("other", "p/c", &[], true),
    ];
    let (done, ran) = bench.done(&steps, "x", 1, true, &[]);
    assert_eq!(
        done[..2],
        [StepOutcome::Failed(Ok(1)), StepOutcome::NotBegun]
    );
    assert!(matches!(done[2], StepOutcome::Again(_)), "{done:?}");
    assert_eq!(ran, ["fails", "other"]);
}

#[test]
fn a_failed_step_leaves_its_old_outputs_and_none_that_it_began() {
    let bench = Bench::new();
    std::fs::write(bench.path("p/old"), "from before").unwrap();
    let steps = [
        bench.step("fails_1", "p/old", &[], true),
        bench.step("fails_2", "p/new", &[], true),
    ];
    bench.done(&steps, "half", 1, true, &[]);
    let old = std::fs::read_to_string(bench.path("p/old")).unwrap();
    assert_eq!(old, "from before");
    assert!(!bench.path("p/new").exists());
}

#[test]
fn a_step_that_does_not_make_its_output_is_a_failure() {
    let bench = Bench::new();
    std::fs::write(bench.path("p/a"), "from before").unwrap();
    let steps = [
        bench.step("forgets", "p/a", &[], true),
        bench.step("fed", "p/b", &[(0, "p/a")], true),
    ];
    let (done, _) = bench.done(&steps, "x", 1, false, &[]);
    let missed = StepOutcome::NotMade(vec![bench.bytes("p/a").to_vec()]);
    assert_eq!(done, [missed, StepOutcome::NotBegun]);
    let old = std::fs::read_to_string(bench.path("p/a")).unwrap();
    assert_eq!(old, "from before");
}

#[test]
fn a_step_outside_the_project_is_not_run() {
    let bench = Bench::new();
    let steps = [
        bench.step("far", "q", &[], true),
        bench.step("near", "p/b", &[(0, "q")], true),
    ];
    let (done, ran) = bench.done(&steps, "x", 1, false, &[0]);
    assert_eq!(done[0], StepOutcome::Outside);
    assert_eq!(ran, ["near"]);
}

#[test]
fn a_forced_step_runs_although_it_is_current() {
    let bench = Bench::new();
    std::fs::write(bench.path("p/a"), "x").unwrap();
    let steps = [
        bench.step("first", "p/a", &[], false),
        bench.step("second", "p/b", &[(0, "p/a")], false),
    ];
    let (done, ran) = bench.done(&steps, "x", 1, false, &[0]);
    assert_eq!(ran, ["first"]);
    assert_eq!(done, [StepOutcome::Again(Vec::new()), StepOutcome::Current]);
}

#[test]
fn a_step_has_touched_its_outputs_if_one_was_made_replaced_written_or_removed() {
    let bench = Bench::new();
    let (one, two) = (bench.path("p/one"), bench.path("p/two"));
    std::fs::write(&one, "1").unwrap();
    let mut step = bench.step("s", "p/one", &[], true);
    step.outputs.push((bench.bytes("p/two"), None));
    let touched_by = |act: &dyn Fn()| {
        let before = OutputStates::of(&step);
        // A change within one tick of the clock has the same time.
        std::thread::sleep(Duration::from_millis(20));
        act();
        !before.are_untouched(&step)
    };
    assert!(!touched_by(&|| assert_eq!(
        std::fs::read(&one).unwrap(),
        b"1"
    )));
    assert!(touched_by(&|| std::fs::write(&one, "1").unwrap()));
    assert!(touched_by(&|| assert_eq!(
        std::fs::copy(&one, &two).unwrap(),
        1
    )));
    assert!(touched_by(&|| std::fs::rename(&two, &one).unwrap()));
    assert!(touched_by(&|| std::fs::remove_file(&one).unwrap()));
    assert!(!touched_by(&|| {}));
    std::os::unix::fs::symlink(bench.path("file"), &one).unwrap();
    std::fs::write(bench.path("file"), "1").unwrap();
    assert!(touched_by(&|| std::fs::write(&one, "2").unwrap()));
}
