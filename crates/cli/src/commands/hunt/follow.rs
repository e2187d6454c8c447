//! `watch-log`: matches rules against a run in progress.
//!
//! In: the log of a run, which the supervisor extends a moment after each operation. Each look
//! takes the new records, adds them to a graph, and matches its changes. So a look costs as much as
//! the new records, however long the log is. Over a while, following takes at most half of a
//! processor.
//!
//! On a busy machine, operations can come long after later ones. Then a look takes the whole log
//! again, if that has not happened for [`APART`] times as long as it takes.
//!
//! At the end of the run the matcher of stored runs looks at the whole log once. It finds what only
//! the end tells, and what came in an order that a look could not know.
//!
//! Bounded: a log that is larger than [`LARGEST`] is not followed further.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use backstory_eventlog::run::RunHeader;
use backstory_eventlog::{Log, Patience};
use backstory_hunt::{
    self as hunt, Found, MatchDescriber, MatchKey, Rule, RuleFindings, RuleMatch, RunGraph,
    RunInProgress,
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

/// The time between two questions whether the log has changed.
const POLL: Duration = Duration::from_millis(5);
/// How many times as long as the looks took the pauses are, over a while.
const REST: u32 = 1;
/// How many times as long as a look at the whole log took the time until the next one is.
const APART: u32 = 8;
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
/// Operations that a description of a match looks at while the run goes on.
const DESCRIBED: usize = 10_000;

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
        counts: HashMap::new(),
        limited: Vec::new(),
        patience: Patience::default(),
        again: Instant::now(),
        looked_again: false,
        length: 0,
        grown: Instant::now(),
        has_more: false,
        next: Instant::now(),
    };
    let Some(header) = header(&part, &whole) else {
        complain(&format!(
            "run {run} is not watched: its log, or the header of the log, is missing; `backstory hunt {run}` looks at it after its end"
        ));
        return Ok(1);
    };
    let mut in_progress = RunInProgress::new(&header, rules, limits(LONGEST), follower.patience);
    loop {
        // Asked before the look, so that the last look is at the whole log.
        let goes_on = session::is_recording(&part);
        let path = if part.exists() { &part } else { &whole };
        if !goes_on {
            let looked = follower.last_look(path);
            // Another process may have given it its final name just now.
            let looked = looked.or_else(|_| follower.last_look(&whole));
            let is_removed = || !part.exists() && !whole.exists();
            if let Err(error) = looked
                && !is_removed()
            {
                complain(&format!(
                    "run {run} was not looked at after its end: {error}; `backstory hunt {run}` looks at it"
                ));
            }
            return Ok(0);
        }
        let begun = Instant::now();
        match follower.look(path, &mut in_progress) {
            Ok(true) => {}
            Ok(false) => return Ok(0),
            Err(error) => complain(&format!("cannot watch run {run}: {error}")),
        }
        follower.rest(begun.elapsed());
    }
}

