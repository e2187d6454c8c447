//! Applies filters to a run, one after the other.
//!
//! In: the header and the graph of a run. Out: both as the store gets them, and a report. A filter
//! sees the names that former filters gave, and no node that one of them took. The taken nodes
//! leave the graph together at the end.
//!
//! Invariant: no filter stops another one. A filter that fails has the effect of its failure mode,
//! and its report has a warning.

use std::collections::BTreeSet;

use backstory_eventlog::event::Bytes;
use backstory_eventlog::run::RunHeader;
use backstory_files::Ident;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{Activity, ActivityId, EntityId};
use regex::bytes::Regex;

use crate::contraction::contract;
use crate::filter::{Action, FailureMode, Filter, PluginProgram, Subject};
use crate::judge::Verdict;
use crate::matching::{Matches, Subjects, mistake_in_expression};
use crate::report::{FilterReport, KIND, NodeCounts, PipelineReport};
use crate::step_merging::merge_steps;
use crate::substitution::Substitution;
use crate::taken_nodes::TakenNodes;

/// The filters of a store, in their order.
#[derive(Debug, Clone)]
pub struct Pipeline {
    filters: Vec<Filter>,
    digest: String,
}

/// A run on its way to the store.
#[derive(Debug)]
pub struct FilteredRun {
    /// Its header.
    pub header: RunHeader,
    /// Its graph.
    pub graph: MemorySink,
}

impl Pipeline {
    /// `None` without filters: nothing has to be done then.
    pub fn new(filters: Vec<Filter>) -> Option<Pipeline> {
        let digest = blake3::hash(format!("{filters:?}").as_bytes());
        let digest = digest.to_hex()[..16].to_owned();
        (!filters.is_empty()).then_some(Pipeline { filters, digest })
    }

    /// The filters.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// Mistakes in expressions, each with file, line and column. Each expression is compiled in a
    /// process with limits.
    pub fn mistakes_in_expressions(&self) -> Vec<String> {
        self.filters
            .iter()
            .filter_map(mistake_in_expression)
            .collect()
    }

    /// Applies all filters. `made_before` says whether an earlier run left a file.
    pub fn apply(
        &self,
        run: &mut FilteredRun,
        made_before: &dyn Fn(&Ident) -> bool,
    ) -> PipelineReport {
        let mut work = Work {
            taken: TakenNodes::default(),
            run,
        };
        let filters = self
            .filters
            .iter()
            .map(|filter| work.apply(filter))
            .collect();
        let Work { taken, run } = work;
        let before = counts(&run.graph);
        let made = |entity: &backstory_graph::model::Entity| {
            entity.ident.is_some_and(|ident| made_before(&ident))
        };
        let done = contract(&mut run.graph, &taken, &made);
        let after = counts(&run.graph);
        let report = PipelineReport {
            digest: self.digest.clone(),
            filters,
            removed: NodeCounts {
                files: before.files - after.files,
                processes: before.processes - after.processes,
            },
            anonymous: NodeCounts {
                files: done.anonymous_entities.len(),
                processes: done.anonymous_activities.len(),
            },
        };
        if after.processes > 0 {
            let record = (
                ActivityId(0),
                run.header.started,
                KIND.to_vec(),
                report.encode(),
            );
            run.graph.extended.push(record);
        }
        report
    }
}

fn counts(graph: &MemorySink) -> NodeCounts {
    NodeCounts {
        files: graph.entities.len(),
        processes: graph.activities.len(),
    }
}

/// A run between two filters.
struct Work<'r> {
    run: &'r mut FilteredRun,
    taken: TakenNodes,
}

