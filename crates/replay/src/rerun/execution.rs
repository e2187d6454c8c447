//! Runs stale steps: makers before users, several at once, and no further than contents differ.

use std::io;
use std::sync::mpsc;

use backstory_files::Digest;
use backstory_redaction as redaction;

use backstory_currency::held;

use super::PlannedStep;

/// The reason why a step with a secret cannot run.
const NOT_IN_RECORD: &str = "an argument of it is a secret that is not in the record: run it yourself, under backstory record";

/// Runs a step.
pub trait StepRunner: Sync {
    /// Runs the step's script. The result is its exit status, or the reason why it could not start.
    fn run(&self, step: &PlannedStep) -> io::Result<i32>;
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// It is current and did not run.
    Current,
    /// It ran, and these of its outputs changed.
    Again(Vec<Vec<u8>>),
    /// It ran and failed with this status, or could not start for this reason.
    Failed(Result<i32, String>),
    /// It did not start, because another step failed.
    NotBegun,
}

/// Receives events while steps run.
pub trait StepProgress {
    /// A step starts.
    fn begins(&mut self, step: &PlannedStep);
    /// A step has its outcome.
    fn done(&mut self, step: &PlannedStep, done: &StepOutcome);
}

/// Runs the stale steps, at most `jobs` at once. After a failure, running steps are awaited and no
/// more are started.
pub fn bring_up_to_date(
    steps: &[PlannedStep],
    jobs: usize,
    runner: &dyn StepRunner,
    progress: &mut dyn StepProgress,
) -> Vec<StepOutcome> {
    let mut state: Vec<Option<StepOutcome>> = vec![None; steps.len()];
    let mut at_work: Vec<bool> = vec![false; steps.len()];
    let (tell, told) = mpsc::channel::<(usize, io::Result<i32>, Vec<Option<Digest>>)>();
    std::thread::scope(|scope| {
        loop {
            let failed = state
                .iter()
                .any(|done| matches!(done, Some(StepOutcome::Failed(_))));
            while let Some(at) = next(steps, &state, &at_work).filter(|_| !failed) {
                if !is_stale(&steps[at], &state) {
                    progress.done(&steps[at], &StepOutcome::Current);
                    state[at] = Some(StepOutcome::Current);
                } else if at_work.iter().filter(|busy| **busy).count() < jobs.max(1) {
                    at_work[at] = true;
                    progress.begins(&steps[at]);
                    let (tell, step) = (tell.clone(), &steps[at]);
                    scope.spawn(move || {
                        let before = step
                            .outputs
                            .iter()
                            .map(|(path, known)| known.or_else(|| held(path)))
                            .collect();
                        let status = match redaction::has_mark(step.script.as_bytes()) {
                            true => Err(io::Error::other(NOT_IN_RECORD)),
                            false => runner.run(step),
                        };
                        // The receiver outlives all senders.
                        let _ = tell.send((at, status, before));
                    });
                } else {
                    break;
                }
            }
            if !at_work.contains(&true) {
                break;
            }
            let Ok((at, status, before)) = told.recv() else {
                break;
            };
            at_work[at] = false;
            let done = became(&steps[at], status, &before);
            progress.done(&steps[at], &done);
            state[at] = Some(done);
        }
    });
    state
        .into_iter()
        .map(|done| done.unwrap_or(StepOutcome::NotBegun))
        .collect()
}

/// The next step that has not started and whose feeding steps are done.
fn next(steps: &[PlannedStep], state: &[Option<StepOutcome>], at_work: &[bool]) -> Option<usize> {
    let fed = |step: &PlannedStep| {
        let mut from = step.fed_by.iter();
        from.all(|(from, _)| {
            matches!(
                state[*from],
                Some(StepOutcome::Current | StepOutcome::Again(_))
            )
        })
    };
    (0..steps.len()).find(|&at| state[at].is_none() && !at_work[at] && fed(&steps[at]))
}

/// True if the step has a reason, or an input that another step made differently.
fn is_stale(step: &PlannedStep, state: &[Option<StepOutcome>]) -> bool {
    let fed = |(from, path): &(usize, backstory_eventlog::event::Bytes)| match (
        &state[*from],
        step.had.get(path),
    ) {
        (Some(StepOutcome::Again(_)), Some(had)) => held(path) != Some(*had),
        (Some(StepOutcome::Again(different)), None) => {
            different.iter().any(|other| **other == **path)
        }
        _ => false,
    };
    !step.reasons.is_empty() || step.fed_by.iter().any(fed)
}

