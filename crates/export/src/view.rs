//! The part of the graph that is exported, as plain data: what every format reads.
//!
//! A [`View`] holds the graph at the asked level of detail and, whatever the level, the [`Workflow`] behind it. Indexes into
//! `activities` and `entities` are stable within one view; `id`s are stable between exports of the same store.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_graph::model::{Certainty, EntityKind, Interval, Relation};
use backstory_query::answer::{Flow, Lineage, Node, RunDetails, Scope};
use backstory_query::{self as query, Globs};
use backstory_store::{ActivityKey, EntityKey, Store, same_version};

use crate::format::Family;
use crate::holdings::Holdings;
use crate::{Error, Result};
use backstory_workflow::paths::is_tool;
use backstory_workflow::recording::Recording;
use backstory_workflow::shell;
use backstory_workflow::steps::{Shared, Workflow, workflow};

/// What is exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A run, by its id.
    Run(String),
    /// A file: everything it came from, over all runs.
    Path(PathBuf),
}

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// One activity for each command that a person would have written; the files between them.
    #[default]
    Command,
    /// One for each program that ran; no files of the system or of tools.
    Process,
    /// Everything: system files, look-ups, what runs between fork and exec.
    All,
}

/// What to export, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What.
    pub subject: Subject,
    /// How much of it.
    pub level: Level,
    /// Leave out files whose path matches one of these patterns.
    pub exclude: Vec<String>,
    /// Write steps that differ only in a name as one rule.
    pub generalise: bool,
    /// Where the store keeps contents.
    pub contents: Option<PathBuf>,
}

impl Request {
    /// Everything about `subject` that a person would want.
    pub fn new(subject: Subject) -> Request {
        Request {
            subject,
            level: Level::default(),
            exclude: Vec::new(),
            generalise: true,
            contents: None,
        }
    }
}

/// Something that was done.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// `RUN/NUMBER`, or `RUN/NAME` of a step.
    pub id: String,
    /// Which of the view's runs it is from.
    pub run: usize,
    /// A line for a shell.
    pub label: String,
    /// Program, absolute; none for steps of several commands and where it is not known.
    pub program: Option<Bytes>,
    /// Arguments with the name it was called by; empty for steps of several commands.
    pub argv: Vec<Bytes>,
    /// Current directory.
    pub cwd: Bytes,
    /// `NAME=value` where it is not as the run's.
    pub env_set: Vec<Bytes>,
    /// From when to when.
    pub interval: Interval,
    /// Exit status, if it is known.
    pub exit: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Process id.
    pub pid: u32,
    /// Which program of its process; 0: between fork and exec.
    pub epoch: u32,
    /// Who began it.
    pub parent: Option<usize>,
    /// The step of the view's workflow that it is part of.
    pub step: Option<usize>,
}

/// A version of something.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// `RUN/fNUMBER`.
    pub id: String,
    /// Which of the view's runs it is from.
    pub run: usize,
    /// What it is.
    pub kind: EntityKind,
    /// Absolute path, or what a channel is called.
    pub path: Bytes,
    /// 0 for the state before the run.
    pub version: u32,
    /// What identifies the version, if it was taken for certain.
    pub ident: Option<Ident>,
    /// It is what was there when its run ended.
    pub last: bool,
    /// It belongs to the system or to a tool.
    pub tool: bool,
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// An index into [`View::activities`].
    Activity(usize),
    /// An index into [`View::entities`].
    Entity(usize),
}

/// An edge, in the direction in which information flowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// From what.
    pub from: End,
    /// To what.
    pub to: End,
    /// How.
    pub flow: Flow,
    /// Seen or possible.
    pub certainty: Certainty,
    /// From when to when.
    pub interval: Interval,
}

/// A program as it was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Absolute path, if it is known.
    pub path: Option<Bytes>,
    /// Arguments with the name it was called by.
    pub argv: Vec<Bytes>,
    /// Current directory.
    pub cwd: Bytes,
}