impl Work<'_> {
    fn apply(&mut self, filter: &Filter) -> FilterReport {
        let mut report = FilterReport {
            name: filter.name.clone(),
            action: filter.action.word().to_owned(),
            ..FilterReport::default()
        };
        let matches = self.subjects().matching(filter);
        let nodes = chosen(filter, matches, &mut report);
        if filter.mistake.is_some() {
            match (&filter.action, filter.failure) {
                (_, FailureMode::Open) => {}
                (Action::Drop, _) => self.take(filter.subject, &nodes, &mut report),
                _ => self.rewrite_all(&Substitution::Mark(None), &mut report),
            }
            return report;
        }
        match &filter.action {
            Action::Drop => self.take(filter.subject, &nodes, &mut report),
            Action::Redact(text) => {
                self.rewrite(
                    filter.subject,
                    &nodes,
                    &Substitution::Mark(text.as_ref()),
                    &mut report,
                );
            }
            Action::Rename(text, to) => {
                self.rewrite(
                    filter.subject,
                    &nodes,
                    &Substitution::Text(text, to),
                    &mut report,
                );
            }
            Action::Abstract => {
                let firsts = nodes.iter().map(|id| ActivityId(*id)).collect();
                for activity in nodes.iter().filter_map(|id| self.activity(*id)) {
                    report.example(&command(activity), None);
                }
                report.processes = merge_steps(&mut self.run.graph, &firsts, &mut self.taken);
            }
            Action::Sample(keep) => {
                let left = self.named(filter.subject, &nodes).into_iter();
                let left = left
                    .filter(|(_, name)| share(name) >= *keep)
                    .map(|(id, _)| id);
                self.take(filter.subject, &left.collect(), &mut report);
            }
            Action::Deduplicate(key) => {
                let repeated = repeated(self.named(filter.subject, &nodes), key.as_ref());
                self.take(filter.subject, &repeated, &mut report);
            }
            Action::Plugin(program) => self.plug_in(filter, program, &nodes, &mut report),
        }
        report
    }

    fn subjects(&self) -> Subjects<'_> {
        Subjects {
            graph: &self.run.graph,
            taken: &self.taken,
            header: &self.run.header,
        }
    }

    fn activity(&self, id: u32) -> Option<&Activity> {
        self.run.graph.activities.get(&ActivityId(id))
    }

    /// The names of nodes, by which samples and repetitions are found.
    fn named(&self, subject: Subject, nodes: &BTreeSet<u32>) -> Vec<(u32, Vec<u8>)> {
        let name = |id: &u32| match subject {
            Subject::Process => {
                let activity = self.activity(*id)?;
                let program = activity.exec_path.clone().unwrap_or_default();
                Some((*id, [&program, &b"\0"[..], &command(activity)].concat()))
            }
            Subject::File | Subject::Text => {
                let entity = self.run.graph.entities.get(&EntityId(*id))?;
                Some((
                    *id,
                    [entity.kind.word().as_bytes(), b"\0", &entity.path].concat(),
                ))
            }
        };
        nodes.iter().filter_map(name).collect()
    }

    fn take(&mut self, subject: Subject, nodes: &BTreeSet<u32>, report: &mut FilterReport) {
        match subject {
            Subject::Process => {
                for activity in nodes.iter().filter_map(|id| self.activity(*id)) {
                    report.example(&command(activity), None);
                }
                report.processes += nodes.len();
                self.taken
                    .activities
                    .extend(nodes.iter().map(|id| ActivityId(*id)));
            }
            Subject::File | Subject::Text => {
                for id in nodes {
                    if let Some(entity) = self.run.graph.entities.get(&EntityId(*id)) {
                        report.example(&entity.path, None);
                    }
                }
                report.files += nodes.len();
                self.taken
                    .entities
                    .extend(nodes.iter().map(|id| EntityId(*id)));
            }
        }
    }

    fn rewrite(
        &mut self,
        subject: Subject,
        nodes: &BTreeSet<u32>,
        by: &Substitution<'_>,
        report: &mut FilterReport,
    ) {
        match subject {
            Subject::File => self.rewrite_files(nodes, by, report),
            Subject::Process => self.rewrite_processes(nodes, by, report),
            Subject::Text => self.rewrite_all(by, report),
        }
    }

    fn rewrite_all(&mut self, by: &Substitution<'_>, report: &mut FilterReport) {
        let files = self.run.graph.entities.keys().map(|id| id.0).collect();
        self.rewrite_files(&files, by, report);
        let processes = self.run.graph.activities.keys().map(|id| id.0).collect();
        self.rewrite_processes(&processes, by, report);
        report.header |= by.header(&mut self.run.header);
    }

    fn rewrite_files(
        &mut self,
        nodes: &BTreeSet<u32>,
        by: &Substitution<'_>,
        report: &mut FilterReport,
    ) {
        for id in nodes {
            let Some(entity) = self.run.graph.entities.get_mut(&EntityId(*id)) else {
                continue;
            };
            let before = entity.path.clone();
            if by.file(entity) {
                report.files += 1;
                report.example(&before, Some(&entity.path));
            }
        }
    }

    fn rewrite_processes(
        &mut self,
        nodes: &BTreeSet<u32>,
        by: &Substitution<'_>,
        report: &mut FilterReport,
    ) {
        let run_command = &self.run.header.command;
        let is_command = |argv: &[Bytes]| {
            argv.iter()
                .map(|arg| &**arg)
                .eq(run_command.iter().map(|arg| &**arg))
        };
        let mut is_of_run = false;
        for id in nodes {
            let Some(activity) = self.run.graph.activities.get_mut(&ActivityId(*id)) else {
                continue;
            };
            let before = command(activity);
            is_of_run |= is_command(&activity.argv);
            if by.process(activity) {
                report.processes += 1;
                report.example(&before, Some(&command(activity)));
            }
        }
        by.records(&mut self.run.graph, &|id| nodes.contains(&id.0));
        if is_of_run {
            report.header |= by.header(&mut self.run.header);
        }
    }

    fn plug_in(
        &mut self,
        filter: &Filter,
        program: &PluginProgram,
        nodes: &BTreeSet<u32>,
        report: &mut FilterReport,
    ) {
        let verdicts = match self.subjects().by_plugin(filter, program, nodes) {
            Ok(verdicts) => verdicts,
            Err(failure) => {
                report.warning = Some(warning(filter, &failure.to_string()));
                if filter.failure == FailureMode::Closed {
                    self.rewrite(filter.subject, nodes, &Substitution::Mark(None), report);
                }
                return;
            }
        };
        let (mut drop, mut redact) = (BTreeSet::new(), BTreeSet::new());
        let whole = whole_text();
        for (id, verdict) in verdicts {
            match verdict {
                Verdict::Drop | Verdict::Match => drop.insert(id),
                Verdict::Redact => redact.insert(id),
                Verdict::Failed(why) => {
                    report.warning.get_or_insert(warning(filter, &why));
                    filter.failure == FailureMode::Closed && redact.insert(id)
                }
                Verdict::Rename(to) => {
                    if let Some(whole) = &whole {
                        let to: Vec<u8> = to.iter().flat_map(|&byte| escaped(byte)).collect();
                        let by = Substitution::Text(whole, &to);
                        self.rename_one(filter.subject, id, &by, report);
                    }
                    false
                }
            };
        }
        self.rewrite(filter.subject, &redact, &Substitution::Mark(None), report);
        self.take(filter.subject, &drop, report);
    }

    /// Gives a file another path, or a process another program.
    fn rename_one(
        &mut self,
        subject: Subject,
        id: u32,
        by: &Substitution<'_>,
        report: &mut FilterReport,
    ) {
        match subject {
            Subject::Process => {
                if let Some(activity) = self.run.graph.activities.get_mut(&ActivityId(id)) {
                    let before = activity.exec_path.clone().unwrap_or_default();
                    let mut path = before.clone();
                    report.processes += usize::from(by.apply(&mut path));
                    report.example(&before, Some(&path));
                    activity.exec_path = Some(path);
                }
            }
            Subject::File | Subject::Text => {
                self.rewrite_files(&BTreeSet::from([id]), by, report);
            }
        }
    }
}