/// Waits for the header of the log. `None`: it does not come.
fn header(part: &Path, whole: &Path) -> Option<RunHeader> {
    let began = Instant::now();
    while began.elapsed() < BEGIN {
        let path = if part.exists() { part } else { whole };
        let header = Log::header_of(path).ok();
        if let Some(header) = header.filter(|header| *header != RunHeader::default()) {
            return Some(header);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

struct Follower<'a> {
    run: &'a str,
    rules: &'a [Rule],
    args: &'a WatchLogArgs,
    notices: Notices,
    stopped: StoppedProcesses,
    /// The shortest delay that is reported next.
    told: Duration,
    reported: HashSet<(String, MatchKey)>,
    /// How many matches of each rule were reported.
    counts: HashMap<String, usize>,
    /// The rules with matches that are not reported.
    limited: Vec<String>,
    patience: Patience,
    /// From this moment on, a look can take the whole log again.
    again: Instant,
    /// The last look took the whole log again.
    looked_again: bool,
    /// The log's length at the last look, and when it had grown to that.
    length: u64,
    grown: Instant,
    /// The youngest records wait for older ones, or a new process for its program.
    has_more: bool,
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
            complain(&delay_words(delay, self.looked_again));
            self.told = delay * 4;
        }
        while now.elapsed() < pause {
            self.stopped.look();
            std::thread::sleep(POLL.min(pause.saturating_sub(now.elapsed())));
        }
    }

    /// Reports what is new in the log. False if it is too large to be followed further.
    fn look(&mut self, path: &Path, run: &mut RunInProgress<'_>) -> io::Result<bool> {
        let length = std::fs::metadata(path)?.len();
        if self.is_too_large(length) {
            return Ok(false);
        }
        self.looked_again = false;
        let before = self.grown.elapsed();
        let is_again = run.is_disordered() && Instant::now() >= self.again;
        if length != self.length {
            run.grow(path).map_err(io::Error::other)?;
            (self.length, self.grown) = (length, Instant::now());
        } else if !self.has_more && !is_again && before < self.patience.lasting {
            return Ok(true);
        }
        let quiet = self.grown.elapsed();
        if quiet >= self.patience.lasting {
            // Calls that last are looked at once.
            self.grown = Instant::now();
        }
        self.report_news(run, quiet);
        if run.is_disordered() && Instant::now() >= self.again {
            self.looked_again = true;
            let begun = Instant::now();
            run.begin_again(path).map_err(io::Error::other)?;
            self.report_news(run, quiet);
            self.again = Instant::now() + begun.elapsed() * APART;
        }
        Ok(true)
    }

    /// Reports what the records complete that were not looked at before.
    fn report_news(&mut self, run: &mut RunInProgress<'_>, quiet: Duration) {
        self.has_more = run.look(quiet, |graph, rule, findings| {
            let matches = MatchDescriber::within(graph, DESCRIBED);
            self.report_matches(graph, rule, findings, &matches);
        });
    }

    /// Looks at the whole log, and reports what was not reported before.
    fn last_look(&mut self, path: &Path) -> io::Result<()> {
        let length = std::fs::metadata(path)?.len();
        if self.is_too_large(length) {
            return Ok(());
        }
        let log = Log::open(path).map_err(io::Error::other)?;
        let mut graph = RunGraph::default();
        let Ok(()) = backstory_graph::fold(log.header(), log.end(), log.events(), &(), &mut graph);
        graph.complete();
        let matches = MatchDescriber::of(&graph);
        for rule in self.rules {
            let findings = hunt::find(&graph, rule, limits(LONGEST));
            self.report_matches(&graph, rule, findings, &matches);
        }
        Ok(())
    }

    /// Says that a log is too large, if it is.
    fn is_too_large(&self, length: u64) -> bool {
        let is_too_large = length > LARGEST;
        if is_too_large {
            complain(&format!(
                "run {} is watched no further: its log has more than 256 MB; `backstory hunt {0}` looks at all of it after its end",
                self.run
            ));
        }
        is_too_large
    }

    /// Reports the matches that were not reported before.
    fn report_matches(
        &mut self,
        graph: &RunGraph,
        rule: &Rule,
        findings: RuleFindings,
        matches: &MatchDescriber<'_>,
    ) {
        self.tell_limit(rule, &findings);
        for found in findings.found {
            // A description costs more than a look.
            if self.is_new(rule, graph, &found) {
                self.report(rule, &matches.describe(&found));
            }
        }
    }

    /// Says once that a rule has matches that are not reported.
    fn tell_limit(&mut self, rule: &Rule, findings: &RuleFindings) {
        let cause = match findings {
            RuleFindings { is_cut: true, .. } => format!("takes more than {LONGEST} s"),
            RuleFindings { more: 1.., .. } => {
                format!("has more than {} matches", limits(LONGEST).findings)
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
        let Some(key) = MatchKey::of(graph, rule, &found.facts) else {
            return false;
        };
        let of_rule = self.counts.entry(rule.id.clone()).or_default();
        let has_room = self.reported.len() < MOST && *of_rule < limits(LONGEST).findings;
        let is_new = has_room && self.reported.insert((rule.id.clone(), key));
        *of_rule += usize::from(is_new);
        is_new
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
            printed: BTreeSet::new(),
        };
        let mut json = Vec::new();
        let written = finding_object(rule, &run, finding, None).write(&mut json);
        if written.and_then(|()| json.write_all(b"\n")).is_ok() {
            self.notices.send(&json);
        }
        if self.args.report.stop_on.contains(&rule.id) {
            self.stopped.stop(last);
        }
    }
}

/// Says how late matches are reported. `is_again`: the whole log was looked at again.
fn delay_words(delay: Duration, is_again: bool) -> String {
    let (when, reason) = match is_again {
        true => (
            "now and then",
            "operations came late to the log, and then `--watch` looks at all of it again",
        ),
        false => ("from now on", "the run does more than `--watch` can follow"),
    };
    let seconds = delay.as_secs_f32();
    format!(
        "matches are reported up to {seconds:.1} s after the operation {when}, because {reason}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_by_a_look_at_the_whole_log_is_not_blamed_on_the_run() {
        let words = |is_again| delay_words(Duration::from_millis(2_600), is_again);
        assert_eq!(
            words(true),
            "matches are reported up to 2.6 s after the operation now and then, because \
             operations came late to the log, and then `--watch` looks at all of it again"
        );
        assert!(words(false).ends_with(", because the run does more than `--watch` can follow"));
    }
}
