//! `watch-log`: matches rules against a run in progress.
//!
//! In: the log of a run, which the supervisor extends a moment after each operation. After
//! each change the log becomes a graph, to which only the new operations are added, and the matcher
//! of stored runs looks at it. So both find the same. Over a while, following takes at most a third
//! of a processor: looks at a long log get rarer. After a quiet time, some looks may follow each
//! other at once.
//!
//! Bounded: a log that is larger than [`LARGEST`] is not followed further.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use backstory_eventlog::{Log, Patience};
use backstory_hunt::{
    self as hunt, Found, FoundStep, Rule, RuleFindings, RuleMatch, RunGraph, RunInProgress,
};
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

/// The time between two questions whether the log has changed.
const POLL: Duration = Duration::from_millis(10);
/// One operation makes the log grow more than once. It is read if it has not grown for so long.
const SETTLED: Duration = Duration::from_millis(4);
/// The most such times before a look.
const SETTLING: usize = 5;
/// How many times as long as the looks took the pauses are, over a while.
const REST: u32 = 2;
/// The longest pause that a quiet time saves later.
const SAVED: Duration = Duration::from_secs(2);
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
        log: None,
        length: 0,
        next: Instant::now(),
    };
    let began = Instant::now();
    while !part.exists() && !whole.exists() {
        if began.elapsed() > BEGIN {
            return Ok(1);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let header = Log::header_of(if part.exists() { &part } else { &whole });
    let header = header.unwrap_or_default();
    let mut in_progress = RunInProgress::new(&header, Patience::default());
    loop {
        // Asked before the look, so that the last look is at the whole log.
        let goes_on = session::is_recording(&part);
        let path = if part.exists() { &part } else { &whole };
        let mut took = Duration::ZERO;
        match follower.look(path, &mut in_progress, &mut took) {
            Ok(true) => {}
            Ok(false) => return Ok(0),
            Err(error) if goes_on => complain(&format!("cannot watch run {run}: {error}")),
            // It was removed, or another process finalizes it.
            Err(_) => return Ok(0),
        }
        if !goes_on {
            return Ok(0);
        }
        follower.rest(took);
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
    /// The log at the last look.
    log: Option<Log>,
    /// Its length.
    length: u64,
    /// The looks so far are paid for by pauses up to this moment.
    next: Instant,
}

impl Follower<'_> {
    /// Waits until the next look. The last one took so long.
    fn rest(&mut self, took: Duration) {
        let now = Instant::now();
        let saved = now.checked_sub(SAVED).unwrap_or(self.next);
        self.next = self.next.max(saved) + took * REST;
        let pause = POLL.max(self.next.saturating_duration_since(now));
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
        while now.elapsed() < pause {
            self.stopped.look();
            std::thread::sleep(POLL.min(pause.saturating_sub(now.elapsed())));
        }
    }

    /// Waits for a moment in which the log does not grow. False if it has not grown since the last
    /// look.
    fn settle(&mut self, path: &Path) -> io::Result<bool> {
        let mut length = std::fs::metadata(path)?.len();
        let is_new = length != self.length;
        for _ in 0..if is_new { SETTLING } else { 0 } {
            std::thread::sleep(SETTLED);
            let later = std::fs::metadata(path)?.len();
            if std::mem::replace(&mut length, later) == later {
                break;
            }
        }
        self.length = length;
        Ok(is_new)
    }

    /// Reports what is new in the log. False if it is too large to be followed further.
    fn look(
        &mut self,
        path: &Path,
        run: &mut RunInProgress<'_>,
        took: &mut Duration,
    ) -> io::Result<bool> {
        if !self.settle(path)? {
            return Ok(true);
        }
        if self.length > LARGEST {
            complain(&format!(
                "run {} is watched no further: its log has more than 256 MB; `backstory hunt {0}` looks at all of it after its end",
                self.run
            ));
            return Ok(false);
        }
        let begun = Instant::now();
        let log = match self.log.take() {
            Some(former) => former.later(path),
            None => Log::growing(path),
        };
        let log = log.map_err(io::Error::other)?;
        run.look(&log, |graph| self.report_matches(graph));
        self.log = Some(log);
        *took = begun.elapsed();
        Ok(true)
    }

    /// Reports the matches that were not reported before.
    fn report_matches(&mut self, graph: &RunGraph) {
        for rule in self.rules {
            let findings = hunt::find(graph, rule, limits(LONGEST));
            self.tell_limit(rule, &findings);
            for found in findings.found {
                // The description of a match takes as long as a look at the whole run.
                if self.is_new(rule, graph, &found) {
                    self.report(rule, &RuleMatch::of(graph, &found));
                }
            }
        }
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

    /// True for a match that was not reported before. From now on it counts as reported.
    fn is_new(&mut self, rule: &Rule, graph: &RunGraph, found: &Found) -> bool {
        let (Some(first), Some(last)) = (found.facts.first(), found.facts.last()) else {
            return false;
        };
        // A later look can know more about the same operation.
        let first = FoundStep {
            time: 0,
            source: None,
            is_possible: false,
            ..hunt::step(graph, first)
        };
        // The last step of many may be another one after each look.
        let pid = match found.count > found.facts.len() {
            true => 0,
            false => hunt::step(graph, last).program.pid,
        };
        let key = (rule.id.clone(), pid, Some(first));
        self.reported.len() < MOST && self.reported.insert(key)
    }

    fn report(&mut self, rule: &Rule, finding: &RuleMatch) {
        let Some(last) = finding.steps.last() else {
            return;
        };
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
