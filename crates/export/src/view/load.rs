//! Reads a view from a store.

use std::collections::BTreeMap;

use backstory_eventlog::job_rank::JobRank;
use backstory_graph::model::{Certainty, Edge, EntityKind, Interval, Relation};
use backstory_query::answer::Flow;
use backstory_query::{Globs, RefinedRuns};
use backstory_store::{ActivityKey, Store, same_version};
use backstory_workflow::recording::Recording;
use backstory_workflow::steps::{Step, Workflow, outer_input};
use backstory_workflow::{Selection, Subject};

use super::graph::GraphBuilder;
use super::{Endpoint, Level, ProgramCall, Request, View, ViewLink};
use crate::Result;
use crate::file_contents::FileContents;

impl View {
    /// Reads the requested part of a store.
    ///
    /// # Errors
    ///
    /// If there is no such run or file, a pattern is malformed, or the store or the contents fail.
    pub fn load(store: &dyn Store, request: &Request) -> Result<View> {
        let selection = selection(store, request)?;
        let exclude = Globs::new(&request.exclude)?;
        let recordings = &selection.recordings;
        let workflow = selection.workflow(&exclude);
        let mut view = View {
            subject: selection.description.clone(),
            requested: selection.path.clone(),
            contents: FileContents::load(store, recordings, request.contents.as_deref())?,
            level: request.level,
            base: selection.base(),
            runs: recordings.iter().map(|run| run.details.clone()).collect(),
            activities: Vec::new(),
            entities: Vec::new(),
            links: Vec::new(),
            step_ranks: step_ranks(recordings, &workflow),
            workflow,
            programs: programs(&selection),
            generalise: request.generalise,
            files: request.files,
            warnings: Vec::new(),
            evidence: None,
            calls: None,
            hermeticity: None,
            head: head(&selection),
            whole: selection.whole().clone(),
        };
        view.warn();
        let versions = GraphBuilder::new(&mut view, &selection, exclude).build();
        view.join_runs();
        if let Some(directory) = &request.bytes {
            view.mark_bytes(&mut RefinedRuns::of(store, directory), &versions)?;
        }
        Ok(view)
    }

    /// Warns of incomplete records, and of what the workflow leaves out.
    fn warn(&mut self) {
        for run in &self.runs {
            let summary = &run.summary;
            if !summary.complete {
                let mut because = summary.incomplete_because.clone();
                if summary.lost > 0 {
                    because.push(format!("{} operations were lost", summary.lost));
                }
                let because = because.join("; ");
                self.warnings.push(format!(
                    "the record of run {} is not complete: {because}",
                    summary.id
                ));
            }
        }
        self.warnings.extend(self.workflow.notes.iter().cloned());
    }

    /// Links a version that one run made with the same version that a later run read.
    fn join_runs(&mut self) {
        let mut by_inode: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
        for (at, entity) in self.entities.iter().enumerate() {
            if let Some(ident) = entity.ident {
                by_inode.entry((ident.dev, ident.ino)).or_default().push(at);
            }
        }
        let mut links = Vec::new();
        for same in by_inode.values() {
            let pairs = same
                .iter()
                .flat_map(|to| same.iter().map(move |from| (to, from)));
            for (&to, &from) in pairs {
                let (old, new) = (&self.entities[from], &self.entities[to]);
                let (Some(was), Some(is)) = (old.ident, new.ident) else {
                    continue;
                };
                let passed_on = old.run < new.run && old.version > 0 && new.version == 0;
                if passed_on && same_version(&was, &is) {
                    links.push(ViewLink {
                        from: Endpoint::Entity(from),
                        to: Endpoint::Entity(to),
                        flow: Flow::Same,
                        certainty: Certainty::Seen,
                        interval: Interval {
                            start: is.mtime,
                            end: is.mtime.max(is.ctime),
                        },
                        bytes: None,
                    });
                }
            }
        }
        self.links.extend(links);
    }
}

/// The remarks about what the steps depend on beside their files.
fn head(selection: &Selection) -> Vec<String> {
    let mut said = Vec::new();
    for (at, recording) in selection.recordings.iter().enumerate() {
        let id = &recording.details.summary.id;
        let whole = selection.whole().get(&at);
        if let Some(because) = whole.and_then(|command| command.because.as_ref()) {
            said.push(format!(
                "The commands of run {id} are one step: {because}, so a change can make others."
            ));
        }
        let is_selected = |at: &usize| selection.has_activity(recording.activity_key(*at));
        let input = outer_input(recording).filter(|input| input.kind == EntityKind::Pipe);
        let mut members = (0..recording.activities.len()).filter(is_selected);
        let reads = |at: usize| {
            let mut edges = recording.edges[at].iter();
            let is_input = |edge: &Edge| input.is_some_and(|input| edge.entity == input.id);
            edges.any(|edge| edge.relation == Relation::Read && is_input(edge))
        };
        if members.any(reads) {
            said.push(format!(
                "The standard input of run {id} was a pipe. What came through it is frozen or gone."
            ));
        }
    }
    said
}

/// The runs behind the subject. An export that is executed has the steps of `rerun`.
fn selection(store: &dyn Store, request: &Request) -> Result<Selection> {
    match &request.subject {
        Subject::Path(path) if request.executed => {
            let origin = backstory_currency::origin(store, path)?;
            Ok(Selection::of_parts(store, &origin.path, origin.parts)?)
        }
        subject @ Subject::Run(run) if request.executed => {
            let mut selection = Selection::load(store, subject, &request.exclude, false)?;
            if let Some(command) = backstory_currency::whole_command(store, run)? {
                selection.make_whole(0, command);
            }
            Ok(selection)
        }
        subject => {
            let lookups = request.level == Level::All;
            Ok(Selection::load(store, subject, &request.exclude, lookups)?)
        }
    }
}

fn step_ranks(recordings: &[Recording], workflow: &Workflow) -> Vec<Option<JobRank>> {
    let of = |step: &Step| {
        let members = step.members.iter();
        let mut ranks = members.map(|&(run, at)| recordings[run].job_rank(at));
        let first = ranks.next()??;
        let job = first.whole();
        let mut common = first;
        for rank in ranks {
            match rank {
                Some(rank) if rank == common => {}
                Some(rank) if rank.whole() == job => common = rank.whole(),
                _ => return None,
            }
        }
        Some(common)
    };
    workflow.steps.iter().map(of).collect()
}

fn programs(selection: &Selection) -> Vec<ProgramCall> {
    let mut programs = Vec::new();
    for recording in &selection.recordings {
        let executed = recording
            .activities
            .iter()
            .filter(|activity| activity.epoch > 0);
        for activity in executed {
            if selection.has_activity(ActivityKey::new(recording.key, activity.id)) {
                programs.push(ProgramCall {
                    path: activity.exec_path.clone(),
                    argv: activity.argv.clone(),
                    cwd: activity.cwd.clone(),
                });
            }
        }
    }
    programs
}