/// A pattern of a whole text.
fn whole_text() -> Option<Regex> {
    Regex::new("(?s-u)^.*$").ok()
}

/// A byte of a text that is no pattern of groups.
fn escaped(byte: u8) -> Vec<u8> {
    match byte {
        b'$' => b"$$".to_vec(),
        byte => vec![byte],
    }
}

/// The nodes that a filter changes, by its failure mode. Its report gets a warning.
fn chosen(filter: &Filter, matches: Matches, report: &mut FilterReport) -> BTreeSet<u32> {
    let Matches {
        mut certain,
        undecided,
        why,
    } = matches;
    if let Some(why) = why {
        report.warning = Some(warning(filter, &why));
    }
    if filter.failure == FailureMode::Closed {
        certain.extend(undecided);
    }
    certain
}

fn warning(filter: &Filter, why: &str) -> String {
    let effect = match filter.failure {
        FailureMode::Open => "it changed nothing that it could not decide about",
        FailureMode::Closed => "it changed all that it could not decide about",
    };
    format!(
        "filter {} ({}) failed: {why}; {effect}; correct it, then `backstory store rebuild` applies it",
        filter.name, filter.defined
    )
}

/// The arguments of a process, with a space between.
fn command(activity: &Activity) -> Vec<u8> {
    activity.argv.join(&b" "[..])
}

/// A number from 0 to 1 that a name always has.
fn share(name: &[u8]) -> f64 {
    let digest = blake3::hash(name);
    let first: [u8; 8] = std::array::from_fn(|at| digest.as_bytes()[at]);
    // 53 bits are exact in a float.
    (u64::from_le_bytes(first) >> 11) as f64 / (1u64 << 53) as f64
}

/// The nodes whose key an earlier node has.
fn repeated(named: Vec<(u32, Vec<u8>)>, key: Option<&(Regex, Vec<u8>)>) -> BTreeSet<u32> {
    let mut known = BTreeSet::new();
    let is_repeated = |name: &Vec<u8>| match key {
        Some((text, to)) => !known.insert(text.replace_all(name, to.as_slice()).into_owned()),
        None => !known.insert(name.clone()),
    };
    let mut is_repeated = is_repeated;
    named
        .into_iter()
        .filter(|(_, name)| is_repeated(name))
        .map(|(id, _)| id)
        .collect()
}
