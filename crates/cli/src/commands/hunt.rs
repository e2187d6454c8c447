//! `hunt`: looks for known attacks in recorded runs, by rules. The runs are in the store or a lake.

mod follow;
mod inspected;
mod later;
mod lists;
mod notice;
mod report;
mod rule_choice;
mod stopped;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use backstory_eventlog::run::RunHeader;
use backstory_hunt::{
    self as hunt, MatchDescriber, Rule, RuleMatch, RunFilter, RunGraph, RunOutputs,
};
use backstory_query::printed_files;
use backstory_store::RunKey;

use super::contents::store_contents;
use super::{Outcome, answer};
use crate::args::hunt::{HuntArgs, RunSize, WatchLogArgs, limits};
use crate::args::query::SqlBounds;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain};
use crate::json;
use crate::lake_graphs::LakeRequest;
use crate::text::style::{Role, Style};
use crate::text::words::counted;
use crate::version_inspections::VersionInspections;

pub use inspected::tell_not_asked;
use later::{LaterUse, LaterUses};
use lists::{field_objects, fields, list, rule_object};
pub use notice::check_url;
use report::{FoundRun, finding_object, finding_text};
use rule_choice::{Known, known_rules, tell};
pub use rule_choice::{rules, rules_of};

/// The exit status of a hunt that found nothing, and has not looked at everything.
const UNDECIDED: u8 = 2;

/// The findings of a rule in a run.
struct RunFindings<'r> {
    rule: &'r Rule,
    run: FoundRun,
    /// Those that are shown, each with what later runs made of its files. A lake is not asked for
    /// that.
    shown: Vec<(RuleMatch, Option<LaterUse>)>,
    /// How many more there are.
    more: usize,
}

/// The findings of a hunt.
#[derive(Default)]
struct Hunted<'r> {
    findings: Vec<RunFindings<'r>>,
    /// A rule or a run was left out, or a rule has not seen all of a run.
    is_partial: bool,
}

/// Looks for matches, or lists the rules.
pub fn run(args: HuntArgs, store: Option<&Path>) -> Outcome {
    if args.fields {
        return answer(|out| match args.json {
            true => json::lines(out, field_objects()),
            false => fields(Style::of_stdout(), out),
        });
    }
    let Known { rules, mistakes } = known_rules(&args.rules, &args.rule)?;
    tell(&mistakes);
    if args.list {
        return answer(|out| match args.json {
            true => json::lines(out, rules.iter().map(rule_object)),
            false => list(&rules, Style::of_stdout(), out),
        });
    }
    let mut hunted = Hunted {
        is_partial: !mistakes.is_empty(),
        ..Hunted::default()
    };
    let looked = match &args.lake {
        Some(lake) => look_in_lake(lake, &rules, &args, &mut hunted)?,
        None => look_in_store(store, &rules, &args, &mut hunted)?,
    };
    if looked == 0 && !hunted.is_partial {
        let is_filtered = args.since.is_some() || args.until.is_some() || !args.host.is_empty();
        complain(match is_filtered {
            true => "no run was looked at: none is of the chosen hosts and times",
            false => "no run was looked at: none is recorded there",
        });
    }
    let Hunted {
        findings: mut all,
        is_partial,
    } = hunted;
    // The most serious first, then the newest run.
    all.sort_by_key(|one| std::cmp::Reverse(one.rule.level));
    answer(|out| match args.json {
        true => {
            let findings = all.iter().flat_map(|one| {
                let shown = one.shown.iter();
                shown.map(|(finding, later)| {
                    finding_object(one.rule, &one.run, finding, later.as_ref())
                })
            });
            json::lines(out, findings)
        }
        false if all.is_empty() && is_partial => {
            writeln!(out, "not decided: nothing found in what was looked at")
        }
        false => write(&all, &rules, looked, out),
    })?;
    Ok(match (all.is_empty(), is_partial) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => UNDECIDED,
    })
}

/// Looks at the wanted runs of the store. Returns their number.
fn look_in_store<'r>(
    store: Option<&Path>,
    rules: &'r [Rule],
    args: &HuntArgs,
    into: &mut Hunted<'r>,
) -> Result<usize, Failure> {
    let mut current = CurrentStore::open(store)?;
    current.tell_left_running();
    if rules.iter().any(Rule::asks_inspectors) {
        store_contents(&mut current);
    }
    let runs = runs(&current, args)?;
    let inspections = VersionInspections::new(&current);
    let compares = rules.iter().any(Rule::compares_runs);
    let mut outputs = RunOutputs::of_store(&current.store);
    for (key, id) in &runs {
        let record = current.store.run(id)?;
        let printed = record.map(|record| printed_files(&record.header));
        let printed = printed.into_iter().flatten();
        let run = FoundRun {
            id: id.clone(),
            lake: None,
            printed: printed.map(Vec::into_boxed_slice).collect(),
        };
        match RunGraph::of_store(&current.store, *key, args.size.most)? {
            Some(mut graph) => {
                if compares {
                    graph.compare_with(&mut outputs, *key)?;
                }
                let (id, time) = (&run.id, args.timeout);
                let is_cut = inspected::ask(&mut graph, id, *key, rules, &inspections, time)?;
                into.is_partial |= is_cut;
                let later = LaterUses::new(&current.store, *key);
                look(&graph, &run, rules, args, Some(later), into)?;
            }
            None => {
                args.size.tell_left_out(id);
                into.is_partial = true;
            }
        }
    }
    Ok(runs.len())
}

