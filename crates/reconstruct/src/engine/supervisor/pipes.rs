//! Pipes and connections between programs: bytes come when they were written.
//!
//! Each program has streams of its own, so a reader has all its bytes from the beginning. It would
//! go on before the writer has done what it did before, and would find a file that both use in
//! another state. So the reader waits for the writer, as in the record.
//!
//! Invariant: no program waits for one that does nothing. The wait ends when no process has done
//! anything for [`LONGEST`]. It also ends after [`LONGEST_ASLEEP`] if the writer sleeps, with all
//! that it waits for. A reader of a writer that computes for ever waits as long.
//!
//! If a request runs again, this holds for pipes and pairs of sockets. Many programs are then held
//! until the end. No reader waits for such a writer, or for long if nothing happens.
//!
//! The two ends of a connection may be those of two threads of one program. Such a reader waits in
//! the same way. `turns.rs` has the rules for pipes and pairs of sockets within a program.

use super::Supervisor;
use super::processes::{Role, state_and_time};
use super::waiting::Awaited;
use crate::engine::caller::NotifiedCall;
use crate::engine::proc_texts::threads;
use crate::process::RecordedProcess;
use crate::ready::IN;
use crate::resource::ResourceId;
use libc::SYS_socketpair;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// How long a reader waits while no process does anything.
const LONGEST: Duration = Duration::from_secs(1);

/// How long it waits for a writer that sleeps, or has not been started, while others go on.
const LONGEST_ASLEEP: Duration = Duration::from_secs(10);

/// Waits in vain, before none waits any more.
const MOST_IN_VAIN: u32 = 8;

/// How long waits are held for a program that does nothing. The patience would end all before if
/// this were longer.
fn longest_held(patience: Duration) -> Duration {
    LONGEST_ASLEEP.min(patience / 2)
}

/// The bytes that a call waits for.
#[derive(Debug, Clone, Copy)]
struct AwaitedBytes {
    reader: usize,
    thread: u32,
    /// The end of the pipe that is written to.
    end: ResourceId,
    /// The position behind them in the pipe.
    behind: u64,
    /// Another thread of the reader may write them.
    by_thread: bool,
    writer: usize,
    began: Instant,
    /// The calls of all programs and their processor time, and when these were looked at.
    progress: (u64, u64),
    looked: Instant,
}

/// A program that waits are held for, with those that it waits for itself.
#[derive(Debug)]
struct HeldFor {
    /// Their calls, and their processor time when they last made none for a while.
    progress: (u64, u64),
    /// Since when they have done nothing.
    since: Instant,
    is_in_vain: bool,
}

/// The pipes of a run, and the calls that wait for their bytes.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    /// The end that is written to, by the end that is read.
    ends: HashMap<ResourceId, ResourceId>,
    /// The ends of connections that were accepted.
    connected: HashSet<ResourceId>,
    /// The programs that wrote to a resource.
    writers: HashMap<ResourceId, Vec<usize>>,
    /// By the id of the call.
    awaited: HashMap<u64, AwaitedBytes>,
    in_vain: u32,
    /// The writers that waits are held for.
    held_for: HashMap<usize, HeldFor>,
}

impl Pipes {
    /// The pipes of other parts of these programs' records, if no call waits for bytes, and none
    /// has. `None`: one does.
    pub fn untouched(&self, processes: &[RecordedProcess]) -> Option<Pipes> {
        let is_idle = self.awaited.is_empty() && self.held_for.is_empty() && self.in_vain == 0;
        is_idle.then(|| Pipes::of(processes, &[]))
    }

    /// The pipes and connections that these programs made.
    pub fn of(processes: &[RecordedProcess], connections: &[(ResourceId, ResourceId)]) -> Pipes {
        let mut pipes = Pipes::default();
        for (one, two) in connections {
            pipes.ends.extend([(*one, *two), (*two, *one)]);
            pipes.connected.extend([*one, *two]);
        }
        for (index, process) in processes.iter().enumerate() {
            for (call, made) in &process.pairs {
                for ((one, two), _) in made {
                    pipes.ends.insert(*one, *two);
                    if *call == SYS_socketpair as u16 {
                        pipes.ends.insert(*two, *one);
                    }
                }
            }
            let written = process.streams.iter();
            let written = written.filter(|(_, streams)| streams.output.remaining() > 0);
            for (id, _) in written {
                pipes.writers.entry(*id).or_default().push(index);
            }
        }
        pipes
    }

    /// The end that gets what is written to this one.
    pub fn other_end(&self, end: ResourceId) -> Option<ResourceId> {
        self.ends.get(&end).copied()
    }

    /// True if a call of this thread waits for bytes.
    pub fn awaits(&self, thread: u32) -> bool {
        self.awaited.values().any(|one| one.thread == thread)
    }

    /// A call does not wait any more: its thread makes it again.
    pub fn leave(&mut self, call: u64) {
        self.awaited.remove(&call);
    }