/// What is exported.
#[derive(Debug)]
pub struct View {
    /// `run ID` or the path.
    pub subject: String,
    /// The file that was asked for; none if it was a run.
    pub asked: Option<Bytes>,
    /// What the runs' files held.
    pub holdings: Holdings,
    /// How much there is of it.
    pub level: Level,
    /// The runs it is from, oldest first.
    pub runs: Vec<RunDetails>,
    /// What was done, in the order in which it began.
    pub activities: Vec<Activity>,
    /// What was used and made.
    pub entities: Vec<Entity>,
    /// What flowed where.
    pub links: Vec<Link>,
    /// The steps behind it.
    pub workflow: Workflow,
    /// Every program that ran and belongs to the subject, whatever the level.
    pub programs: Vec<Program>,
    /// The directory that steps are written from: that of the newest run.
    pub base: Bytes,
    /// Write steps that differ only in a name as one rule.
    pub generalise: bool,
    /// What the reader has to know, one sentence each.
    pub warnings: Vec<String>,
}

/// A node, wherever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Activity(ActivityKey),
    Entity(EntityKey),
}

/// What of the recordings belongs to the subject; `None`: all of it.
struct Part {
    links: HashSet<(Key, Key, Flow)>,
    activities: HashSet<ActivityKey>,
}

impl View {
    /// Reads what was asked for.
    pub fn load(store: &dyn Store, request: &Request) -> Result<View> {
        let (runs, part, subject, asked) = match &request.subject {
            Subject::Run(run) => (vec![run.clone()], None, format!("run {run}"), None),
            Subject::Path(path) => {
                let scope = Scope {
                    possible: true,
                    lookups: request.level == Level::All,
                    exclude: request.exclude.clone(),
                    ..Scope::default()
                };
                let lineage = query::ancestry(store, path, &scope)?;
                let asked = lineage.nodes.first().and_then(|node| match node {
                    Node::Entity { path, .. } => Some(path.clone()),
                    Node::Activity { .. } => None,
                });
                let subject = asked.as_deref().map(shell::quote).unwrap_or_default();
                let runs = runs_of(store, &lineage)?;
                (runs, Some(Part::of(&lineage)), subject, asked)
            }
        };
        let recordings = runs
            .iter()
            .map(|run| Recording::load(store, run))
            .collect::<backstory_workflow::Result<Vec<_>>>()?;
        let exclude = Globs::new(&request.exclude)?;
        let steps = workflow(
            &recordings,
            part.as_ref().map(|part| part.members(&recordings)).as_ref(),
            &exclude,
        );
        let mut view = View {
            subject,
            asked,
            holdings: Holdings::load(store, &runs, request.contents.as_deref())?,
            level: request.level,
            base: recordings
                .last()
                .map(|r| r.cwd().into())
                .unwrap_or_default(),
            runs: recordings.iter().map(|r| r.details.clone()).collect(),
            activities: Vec::new(),
            entities: Vec::new(),
            links: Vec::new(),
            workflow: steps,
            programs: programs(&recordings, part.as_ref()),
            generalise: request.generalise,
            warnings: Vec::new(),
        };
        view.warn();
        let mut builder = Builder {
            view: &mut view,
            recordings: &recordings,
            part: part.as_ref(),
            exclude,
            activities: HashMap::new(),
            entities: HashMap::new(),
            links: HashMap::new(),
        };
        builder.build();
        view.join_runs();
        Ok(view)
    }

    /// The workflow, or why there is none.
    pub fn steps(&self) -> Result<&Workflow> {
        if self.workflow.steps.is_empty() {
            return Err(Error::Nothing {
                subject: self.subject.clone(),
                what: "step that left a file",
                advice: "a workflow makes files; see `backstory files` for what it touched",
            });
        }
        Ok(&self.workflow)
    }

    /// The steps with what all of them have in common apart, or why there are none.
    pub fn shared(&self) -> Result<Shared> {
        Ok(Shared::of(&self.steps()?.steps))
    }

