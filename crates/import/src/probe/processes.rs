//! Makes activities of programs, and joins each to the one that started it.
//!
//! A forked child that executes nothing is an activity of its own, with the words of its parent.

use super::archive::ExecEpoch;
use super::operation::{Bytes, Inode, Operation, OperationData, PathArgument, TaskType};
use crate::description::{ActivityNumber, DescribedActivity, Description, Locations};
use backstory_graph::model::Informed;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A file, as the kernel numbers it.
pub(super) type FileNumber = (u32, u32, u64);

/// A program as the log has it.
#[derive(Debug)]
struct BegunProgram {
    parent: u32,
    words: Vec<Vec<u8>>,
    cwd: Vec<u8>,
    streams: [Inode; 3],
}

/// A program that is an activity.
#[derive(Debug, Clone)]
pub(super) struct KnownProgram {
    pub(super) activity: ActivityNumber,
    /// Where its relative names begin.
    pub(super) locations: Locations,
    /// The files of its standard input, output and error.
    pub(super) streams: [Option<FileNumber>; 3],
}

/// All programs of a log.
pub(super) struct KnownProcesses {
    pub(super) description: Description,
    pub(super) programs: BTreeMap<ExecEpoch, KnownProgram>,
    /// The locations of the first program.
    pub(super) locations: Locations,
}

/// Collects the processes of a log.
#[derive(Debug, Default)]
pub(super) struct ProcessReader {
    programs: BTreeMap<ExecEpoch, BegunProgram>,
    /// The program that made each process.
    makers: HashMap<u32, ExecEpoch>,
    /// Which program waited for each process, and the status.
    waits: HashMap<u32, (ExecEpoch, i32)>,
    exits: HashMap<u32, i32>,
    /// The files that programs executed last: a later exec means that the one before failed.
    executed: HashMap<ExecEpoch, PathArgument>,
    spawned: HashMap<u32, PathArgument>,
}