    /// This program, and those whose bytes it waits for, directly or through others.
    fn behind(&self, program: usize) -> Vec<usize> {
        let mut found = vec![program];
        let mut looked = 0;
        while let Some(reader) = found.get(looked).copied() {
            looked += 1;
            for one in self.awaited.values().filter(|one| one.reader == reader) {
                if !found.contains(&one.writer) {
                    found.push(one.writer);
                }
            }
        }
        found
    }

    /// A resource of which only the number was known is this one.
    pub fn rename(&mut self, from: ResourceId, to: ResourceId) {
        let writers = self.writers.remove(&from).unwrap_or_default();
        self.writers.entry(to).or_default().extend(writers);
    }
}

impl Supervisor {
    /// True if a read gets bytes, or an end, that another program has to write, or write before.
    /// `waits`: the descriptor is blocking.
    pub(super) fn awaits_bytes(
        &mut self,
        call: &NotifiedCall,
        reader: usize,
        id: ResourceId,
        waits: bool,
    ) -> bool {
        let Some(end) = self.pipes.ends.get(&id).copied() else {
            return false;
        };
        let Some(behind) = self.matchers[reader].streams(id).input.next_end(waits) else {
            return false;
        };
        let mut awaited = AwaitedBytes {
            reader,
            thread: call.tid,
            end,
            behind,
            by_thread: self.pipes.connected.contains(&end) && threads(self.group_of(call)) > 1,
            writer: reader,
            began: Instant::now(),
            progress: (0, 0),
            looked: Instant::now(),
        };
        let Some(writer) = self.owing(&awaited) else {
            return false;
        };
        if self.part.is_some() && self.goes_no_further(writer) {
            return false;
        }
        awaited.writer = writer;
        self.pipes.awaited.insert(call.id, awaited);
        true
    }

    /// True if a parked call still waits for bytes, and false if it has waited for them. This is
    /// asked after each call of any program.
    pub(super) fn still_awaits_bytes(&mut self, call: &NotifiedCall) -> Option<bool> {
        let mut awaited = self.pipes.awaited.remove(&call.id)?;
        let is_over = self.part.is_some() && self.goes_no_further(awaited.writer);
        if is_over || self.owing(&awaited) != Some(awaited.writer) {
            return Some(false);
        }
        if awaited.looked.elapsed() > LONGEST {
            if self.is_in_vain(&mut awaited) {
                let streams = self.matchers[awaited.writer].streams(awaited.end);
                streams.output.waive();
                self.pipes.in_vain += 1;
                if self.pipes.in_vain >= MOST_IN_VAIN {
                    self.pipes.ends.clear();
                }
                return Some(false);
            }
            awaited.looked = Instant::now();
        }
        self.pipes.awaited.insert(call.id, awaited);
        Some(true)
    }

    /// Of the descriptors in a wait for the kernel's own objects as well, those whose next bytes
    /// another program has to write before. A read of them would wait for that program, which may
    /// wait for what this one does when such an object is ready. Without these objects, the order
    /// of the record is enough.
    pub(super) fn unwritten(
        &mut self,
        reader: usize,
        list: &[Awaited],
        has_native: bool,
    ) -> Vec<ResourceId> {
        let mut unwritten = Vec::new();
        if self.part.is_some() || !has_native {
            return unwritten;
        }
        let input = list.iter().filter(|one| one.events & IN != 0);
        for id in input.filter_map(|one| one.resource) {
            let Some(end) = self.pipes.ends.get(&id).copied() else {
                continue;
            };
            let streams = self.matchers[reader].rest.streams.get(&id);
            let Some(behind) = streams.and_then(|own| own.input.next_end(true)) else {
                continue;
            };
            let Some(writer) = self.owing_before(end, behind, |writer| writer != reader) else {
                continue;
            };
            match self.may_still_write(writer) {
                true => unwritten.push(id),
                false => self.matchers[writer].streams(end).output.waive(),
            }
        }
        unwritten
    }

    /// False if a program, and those that it waits for, have done nothing for [`longest_held`].
    fn may_still_write(&mut self, writer: usize) -> bool {
        let programs = self.pipes.behind(writer);
        let calls: u64 = programs.iter().map(|one| self.matchers[*one].came).sum();
        let since = Instant::now();
        let held = self.pipes.held_for.entry(writer).or_insert(HeldFor {
            progress: (calls, 0),
            since,
            is_in_vain: false,
        });
        if held.progress.0 == calls && held.since.elapsed() > LONGEST {
            let own = |role: Role| matches!(role, Role::Program(one) if programs.contains(&one));
            let live = self.live.iter().filter(|(_, process)| own(process.role));
            let used = live.filter_map(|(pid, _)| Some(state_and_time(*pid)?.1));
            let used: u64 = used.sum();
            if held.progress.1 == used {
                let is_over = held.since.elapsed() > longest_held(self.patience);
                if is_over && !std::mem::replace(&mut held.is_in_vain, true) {
                    self.pipes.in_vain += 1;
                    if self.pipes.in_vain >= MOST_IN_VAIN {
                        self.pipes.ends.clear();
                    }
                }
                return !is_over;
            }
            held.progress.1 = used;
            held.since = since;
        }
        if held.progress.0 != calls {
            let progress = (calls, held.progress.1);
            *held = HeldFor {
                progress,
                since,
                is_in_vain: false,
            };
        }
        true
    }