    /// The path as the steps are written: from the base, if it lies below.
    pub fn shown<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        backstory_workflow::paths::relative(path, &self.base)
    }

    /// What the reader of a format of this family has to know, one sentence each.
    pub fn warnings_for(&self, family: Family) -> Vec<String> {
        // A container runs the command as it was: what the steps leave out is in it.
        let whole = family == Family::Container;
        let mut said: Vec<String> = self
            .warnings
            .iter()
            .filter(|warning| !whole || !self.workflow.notes.contains(warning))
            .cloned()
            .collect();
        if family == Family::Workflow {
            said.extend(self.in_place());
        }
        said
    }

    /// Which files are not what they were when the steps are done again.
    fn in_place(&self) -> Option<String> {
        let files = &self.workflow.in_place;
        let named: Vec<String> = files
            .iter()
            .take(3)
            .map(|path| shell::quote(self.shown(path)))
            .collect();
        let named = named.join(", ");
        let many = files.len();
        Some(match many {
            0 => return None,
            1 => format!(
                "{named} is changed in place: the step that does it starts from what is there, not from what was there before"
            ),
            _ => format!(
                "{many} files are changed in place ({named}{}): the steps that do it start from what is there, not from what was \
                 there before",
                if many > 3 { ", …" } else { "" }
            ),
        })
    }

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

    /// The same version of a file in two runs.
    fn join_runs(&mut self) {
        let mut by_inode: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
        for (at, entity) in self.entities.iter().enumerate() {
            if let Some(ident) = entity.ident {
                by_inode.entry((ident.dev, ident.ino)).or_default().push(at);
            }
        }
        let mut links = Vec::new();
        for same in by_inode.values() {
            for (&to, &from) in same
                .iter()
                .flat_map(|to| same.iter().map(move |from| (to, from)))
            {
                let (old, new) = (&self.entities[from], &self.entities[to]);
                let (Some(was), Some(is)) = (old.ident, new.ident) else {
                    continue;
                };
                if old.run < new.run
                    && old.version > 0
                    && new.version == 0
                    && same_version(&was, &is)
                {
                    links.push(Link {
                        from: End::Entity(from),
                        to: End::Entity(to),
                        flow: Flow::Same,
                        certainty: Certainty::Seen,
                        interval: Interval {
                            start: is.mtime,
                            end: is.mtime.max(is.ctime),
                        },
                    });
                }
            }
        }
        self.links.extend(links);
    }
}

fn programs(recordings: &[Recording], part: Option<&Part>) -> Vec<Program> {
    let mut programs = Vec::new();
    for recording in recordings {
        for activity in recording
            .activities
            .iter()
            .filter(|activity| activity.epoch > 0)
        {
            let key = ActivityKey::new(recording.key, activity.id);
            if part.is_none_or(|part| part.activities.contains(&key)) {
                programs.push(Program {
                    path: activity.exec_path.clone(),
                    argv: activity.argv.clone(),
                    cwd: activity.cwd.clone(),
                });
            }
        }
    }
    programs
}

/// The runs that a lineage crosses, oldest first.
fn runs_of(store: &dyn Store, lineage: &Lineage) -> Result<Vec<String>> {
    let mut runs: BTreeMap<(Time, String), String> = BTreeMap::new();
    let mut known = HashSet::new();
    for node in &lineage.nodes {
        let (Node::Activity { run, .. } | Node::Entity { run, .. }) = node;
        if known.insert(run) {
            let record = store
                .run(run)?
                .ok_or_else(|| query::Error::NoRun(run.clone()))?;
            runs.insert((record.header.started, run.clone()), run.clone());
        }
    }
    Ok(runs.into_values().collect())
}

impl Part {
    fn of(lineage: &Lineage) -> Part {
        let key = |node: &Node| match node {
            Node::Entity { id, .. } => Key::Entity(EntityKey(*id)),
            Node::Activity { id, .. } => Key::Activity(ActivityKey(*id)),
        };
        let links = lineage.links.iter();
        let activities = lineage.nodes.iter().filter_map(|node| match node {
            Node::Activity { id, .. } => Some(ActivityKey(*id)),
            Node::Entity { .. } => None,
        });
        Part {
            links: links
                .map(|link| {
                    (
                        key(&lineage.nodes[link.from]),
                        key(&lineage.nodes[link.to]),
                        link.flow,
                    )
                })
                .collect(),
            activities: activities.collect(),
        }
    }

    fn members(&self, recordings: &[Recording]) -> HashSet<(usize, usize)> {
        let numbers: HashMap<_, _> = recordings
            .iter()
            .enumerate()
            .map(|(at, recording)| (recording.key, at))
            .collect();
        let members = self.activities.iter();
        members
            .filter_map(|key| Some((*numbers.get(&key.run())?, key.local().0 as usize)))
            .collect()
    }
}

struct Builder<'b> {
    view: &'b mut View,
    recordings: &'b [Recording],
    part: Option<&'b Part>,
    exclude: Globs,
    activities: HashMap<(usize, usize), usize>,
    entities: HashMap<(usize, usize), usize>,
    links: HashMap<(End, End, Flow), usize>,
}