impl ProcessReader {
    pub(super) fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        let facts = self.makers.len() + self.waits.len() + self.exits.len();
        self.programs.len() + facts > crate::description::MOST
    }

    pub(super) fn operation(&mut self, epoch: ExecEpoch, operation: Operation) {
        match operation.data {
            OperationData::InitExecEpoch {
                parent_pid,
                argv,
                env,
                std_in,
                std_out,
                std_err,
            } => {
                let program = BegunProgram {
                    parent: process_id(parent_pid).unwrap_or_default(),
                    words: argv.into_iter().map(|word| word.0).collect(),
                    cwd: directory(&env),
                    streams: [std_in, std_out, std_err],
                };
                self.programs.entry(epoch).or_insert(program);
            }
            OperationData::Exec { path } => drop(self.executed.insert(epoch, path)),
            OperationData::Spawn { exec, child_pid } => {
                if let Some(child) = process_id(child_pid) {
                    self.makers.insert(child, epoch);
                    self.spawned.insert(child, exec.path);
                }
            }
            OperationData::Clone {
                task_type: TaskType::Pid,
                task_id,
            } => {
                if let Some(child) = process_id(task_id) {
                    self.makers.insert(child, epoch);
                }
            }
            OperationData::Wait {
                task_type: TaskType::Pid,
                task_id,
                status,
            } => {
                if let Some(child) = process_id(task_id) {
                    self.waits.insert(child, (epoch, status));
                }
            }
            OperationData::ExitProcess { status } => {
                self.exits.insert(epoch.pid, (status & 0xff) << 8);
            }
            _ => {}
        }
    }

    /// The activities of all programs. `locations` are those of the import.
    pub(super) fn finish(mut self, mut locations: Locations) -> KnownProcesses {
        let programs = std::mem::take(&mut self.programs);
        // The first program has no parent in the log.
        let ids: HashSet<u32> = programs.keys().map(|epoch| epoch.pid).collect();
        let first = programs.values().find(|one| !ids.contains(&one.parent));
        let first_cwd = first.map(|program| program.cwd.clone()).unwrap_or_default();
        locations.learn_base(&first_cwd);
        let mut known = KnownProcesses {
            description: Description::default(),
            programs: BTreeMap::new(),
            locations,
        };
        for (epoch, begun) in programs {
            let (mut own, parent) = (known.locations.clone(), begun.parent);
            if begun.cwd != first_cwd && !begun.cwd.is_empty() {
                own = own.at(&begun.cwd);
            }
            let streams = begun.streams.map(regular);
            let activity = self.activity(&mut known, epoch, begun, &mut own);
            let program = KnownProgram {
                activity,
                locations: own,
                streams,
            };
            known.programs.insert(epoch, program);
            self.makers.entry(epoch.pid).or_insert(ExecEpoch {
                pid: parent,
                number: u32::MAX,
            });
        }
        self.join(&mut known);
        known
    }

    fn activity(
        &self,
        known: &mut KnownProcesses,
        epoch: ExecEpoch,
        begun: BegunProgram,
        own: &mut Locations,
    ) -> ActivityNumber {
        let before = before(known, epoch).map(|(at, _)| at);
        let path = match before {
            Some(before) => self.executed.get(&before),
            None => self.spawned.get(&epoch.pid),
        };
        // A name without a slash was looked up in PATH.
        let name = path.and_then(|path| path.name.as_ref());
        let name = name.filter(|name| name.0.contains(&b'/'));
        known.description.activity(DescribedActivity {
            words: begun.words,
            program: name.and_then(|name| own.path(&name.0)),
            cwd: own.path(b".").unwrap_or_default(),
            pid: Some(epoch.pid),
            ..DescribedActivity::default()
        })
    }

    /// Joins programs to those that started them, and gives the last of each process its status.
    fn join(&self, known: &mut KnownProcesses) {
        let all: Vec<(ExecEpoch, ActivityNumber)> = known
            .programs
            .iter()
            .map(|(epoch, program)| (*epoch, program.activity))
            .collect();
        for (at, (epoch, activity)) in all.iter().enumerate() {
            let description = &mut known.description;
            let is_last = all
                .get(at + 1)
                .is_none_or(|(next, _)| next.pid != epoch.pid);
            if let Some((_, earlier)) = before_in(&known.programs, *epoch) {
                description.inform(earlier, *activity, Informed::Exec, None);
            } else if let Some(maker) = self.maker(&known.programs, epoch.pid) {
                description.inform(maker, *activity, Informed::Fork, None);
            }
            let wait = self.waits.get(&epoch.pid).filter(|_| is_last);
            if is_last {
                let waited = wait.map(|(_, status)| *status);
                let status = waited.or(self.exits.get(&epoch.pid).copied());
                description.activity_mut(*activity).status = status;
            }
            if let Some(waiter) = wait.and_then(|(waiter, _)| known.programs.get(waiter)) {
                description.inform(*activity, waiter.activity, Informed::Wait, None);
            }
        }
    }

    /// The program that made a process.
    fn maker(
        &self,
        programs: &BTreeMap<ExecEpoch, KnownProgram>,
        pid: u32,
    ) -> Option<ActivityNumber> {
        let maker = self.makers.get(&pid).filter(|maker| maker.pid != pid)?;
        let first = ExecEpoch {
            number: 0,
            ..*maker
        };
        let program = programs.range(first..=*maker).next_back();
        program.map(|(_, program)| program.activity)
    }
}

/// The program that a process executed before another.
fn before_in(
    programs: &BTreeMap<ExecEpoch, KnownProgram>,
    epoch: ExecEpoch,
) -> Option<(ExecEpoch, ActivityNumber)> {
    let first = ExecEpoch { number: 0, ..epoch };
    let (at, program) = programs.range(first..epoch).next_back()?;
    Some((*at, program.activity))
}

fn before(known: &KnownProcesses, epoch: ExecEpoch) -> Option<(ExecEpoch, ActivityNumber)> {
    before_in(&known.programs, epoch)
}

fn process_id(number: i64) -> Option<u32> {
    u32::try_from(number).ok().filter(|pid| *pid > 0)
}

/// The directory that a program has in its environment.
fn directory(environment: &[Bytes]) -> Vec<u8> {
    let mut found = environment
        .iter()
        .filter_map(|one| one.0.strip_prefix(b"PWD="));
    let found = found.next().filter(|path| path.starts_with(b"/"));
    found.map(<[u8]>::to_vec).unwrap_or_default()
}

/// The number of a regular file.
pub(super) fn regular(inode: Inode) -> Option<FileNumber> {
    let number = (inode.device_major, inode.device_minor, inode.number);
    (inode.file_type() == Some(libc::S_IFREG)).then_some(number)
}