    /// True if the next bytes of a resource are those of another one that the same program has to
    /// write before. `waits`: the reader's descriptor is blocking.
    pub(super) fn owes_itself(&self, index: usize, id: ResourceId, waits: bool) -> bool {
        let Some(end) = self.pipes.ends.get(&id) else {
            return false;
        };
        let streams = &self.matchers[index].rest.streams;
        let reader = streams.get(&id);
        let behind = reader.and_then(|reader| reader.input.next_end(waits));
        let writer = streams.get(end).map(|writer| &writer.output);
        behind
            .zip(writer)
            .is_some_and(|(behind, output)| output.owes(u64::MAX) && output.next_start() < behind)
    }

    /// A program whose recorded bytes before these have not come.
    fn owing(&self, awaited: &AwaitedBytes) -> Option<usize> {
        let may_write = |one: usize| one != awaited.reader || awaited.by_thread;
        self.owing_before(awaited.end, awaited.behind, may_write)
    }

    /// The same for the bytes before this position of an end, of the programs that `may_write`.
    fn owing_before(
        &self,
        end: ResourceId,
        behind: u64,
        may_write: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let writers = self.pipes.writers.get(&end)?;
        // By position: on a busy machine, a reader goes on long before the write returns.
        let owes = |writer: usize| {
            let streams = self.matchers[writer].rest.streams.get(&end);
            streams.is_some_and(|streams| {
                streams.output.owes(u64::MAX) && streams.output.next_start() < behind
            })
        };
        let mut all = writers.iter().copied();
        all.find(|writer| may_write(*writer) && owes(*writer))
    }

    /// True if the writer will not come. The thread that waits may be one of the writer's.
    fn is_in_vain(&self, awaited: &mut AwaitedBytes) -> bool {
        let calls = self.matchers.iter().map(|matcher| matcher.came).sum();
        let (runs, used) = self.activity(awaited.thread);
        let before = std::mem::replace(&mut awaited.progress, (calls, used));
        // In a part, a call may be looked at again until the end.
        if (self.part.is_some() || !runs) && before == awaited.progress {
            return true;
        }
        let programs = self.pipes.behind(awaited.writer);
        let mut all = self.live.iter();
        let works = all.any(|(pid, process)| {
            let Role::Program(index) = process.role else {
                return false;
            };
            programs.contains(&index) && self.may_do_something(*pid, awaited.thread)
        });
        !works && awaited.began.elapsed() > LONGEST_ASLEEP
    }

    /// Whether a process of this namespace runs, but for this one, and the processor time of all.
    /// On a busy machine, one that runs may make no call for seconds. `own`: the thread that waits.
    fn activity(&self, own: u32) -> (bool, u64) {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let (mut runs, mut sum) = (false, 0);
        let is_other = |pid: &u32| *pid != std::process::id() && !self.aside.contains(pid);
        for pid in pids.filter(is_other) {
            runs = runs || self.may_do_something(pid, own);
            sum += state_and_time(pid).map_or(0, |(_, used)| used);
        }
        (runs, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::{AwaitedBytes, Pipes, longest_held};
    use std::time::{Duration, Instant};

    /// Pipes whose readers wait: the program that reads, its thread, and the program that writes.
    fn waiting(calls: &[(usize, u32, usize)]) -> Pipes {
        let mut pipes = Pipes::default();
        for (id, (reader, thread, writer)) in (0..).zip(calls) {
            let awaited = AwaitedBytes {
                reader: *reader,
                thread: *thread,
                end: 0,
                behind: 1,
                by_thread: false,
                writer: *writer,
                began: Instant::now(),
                progress: (0, 0),
                looked: Instant::now(),
            };
            pipes.awaited.insert(id, awaited);
        }
        pipes
    }

    #[test]
    fn a_reader_waits_for_a_writer_that_waits_for_a_third_program() {
        let pipes = waiting(&[(1, 10, 2), (2, 20, 3), (4, 40, 5)]);
        assert_eq!(pipes.behind(1), [1, 2, 3]);
        assert_eq!(pipes.behind(3), [3]);
        assert!(pipes.awaits(20));
        assert!(!pipes.awaits(30));
    }

    #[test]
    fn two_readers_that_wait_for_each_other_have_nothing_else_behind_them() {
        let pipes = waiting(&[(1, 10, 2), (2, 20, 1)]);
        assert_eq!(pipes.behind(1), [1, 2]);
        assert_eq!(pipes.behind(2), [2, 1]);
    }

    #[test]
    fn waits_are_held_for_a_part_of_the_patience() {
        for (patience, held) in [(4, 2), (10, 5), (30, 10), (300, 10)] {
            let longest = longest_held(Duration::from_secs(patience));
            assert_eq!(longest, Duration::from_secs(held), "{patience} s");
        }
    }
}