impl Builder<'_> {
    fn build(&mut self) {
        self.activities();
        for run in 0..self.recordings.len() {
            self.edges(run);
            if self.view.level != Level::Command {
                self.between(run);
            }
        }
    }

    fn activities(&mut self) {
        if self.view.level == Level::Command {
            for step in 0..self.view.workflow.steps.len() {
                self.add_step(step);
            }
            return;
        }
        let mut steps = HashMap::new();
        for (at, step) in self.view.workflow.steps.iter().enumerate() {
            steps.extend(step.members.iter().map(|&member| (member, at)));
        }
        for (run, recording) in self.recordings.iter().enumerate() {
            for at in 0..recording.activities.len() {
                let key = ActivityKey::new(recording.key, recording.activities[at].id);
                let wanted = self.part.is_none_or(|part| part.activities.contains(&key));
                let bare = recording.activities[at].epoch == 0;
                if wanted
                    && (self.view.level == Level::All || !bare || self.did_something(recording, at))
                {
                    let index = self.view.activities.len();
                    self.activities.insert((run, at), index);
                    let activity = activity(recording, run, at, steps.get(&(run, at)).copied());
                    self.view.activities.push(activity);
                }
            }
        }
        for (&(run, at), &index) in &self.activities {
            let mut above = self.recordings[run].ancestors(at);
            self.view.activities[index].parent =
                above.find_map(|above| self.activities.get(&(run, above)).copied());
        }
    }

    fn did_something(&self, recording: &Recording, at: usize) -> bool {
        recording.edges[at].iter().any(|edge| {
            let moved = matches!(
                edge.relation,
                Relation::Read | Relation::Write | Relation::Rename
            );
            moved && !is_tool(&recording.entity(edge.entity).path)
        })
    }

    fn add_step(&mut self, at: usize) {
        let step = &self.view.workflow.steps[at];
        let recording = &self.recordings[step.run];
        let index = self.view.activities.len();
        for &member in &step.members {
            self.activities.insert(member, index);
        }
        let (_, root) = step.members[0];
        let first = &recording.activities[root];
        let lines: Vec<String> = step
            .lines
            .iter()
            .map(|line| line.shell(&line.cwd))
            .collect();
        let alone = step.lines.len() == 1 && !lines[0].contains(" | ");
        self.view.activities.push(Activity {
            id: format!("{}/{}", recording.details.summary.id, step.name),
            run: step.run,
            label: lines.join(" && "),
            program: first.exec_path.clone().filter(|_| alone),
            argv: if alone {
                first.argv.clone()
            } else {
                Vec::new()
            },
            cwd: step.lines[0].cwd.clone(),
            env_set: recording.environment(root).0,
            interval: Interval {
                start: step.start,
                end: step.end,
            },
            exit: step.lines.last().map(|line| line.exit),
            signal: None,
            pid: first.pid,
            epoch: first.epoch,
            parent: None,
            step: Some(at),
        });
    }

    fn keeps(
        &self,
        run: usize,
        at: usize,
        index: usize,
        entity: &backstory_graph::model::Entity,
        relation: Relation,
    ) -> bool {
        if self.exclude.matches(&entity.path) {
            return false;
        }
        match self.view.level {
            Level::All => true,
            Level::Process => {
                let moves = matches!(
                    relation,
                    Relation::Read
                        | Relation::Execute
                        | Relation::Write
                        | Relation::Rename
                        | Relation::Make
                        | Relation::Delete
                );
                moves && !is_tool(&entity.path)
            }
            Level::Command => {
                let step = &self.view.workflow.steps[index];
                debug_assert!(step.members.contains(&(run, at)));
                match relation {
                    Relation::Read | Relation::Execute => step.inputs.contains(&entity.path),
                    Relation::Write | Relation::Rename | Relation::Make => {
                        step.outputs.contains(&entity.path)
                    }
                    _ => false,
                }
            }
        }
    }

    fn edges(&mut self, run: usize) {
        let recording = &self.recordings[run];
        for at in 0..recording.activities.len() {
            let Some(&index) = self.activities.get(&(run, at)) else {
                continue;
            };
            for edge in &recording.edges[at] {
                let entity = recording.entity(edge.entity);
                if !self.keeps(run, at, index, entity, edge.relation) {
                    continue;
                }
                let flow = match edge.relation.is_use() {
                    true => Flow::Used(edge.relation),
                    false => Flow::Generated(edge.relation),
                };
                let (who, what) = (
                    Key::Activity(ActivityKey::new(recording.key, recording.activities[at].id)),
                    Key::Entity(EntityKey::new(recording.key, edge.entity)),
                );
                let (from, to) = if edge.relation.is_use() {
                    (what, who)
                } else {
                    (who, what)
                };
                let whole = self.view.level == Level::Command;
                if !whole
                    && self
                        .part
                        .is_some_and(|part| !part.links.contains(&(from, to, flow)))
                {
                    continue;
                }
                let what = End::Entity(self.entity(run, edge.entity.0 as usize));
                let who = End::Activity(index);
                let (from, to) = if edge.relation.is_use() {
                    (what, who)
                } else {
                    (who, what)
                };
                self.link(from, to, flow, edge.certainty, edge.interval);
            }
        }
    }

    /// Adds a link, or joins it with the one that is there.
    fn link(&mut self, from: End, to: End, flow: Flow, certainty: Certainty, interval: Interval) {
        if let Some(&known) = self.links.get(&(from, to, flow)) {
            let link = &mut self.view.links[known];
            link.interval.start = link.interval.start.min(interval.start);
            link.interval.end = link.interval.end.max(interval.end);
            link.certainty = link.certainty.max(certainty);
            return;
        }
        self.links.insert((from, to, flow), self.view.links.len());
        self.view.links.push(Link {
            from,
            to,
            flow,
            certainty,
            interval,
        });
    }

    fn entity(&mut self, run: usize, at: usize) -> usize {
        if let Some(&known) = self.entities.get(&(run, at)) {
            return known;
        }
        let recording = &self.recordings[run];
        let entity = &recording.entities[at];
        let index = self.view.entities.len();
        self.view.entities.push(Entity {
            id: format!("{}/f{at}", recording.details.summary.id),
            run,
            kind: entity.kind,
            path: entity.path.clone(),
            version: entity.version,
            ident: entity.ident,
            last: entity.last,
            tool: is_tool(&entity.path),
        });
        self.entities.insert((run, at), index);
        index
    }

    /// Versions from versions, activities from activities.
    fn between(&mut self, run: usize) {
        let recording = &self.recordings[run];
        for derived in &recording.derived {
            let ends = (derived.from.0 as usize, derived.entity.0 as usize);
            let known = |at| self.entities.get(&(run, at)).copied();
            if let (Some(from), Some(to)) = (known(ends.0), known(ends.1)) {
                let interval = Interval {
                    start: derived.time,
                    end: derived.time,
                };
                self.link(
                    End::Entity(from),
                    End::Entity(to),
                    Flow::Derived,
                    Certainty::Seen,
                    interval,
                );
            }
        }
        for inform in &recording.informs {
            let known = |at: u32| self.activities.get(&(run, at as usize)).copied();
            if let (Some(from), Some(to)) = (known(inform.from.0), known(inform.to.0)) {
                let interval = Interval {
                    start: inform.time,
                    end: inform.time,
                };
                self.link(
                    End::Activity(from),
                    End::Activity(to),
                    Flow::Informed(inform.why),
                    Certainty::Seen,
                    interval,
                );
            }
        }
    }
}

fn activity(recording: &Recording, run: usize, at: usize, step: Option<usize>) -> Activity {
    let activity = &recording.activities[at];
    let words: Vec<String> = activity
        .argv
        .iter()
        .map(|word| shell::quote(word))
        .collect();
    let label = match (words.is_empty(), &activity.exec_path) {
        (false, _) => words.join(" "),
        (true, Some(path)) => shell::quote(path),
        (true, None) => format!("process {}", activity.pid),
    };
    Activity {
        id: format!("{}/{at}", recording.details.summary.id),
        run,
        label,
        program: activity.exec_path.clone(),
        argv: activity.argv.clone(),
        cwd: activity.cwd.clone(),
        env_set: recording.environment(at).0,
        interval: activity.interval,
        exit: activity.exit,
        signal: activity.signal,
        pid: activity.pid,
        epoch: activity.epoch,
        parent: None,
        step,
    }
}
