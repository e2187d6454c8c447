//! `watch-log`: matches rules against a run in progress.
//!
//! In: the log of a run, which the supervisor extends a moment after each operation. After
//! each change the whole log becomes a graph again, and the matcher of stored runs looks at it. So
//! both find the same. The time between two looks grows with the log, so that following takes at
//! most a third of a processor.
//!
//! Bounded: a log that is larger than [`LARGEST`] is not followed further.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use backstory_eventlog::Log;
use backstory_graph::fold;
use backstory_hunt::{self as hunt, FoundStep, Rule, RuleFindings, RuleMatch, RunGraph};
use backstory_session as session;
use backstory_store::Home;

use super::notice::Notices;
use super::report::{FoundRun, finding_object, line};
use super::stopped::StoppedProcesses;
use crate::args::hunt::{WatchLogArgs, limits};
use crate::commands::Outcome;
use crate::error::{Failure, complain, one_line};
use crate::text::paths::shown;
use crate::text::when;

/// The shortest time between two looks at the log.
const PAUSE: Duration = Duration::from_millis(25);
/// How many times as long as the last look took the pause is, at least.
const REST: u32 = 2;
/// The shortest delay of a match that is reported.
const TOLD: Duration = Duration::from_secs(1);
/// How long the log may be missing at the beginning.
const BEGIN: Duration = Duration::from_secs(30);
/// The largest log that is followed, in bytes.
const LARGEST: u64 = 256 << 20;
/// Seconds for one rule in one look.
const LONGEST: u64 = 10;
/// Most matches that are remembered as reported.
const MOST: usize = 10_000;

/// Follows the log of a run to its end.
pub fn follow(args: &WatchLogArgs, rules: &[Rule], store: Option<&Path>) -> Outcome {
    let run = &args.run;
    let home = Home::locate(store).map_err(Failure::not_found)?;
    let (part, whole) = (home.part_path(run), home.log_path(run));
    let mut follower = Follower {
        run,
        rules,
        args,
        notices: Notices::new(&args.report)?,
        stopped: StoppedProcesses::default(),
        told: TOLD,
        reported: HashSet::new(),
        limited: Vec::new(),
        length: 0,
    };
    let began = Instant::now();
    while !part.exists() && !whole.exists() {
        if began.elapsed() > BEGIN {
            return Ok(1);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    loop {
        // Asked before the look, so that the last look is at the whole log.
        let goes_on = session::is_recording(&part);
        let path = if part.exists() { &part } else { &whole };
        let looked = Instant::now();
        match follower.look(path) {
            Ok(true) => {}
            Ok(false) => return Ok(0),
            Err(error) if goes_on => complain(&format!("cannot watch run {run}: {error}")),
            // It was removed, or another process finalizes it.
            Err(_) => return Ok(0),
        }
        if !goes_on {
            return Ok(0);
        }
        follower.rest(looked.elapsed());
    }
}

struct Follower<'a> {
    run: &'a str,
    rules: &'a [Rule],
    args: &'a WatchLogArgs,
    notices: Notices,
    stopped: StoppedProcesses,
    /// The shortest delay that is reported next.
    told: Duration,
    reported: HashSet<(String, u32, Option<FoundStep>)>,
    /// The rules with matches that are not reported.
    limited: Vec<String>,
    /// The length of the log at the last look.
    length: u64,
}

impl Follower<'_> {
    /// Waits until the next look. The last one took so long.
    fn rest(&mut self, took: Duration) {
        let pause = PAUSE.max(took * REST);
        // An operation just after the beginning of a look is in the next one.
        let delay = took + pause + took;
        if delay >= self.told {
            complain(&format!(
                "matches are reported up to {:.1} s after the operation from now on, because the log has {}",
                delay.as_secs_f32(),
                when::size(self.length)
            ));
            self.told = delay * 4;
        }
        let begun = Instant::now();
        while begun.elapsed() < pause {
            self.stopped.look();
            std::thread::sleep(PAUSE.min(pause.saturating_sub(begun.elapsed())));
        }
    }

    /// Reports what is new in the log. False if it is too large to be followed further.
    fn look(&mut self, path: &Path) -> io::Result<bool> {
        let length = std::fs::metadata(path)?.len();
        if std::mem::replace(&mut self.length, length) == length {
            return Ok(true);
        }
        if length > LARGEST {
            complain(&format!(
                "run {} is watched no further: its log has more than 256 MB; `backstory hunt {0}` looks at all of it after its end",
                self.run
            ));
            return Ok(false);
        }
        let log = Log::open(path).map_err(io::Error::other)?;
        let mut graph = RunGraph::default();
        let Ok(()) = fold(log.header(), log.end(), log.events(), &(), &mut graph);
        graph.complete();
        for rule in self.rules {
            let findings = hunt::find(&graph, rule, limits(LONGEST));
            self.tell_limit(rule, &findings);
            for found in findings.found {
                let finding = RuleMatch::of(&graph, &found);
                self.report(rule, &finding);
            }
        }
        Ok(true)
    }

    /// Says once that a rule has matches that are not reported.
    fn tell_limit(&mut self, rule: &Rule, findings: &RuleFindings) {
        let cause = match findings {
            RuleFindings { is_cut: true, .. } => format!("takes more than {LONGEST} s"),
            RuleFindings {
                more: 1.., found, ..
            } => {
                format!("has more than {} matches", found.len())
            }
            _ => return,
        };
        if !self.limited.contains(&rule.id) {
            self.limited.push(rule.id.clone());
            complain(&format!(
                "rule {} {cause}: not all are reported from now on; `backstory hunt {}` looks at all of the run after its end",
                rule.id, self.run
            ));
        }
    }

    /// Reports a finding, unless it was reported before.
    fn report(&mut self, rule: &Rule, finding: &RuleMatch) {
        let Some(last) = finding.steps.last() else {
            return;
        };
        // A later look can know more about the same operation.
        let first = FoundStep {
            time: 0,
            source: None,
            is_possible: false,
            ..finding.steps[0].clone()
        };
        // The last step of many may be another one after each look.
        let pid = match finding.count > finding.steps.len() {
            true => 0,
            false => last.program.pid,
        };
        let key = (rule.id.clone(), pid, Some(first));
        if self.reported.len() >= MOST || !self.reported.insert(key) {
            return;
        }
        let steps = finding.steps.iter().map(|step| match &step.target {
            Some(target) => format!("{} {}", step.operation, shown(target)),
            None => step.operation.to_owned(),
        });
        let steps: Vec<String> = steps.collect();
        let (level, id) = (rule.level.word(), &rule.id);
        complain(&one_line(&format!(
            "{level}: {id}: {}; by process {}: {}",
            steps.join(", "),
            last.program.pid,
            line(&last.program)
        )));
        let run = FoundRun {
            id: self.run.to_owned(),
            lake: None,
        };
        let mut json = Vec::new();
        let written = finding_object(rule, &run, finding).write(&mut json);
        if written.and_then(|()| json.write_all(b"\n")).is_ok() {
            self.notices.send(&json);
        }
        if self.args.report.stop_on.contains(&rule.id) {
            self.stopped.stop(last);
        }
    }
}