fn became(step: &PlannedStep, status: io::Result<i32>, before: &[Option<Digest>]) -> StepOutcome {
    match status {
        Err(error) => StepOutcome::Failed(Err(error.to_string())),
        Ok(0) => {
            let outputs = step.outputs.iter().zip(before);
            let different =
                outputs.filter(|((path, _), before)| before.is_none() || held(path) != **before);
            StepOutcome::Again(different.map(|((path, _), _)| path.to_vec()).collect())
        }
        Ok(status) => StepOutcome::Failed(Ok(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reason;
    use super::*;
    use std::sync::Mutex;

    struct Silent;

    impl StepProgress for Silent {
        fn begins(&mut self, _: &PlannedStep) {}
        fn done(&mut self, _: &PlannedStep, _: &StepOutcome) {}
    }

    /// Writes a text into the outputs of a step.
    struct Writes<'w>(&'w str, Mutex<Vec<String>>);

    impl StepRunner for Writes<'_> {
        fn run(&self, step: &PlannedStep) -> io::Result<i32> {
            use std::os::unix::ffi::OsStrExt;
            self.1.lock().unwrap().push(step.name.clone());
            for (path, _) in &step.outputs {
                std::fs::write(std::ffi::OsStr::from_bytes(path), self.0)?;
            }
            Ok(i32::from(step.name == "fails"))
        }
    }

    fn step(
        name: &str,
        output: &std::path::Path,
        fed_by: Vec<(usize, backstory_eventlog::event::Bytes)>,
        stale: bool,
    ) -> PlannedStep {
        use std::os::unix::ffi::OsStrExt;
        let path: backstory_eventlog::event::Bytes = output.as_os_str().as_bytes().into();
        PlannedStep {
            name: name.to_owned(),
            script: String::new(),
            cwd: b"/"[..].into(),
            env: Vec::new(),
            run: String::new(),
            members: Vec::new(),
            contents: None,
            directories: Vec::new(),
            outputs: vec![(path.clone(), None)],
            fed_by,
            had: std::collections::HashMap::new(),
            reasons: if stale {
                vec![Reason::InputChanged(path)]
            } else {
                Vec::new()
            },
        }
    }

    #[test]
    fn a_step_behind_an_unchanged_result_is_not_run() {
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&a, "same").unwrap();
        let feeds = vec![(0, a.as_os_str().as_bytes().into())];
        let steps = [
            step("first", &a, Vec::new(), true),
            step("second", &b, feeds, false),
        ];
        let runner = Writes("same", Mutex::default());
        let done = bring_up_to_date(&steps, 2, &runner, &mut Silent);
        assert_eq!(done, [StepOutcome::Again(Vec::new()), StepOutcome::Current]);
        let runner = Writes("other", Mutex::default());
        let done = bring_up_to_date(&steps, 2, &runner, &mut Silent);
        assert!(
            matches!(&done[1], StepOutcome::Again(different) if different.len() == 1),
            "{done:?}"
        );
        assert_eq!(*runner.1.lock().unwrap(), ["first", "second"]);
    }

    #[test]
    fn after_a_failure_no_step_starts() {
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let feeds = vec![(0, a.as_os_str().as_bytes().into())];
        let steps = [
            step("fails", &a, Vec::new(), true),
            step("fed", &b, feeds, false),
            step("other", &b, Vec::new(), true),
        ];
        let runner = Writes("x", Mutex::default());
        let done = bring_up_to_date(&steps, 1, &runner, &mut Silent);
        assert_eq!(
            done,
            [
                StepOutcome::Failed(Ok(1)),
                StepOutcome::NotBegun,
                StepOutcome::NotBegun
            ]
        );
    }

    #[test]
    fn a_step_whose_argument_is_not_in_the_record_is_not_run_with_something_else() {
        let dir = tempfile::tempdir().unwrap();
        let mut step = step("asks", &dir.path().join("a"), Vec::new(), true);
        step.script = "get '--token=<redacted>' >a".to_owned();
        let runner = Writes("x", Mutex::default());
        let done = bring_up_to_date(&[step], 1, &runner, &mut Silent);
        assert!(
            matches!(&done[..], [StepOutcome::Failed(Err(why))] if why.contains("secret")),
            "{done:?}"
        );
        assert!(runner.1.lock().unwrap().is_empty());
    }
}