/// Looks at the wanted runs of a lake. Returns their number. Runs in which no rule can match are
/// not read.
fn look_in_lake<'r>(
    lake: &OsStr,
    rules: &'r [Rule],
    args: &HuntArgs,
    into: &mut Hunted<'r>,
) -> Result<usize, Failure> {
    inspected::tell_not_asked(rules, "of a lake");
    into.is_partial |= rules.iter().any(Rule::asks_inspectors);
    let request = LakeRequest {
        lake,
        runs: &args.runs,
        hosts: &args.host,
        begun: (args.since, args.until),
        filter: &RunFilter::of(rules),
        compares: rules.iter().any(Rule::compares_runs),
        most: args.size.most,
        bounds: SqlBounds {
            timeout: args.timeout,
            memory: args.memory.sql,
        },
    };
    request.each(&mut |found| {
        let Some(graph) = &found.graph else {
            args.size.tell_left_out(&found.id);
            into.is_partial = true;
            return Ok(());
        };
        let run = FoundRun {
            id: found.id,
            lake: Some((lake.to_owned(), found.place)),
            printed: BTreeSet::new(),
        };
        look(graph, &run, rules, args, None, into)
    })
}

impl RunSize {
    /// Says that a run is larger.
    pub fn tell_left_out(&self, run: &str) {
        let most = self.most;
        complain(&format!(
            "run {run} is left out: it has more than {most} edges (--most)"
        ));
    }
}

/// Looks for matches in a run in progress. `record --watch` has reported the mistakes in rules.
pub fn follow(args: &WatchLogArgs, store: Option<&Path>) -> Outcome {
    // A key at the terminal is for the command. The follower ends after it.
    let _outlived = backstory_sys::outlive_interrupts();
    let known = known_rules(&args.rules, &args.rule)?;
    follow::follow(args, &known.rules, store)
}

/// The runs that are looked at, the newest first.
fn runs(current: &CurrentStore, args: &HuntArgs) -> Result<Vec<(RunKey, String)>, Failure> {
    let is_filtered = args.since.is_some() || args.until.is_some() || !args.host.is_empty();
    let is_wanted = |header: &RunHeader| {
        args.since.is_none_or(|since| header.started >= since)
            && args.until.is_none_or(|until| header.started <= until)
            && (args.host.is_empty() || args.host.contains(&header.machine.host))
    };
    if args.all || is_filtered && args.runs.is_empty() {
        let all = current.store.runs()?.into_iter();
        let all = all.filter(|run| is_wanted(&run.header));
        return Ok(all.map(|run| (run.key, run.header.id)).collect());
    }
    let wanted: Vec<Option<&str>> = match args.runs.is_empty() {
        true => vec![None],
        false => args.runs.iter().map(|run| Some(run.as_str())).collect(),
    };
    let found = wanted.into_iter().map(|wanted| {
        let id = current.run(wanted)?;
        let run = current.store.run(&id)?;
        let run = run.ok_or_else(|| Failure::not_found(format!("no run {id}")))?;
        Ok(is_wanted(&run.header).then_some((run.key, id)))
    });
    found.filter_map(Result::transpose).collect()
}

fn look<'r>(
    graph: &RunGraph,
    run: &FoundRun,
    rules: &'r [Rule],
    args: &HuntArgs,
    mut later: Option<LaterUses<'_>>,
    into: &mut Hunted<'r>,
) -> Result<(), Failure> {
    let matches = MatchDescriber::of(graph);
    for rule in rules {
        let end = Instant::now().checked_add(limits(args.timeout).time);
        let findings = hunt::find(graph, rule, limits(args.timeout));
        if findings.is_cut {
            into.is_partial = true;
            complain(&format!(
                "rule {} has not seen all of run {} within {} s (--timeout)",
                rule.id, run.id, args.timeout
            ));
        }
        if findings.found.is_empty() {
            continue;
        }
        // A description costs more than a match. A text has one of each rule.
        let is_first = into.findings.iter().all(|one| one.rule.id != rule.id);
        let shown = match args.json || args.full {
            true => findings.found.len(),
            false => usize::from(is_first),
        };
        let described = findings.found[..shown].iter().map(|found| {
            let found = matches.describe(found);
            let later = later.as_mut();
            let later = later.map(|later| later.of(&found.extent.left, end));
            Ok((found, later.transpose()?))
        });
        into.findings.push(RunFindings {
            rule,
            run: run.clone(),
            shown: described.collect::<Result<_, Failure>>()?,
            more: findings.found.len() - shown + findings.more,
        });
    }
    Ok(())
}

/// The findings that are shown, and how many others there are.
fn write(
    all: &[RunFindings<'_>],
    rules: &[Rule],
    runs: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let style = Style::of_stdout();
    if all.is_empty() {
        let rules = counted(rules.len(), "rule", "rules");
        let runs = counted(runs, "run", "runs");
        return writeln!(out, "nothing found: {rules}, {runs}");
    }
    for one in all {
        for (finding, later) in &one.shown {
            finding_text(one.rule, &one.run, finding, later.as_ref(), style, out)?;
        }
        if one.more > 0 {
            let line = format!("{} more in run {}: --full, --json", one.more, one.run.id);
            writeln!(
                out,
                "{}",
                style.paint(Role::Dim, &format!("{:<9} {line}", one.rule.id))
            )?;
        }
    }
    Ok(())
}
