//! Requests: the units of work of a run, and the choice of those that are fed.
//!
//! In: the units that `backstory requests` lists. Out: a run from which the others were removed.
//! For a unit of a client, all behind it was removed instead.
//! Invariant: a removed connection reaches no process, and a process that only served removed
//! connections is not made.

use crate::error::Error;
use crate::made_processes::{
    Kept, bring_workers_forward, first_contact, leave_out_processes, made_processes,
};
use crate::omitted::OmittedParts;
use crate::pipe_ends;
use crate::process::{Made, RecordedProcess, ResourceStreams, TimedQueue};
use crate::random_bytes;
use crate::recorded::RecordedRun;
use crate::resource::{Origin, ResourceId};
use crate::time_spans::Windows;
use crate::unit::RecordedUnit;
use crate::window;
use backstory_ordering::SmallSort;
use std::collections::{HashMap, HashSet};

/// The unit with this number, from 1.
///
/// # Errors
/// There are fewer, or the record does not have its connection.
pub fn chosen(run: &RecordedRun, wanted: usize) -> Result<RecordedUnit, Error> {
    let missing = Error::NoRequest {
        wanted,
        found: run.units.len(),
    };
    let at = wanted.checked_sub(1);
    let found = at.and_then(|at| run.units.get(at)).ok_or(missing)?;
    found.ok_or(Error::NoConnection(wanted))
}

/// Removes all units but number `wanted` and those in `fed`, from 1. The calls between connections
/// stay. A unit of a client needs all that came before: only the record behind it is removed.
/// `first`: the process that is started.
///
/// # Errors
/// As of [`chosen`].
pub fn choose(
    run: &mut RecordedRun,
    wanted: usize,
    fed: &[usize],
    first: usize,
) -> Result<RecordedUnit, Error> {
    let unit = chosen(run, wanted)?;
    run.chosen = Some(unit);
    for process in &mut run.processes {
        process.only = Some(unit.connection);
    }
    if unit.is_client {
        window::cut(run, None, Some(unit.worked_until));
        prepare(run, &unit);
        return Ok(unit);
    }
    pipe_ends::date_writes(run);
    let choice = Choice::of(run, &unit, (wanted, fed), first);
    let devices = random_bytes::devices(&run.resources);
    for (index, process) in run.processes.iter_mut().enumerate() {
        if !choice.makes(process.pid) {
            forget(process);
            continue;
        }
        let begins = choice.begins(process);
        random_bytes::leave_out(process, &devices, begins, |id| choice.removes(id));
        leave_out_streams((index, process), &choice, begins);
        leave_out_results(process, begins, &choice.reached);
        process.omitted = OmittedParts::default();
    }
    prepare(run, &unit);
    Ok(unit)
}

/// The units that are fed for one of a server, and the connections that are removed.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The units that are fed.
    pub stay: Kept,
    /// The connections that are removed.
    gone: HashSet<ResourceId>,
    /// The process ids of the processes that are made.
    made: HashSet<u32>,
    /// When any process had its first contact.
    first_of_run: Option<u64>,
    /// The times of the units that are fed.
    pub lasting: Windows,
    /// The same, with the times between the acceptance of their connections and their first bytes.
    pub reached: Windows,
}

impl Choice {
    /// Chooses unit number `wanted` and those in `fed`. The run gets the units that are fed, and
    /// its children that are not made are marked or removed. `first`: the process that is started.
    pub fn of(
        run: &mut RecordedRun,
        unit: &RecordedUnit,
        (wanted, fed): (usize, &[usize]),
        first: usize,
    ) -> Choice {
        let fed: HashSet<usize> = fed.iter().copied().chain([wanted]).collect();
        let mut stay: Kept = HashMap::new();
        let mut all = HashSet::new();
        for (index, other) in run.units.iter().enumerate() {
            let Some(other) = other.filter(|other| !other.is_client) else {
                continue;
            };
            all.insert(other.connection);
            if fed.contains(&(index + 1)) {
                stay.entry(other.connection).or_default().push(other);
            }
        }
        keep_further_connections(run, &mut stay);
        keep_passed_connections(run, &mut stay);
        if has_all_before(run, wanted, &fed) {
            keep_silent_connections(run, unit, &mut stay);
        }
        // Connections on which nothing came have no unit.
        for process in &run.processes {
            for accepted in process.streams.values().flat_map(|s| &s.accepted) {
                if let Made::Resource(id) = accepted.made {
                    all.insert(id);
                }
            }
        }
        let gone: HashSet<ResourceId> = all
            .into_iter()
            .filter(|id| !stay.contains_key(id))
            .collect();
        run.fed = stay.values().flatten().copied().collect();
        run.fed.sort_small_by_key(|unit| unit.sent);
        leave_out_processes(run, unit.process, &gone, &stay);
        bring_workers_forward(run, &stay);
        let units = || stay.values().flatten();
        let lasting = Windows::of(units().map(|unit| (unit.began, unit.lasts)));
        let accepted = accepted_before(run, &stay);
        let reached = Windows::of(lasting.0.iter().copied().chain(accepted));
        Choice {
            first_of_run: run.processes.iter().filter_map(first_contact).min(),
            made: made_processes(run, first),
            stay,
            gone,
            lasting,
            reached,
        }
    }

    /// True if the processes with this number are made.
    pub fn makes(&self, pid: u32) -> bool {
        self.made.contains(&pid)
    }

    /// Until when a process works for its beginning. Waits before the first connection belong to
    /// the beginning of the program.
    pub fn begins(&self, process: &RecordedProcess) -> u64 {
        let own = first_contact(process);
        own.or(self.first_of_run).unwrap_or(u64::MAX)
    }

    /// Whether a resource is a removed connection or one that stays. `None`: it is something else.
    fn removes(&self, id: ResourceId) -> Option<bool> {
        match self.gone.contains(&id) {
            true => Some(true),
            false => self.stay.contains_key(&id).then_some(false),
        }
    }
}

/// Output on the connection of a unit before it only prepares it.
fn prepare(run: &mut RecordedRun, unit: &RecordedUnit) {
    let process = &mut run.processes[unit.process];
    if let Some(streams) = process.streams.get_mut(&unit.connection) {
        streams.output.prepares_until(unit.after);
    }
}

/// A unit may have further connections, over a listener that was made for it: those of FTP that
/// carry a file.
fn keep_further_connections(run: &RecordedRun, stay: &mut Kept) {
    let listener = |id: ResourceId| match run.resources[id].origin {
        Origin::Accepted(listener) => Some(listener),
        _ => None,
    };
    type Served = (usize, Option<ResourceId>);
    let mut lasting: HashMap<Served, Vec<(u64, u64)>> = HashMap::new();
    for unit in stay.values().flatten() {
        let of = lasting.entry((unit.process, listener(unit.connection)));
        of.or_default().push((unit.began, unit.ended));
    }
    let mut by_process: HashMap<usize, Vec<(Option<ResourceId>, Windows)>> = HashMap::new();
    for ((process, listener), spans) in lasting {
        let of = by_process.entry(process).or_default();
        of.push((listener, Windows::of(spans.into_iter())));
    }
    for other in run.units.iter().flatten() {
        if other.is_client || stay.contains_key(&other.connection) {
            continue;
        }
        let mut of = by_process.get(&other.process).into_iter().flatten();
        let own = listener(other.connection);
        if of.any(|(listener, windows)| *listener != own && windows.have(other.began)) {
            stay.insert(other.connection, vec![*other]);
        }
    }
}

/// The same for those that a process accepts for one below it. That one gets the descriptor, and
/// has no unit for it: a server of FTP that separates its privileges.
fn keep_passed_connections(run: &RecordedRun, stay: &mut Kept) {
    let of_units: HashSet<ResourceId> = run.units.iter().flatten().map(|u| u.connection).collect();
    let parents: HashMap<u32, u32> = run.processes.iter().map(|p| (p.pid, p.parent)).collect();
    let mut passed: HashMap<ResourceId, RecordedUnit> = HashMap::new();
    for unit in stay.values().flatten() {
        let Origin::Accepted(own) = run.resources[unit.connection].origin else {
            continue;
        };
        let above = ancestors(&parents, run.processes[unit.process].pid);
        for (index, process) in run.processes.iter().enumerate() {
            if index == unit.process || !above.contains(&process.pid) {
                continue;
            }
            let others = process.streams.iter().filter(|(id, _)| **id != own);
            for accepted in others.flat_map(|(_, streams)| &streams.accepted) {
                let within = unit.began <= accepted.time && accepted.time <= unit.lasts;
                if let Made::Resource(id) = accepted.made
                    && within
                    && !of_units.contains(&id)
                {
                    let span = (accepted.time, unit.lasts);
                    let new = || RecordedUnit::without_bytes(index, id, span);
                    // Several requests may last then: it stays for all of them.
                    let kept = passed.entry(id).or_insert_with(new);
                    kept.lasts = kept.lasts.max(unit.lasts);
                    kept.until = kept.until.max(unit.lasts);
                }
            }
        }
    }
    let passed = passed.into_iter();
    stay.extend(passed.map(|(id, unit)| (id, vec![unit])));
}

/// The process ids of a process and of those above it.
fn ancestors(parents: &HashMap<u32, u32>, pid: u32) -> HashSet<u32> {
    let mut found = HashSet::new();
    let mut next = Some(pid);
    while let Some(own) = next.filter(|own| found.insert(*own)) {
        next = parents.get(&own).copied();
    }
    found
}

/// True if there are units of servers before this one, and all of them are fed.
fn has_all_before(run: &RecordedRun, wanted: usize, fed: &HashSet<usize>) -> bool {
    let earlier = (1..wanted).zip(&run.units);
    let earlier = earlier.filter(|(_, unit)| unit.is_some_and(|unit| !unit.is_client));
    let mut earlier = earlier.peekable();
    earlier.peek().is_some() && earlier.all(|(number, _)| fed.contains(&number))
}

/// Keeps the connections without a byte that came before that of a unit. A server may make a
/// process, or take a random number, for each connection.
fn keep_silent_connections(run: &RecordedRun, unit: &RecordedUnit, stay: &mut Kept) {
    let of_units = run.units.iter().flatten().map(|other| other.connection);
    let of_units: HashSet<ResourceId> = of_units.collect();
    let programs = run.processes.iter().enumerate();
    let accepted = programs.flat_map(|(index, process)| {
        let all = process.streams.values().flat_map(|own| &own.accepted);
        all.filter_map(move |accepted| match accepted.made {
            Made::Resource(id) => Some((index, id, accepted.time)),
            Made::Failed(_) => None,
        })
    });
    let accepted: Vec<(usize, ResourceId, u64)> = accepted.collect();
    let own = accepted.iter().find(|(_, id, _)| *id == unit.connection);
    let before = own.map_or(unit.began, |(.., time)| *time);
    let silent = accepted.into_iter();
    let silent = silent.filter(|(_, id, time)| *time < before && !of_units.contains(id));
    let silent = silent.map(|(process, connection, time)| {
        let kept = RecordedUnit::without_bytes(process, connection, (time, unit.ended));
        (connection, kept)
    });
    let mut silent: HashMap<ResourceId, RecordedUnit> = silent.collect();
    for (index, process) in run.processes.iter().enumerate() {
        for id in process.used() {
            let Some(kept) = silent.get_mut(&id) else {
                continue;
            };
            if process.has_moved(id) {
                silent.remove(&id);
            } else if let Some(last) = process.last_read(id) {
                let last = last.min(unit.ended).max(kept.ended);
                kept.process = index;
                (kept.ended, kept.worked_until, kept.lasts) = (last, last, last);
            }
        }
    }
    let silent = silent.into_iter();
    stay.extend(silent.map(|(id, kept)| (id, vec![kept])));
}

/// Removes all that was recorded of a process that is not made. Its place in the list stays.
fn forget(process: &mut RecordedProcess) {
    *process = RecordedProcess {
        epoch: process.epoch,
        pid: process.pid,
        own_pid: process.own_pid,
        parent: process.parent,
        began: process.began,
        start: std::mem::take(&mut process.start),
        only: process.only,
        is_part: true,
        calls: process.calls,
        gap: process.gap.take(),
        lacks_calls: process.lacks_calls,
        ..RecordedProcess::default()
    };
}

/// Removes from the process with this index what belongs to other units.
fn leave_out_streams((own, process): (usize, &mut RecordedProcess), choice: &Choice, begins: u64) {
    let (gone, stay, lasting) = (&choice.gone, &choice.stay, &choice.lasting);
    // Waits behind the beginning belong to the units that they lie in. The wait for the first bytes
    // of a unit returned before it began.
    let lies_in = |time: u64| time < begins || lasting.have(time);
    process.streams.retain(|id, _| !gone.contains(id));
    let of_units: HashMap<ResourceId, Windows> = process
        .streams
        .keys()
        .filter_map(|id| Some((*id, Windows::of_units(stay.get(id)?, own))))
        .collect();
    // Bytes of pipes follow the same rule: the last ones may tell the program to end.
    let fits = |id: &ResourceId, time: u64| match of_units.get(id) {
        Some(windows) => windows.have(time),
        None => !gone.contains(id) && lies_in(time),
    };
    let handed_out = handed_out(process, gone);
    for (id, streams) in &mut process.streams {
        streams.input.retain(|time| fits(id, time));
        streams.output.retain(|time| fits(id, time));
        // A program that accepts until there is no connection finds none between two that stay.
        let mut is_behind = false;
        streams.accepted.retain(|accepted| match accepted.made {
            Made::Resource(id) if gone.contains(&id) => false,
            Made::Resource(_) => {
                is_behind = true;
                true
            }
            Made::Failed(errno) => errno == libc::EAGAIN && std::mem::take(&mut is_behind),
        });
    }
    // A listener is ready while a connection is left, and a wait for nothing is left out. One that
    // was ready with other descriptors is so again: the program may accept before it reads.
    process.turns.retain_mut(|turn| {
        let time = turn.time;
        let reads = |id: &ResourceId| !handed_out.contains_key(id) && fits(id, time);
        let accepts = |id: &ResourceId| {
            let all = handed_out.get(id).map_or(&[][..], Vec::as_slice);
            let next = all.partition_point(|(accepted, _)| *accepted <= time);
            all.get(next).is_some_and(|(_, stays)| *stays)
        };
        let timed_out = turn.ready.is_empty() && turn.value == 0;
        let mut all = turn.ready.iter().filter_map(|(id, _)| *id);
        let has_others = all.any(|id| reads(&id));
        turn.ready
            .retain(|(id, _)| id.is_some_and(|id| reads(&id) || has_others && accepts(&id)));
        !turn.ready.is_empty() || timed_out && lies_in(time) && time >= begins
    });
    // All programs are ended when the request has been served.
    process.is_part = true;
    process.exit = None;
    process.has_exited = false;
    process.signals.clear();
    process.handlers.clear();
    // Those of other requests say nothing about the work of a thread here.
    process.call_times.clear();
}

/// The listeners of a process, each with the times of the calls that accepted, in order. True: the
/// call got a connection that stays.
fn handed_out(
    process: &RecordedProcess,
    gone: &HashSet<ResourceId>,
) -> HashMap<ResourceId, Vec<(u64, bool)>> {
    let stays = |made: &Made| matches!(made, Made::Resource(id) if !gone.contains(id));
    let listeners = process.streams.iter().filter(|(_, own)| own.is_listener);
    let of = |(id, own): (&ResourceId, &ResourceStreams)| {
        let all = own.accepted.iter();
        let mut all: Vec<_> = all.map(|one| (one.time, stays(&one.made))).collect();
        all.sort_small();
        (*id, all)
    };
    listeners.map(of).collect()
}

/// The times between the acceptance of a connection and its first bytes.
fn accepted_before(run: &RecordedRun, stay: &Kept) -> Vec<(u64, u64)> {
    let streams = run.processes.iter().flat_map(|p| p.streams.values());
    let accepted = streams.flat_map(|streams| &streams.accepted);
    let spans = accepted.filter_map(|accepted| {
        let Made::Resource(id) = accepted.made else {
            return None;
        };
        let first = stay.get(&id)?.iter().map(|unit| unit.began).min()?;
        Some((accepted.time, first))
    });
    spans.collect()
}

/// Removes results that no unit can reach: an execution takes the first one behind the time that it
/// has reached. So those of the beginning and of the units stay, and some behind each.
fn leave_out_results(process: &mut RecordedProcess, begins: u64, reached: &Windows) {
    let reach = |time: u64| time < begins || reached.have(time);
    process.opens.values_mut().for_each(|q| thin(q, reach));
    thin(&mut process.temporary_names, reach);
    process.sockets.values_mut().for_each(|q| thin(q, reach));
    process.pairs.values_mut().for_each(|q| thin(q, reach));
    process.results.values_mut().for_each(|q| thin(q, reach));
    // Requests for random bytes have the bytes beside them, in the same order.
    let times = process.random_requests.iter().map(|(_, time)| ((), *time));
    let mut kept: TimedQueue<()> = times.collect();
    thin(&mut kept, reach);
    let kept: HashSet<u64> = kept.into_iter().map(|(_, time)| time).collect();
    process
        .random_requests
        .retain(|(_, time)| kept.contains(time));
    process.random.retain(|time| kept.contains(&time));
    process.moves.clear();
}

/// Results that stay behind each moment that an execution can reach.
const BEHIND: usize = 16;

/// Leaves out results behind so many others that an execution cannot reach. Further ones may
/// follow: the result is the same, whether a queue is thinned at once or as it grows.
pub(crate) fn thin<T>(queue: &mut TimedQueue<T>, reach: impl Fn(u64) -> bool) {
    let last = queue.len().saturating_sub(1);
    let (mut at, mut behind) = (0, BEHIND);
    queue.retain(|(_, time)| {
        behind = if reach(*time) { 0 } else { behind + 1 };
        at += 1;
        behind <= BEHIND || at > last
    });
}

#[cfg(test)]
mod tests {
    use super::{BEHIND, choose, thin};
    use crate::input::InputItem;
    use crate::output::OutputItem;
    use crate::process::{
        AcceptedConnection, Made, ReadyTurn, RecordedChild, RecordedProcess, ResourceStreams,
    };
    use crate::ready::IN;
    use crate::recorded::RecordedRun;
    use crate::resource::{Origin, Resource, ResourceId};
    use crate::unit::RecordedUnit;
    use std::collections::VecDeque;

    /// Connections of a server: the first and the third have no byte.
    const LISTENER: ResourceId = 0;
    const SILENT: ResourceId = 1;
    const ONE: ResourceId = 2;
    const SILENT_TOO: ResourceId = 3;
    const TWO: ResourceId = 4;
    const LATE: ResourceId = 5;

    /// When a server accepted a connection.
    fn accepted_at(connection: ResourceId) -> u64 {
        connection as u64 * 100
    }

    /// The request of a connection.
    fn unit(connection: ResourceId) -> RecordedUnit {
        let time = accepted_at(connection);
        RecordedUnit {
            process: 0,
            connection,
            is_client: false,
            began: time + 10,
            after: 0,
            until: u64::MAX,
            ended: time + 20,
            worked_until: time + 20,
            sent: time + 15,
            lasts: time + 20,
        }
    }

    /// A server that accepts these connections, of which two have a request.
    fn served() -> RecordedRun {
        let mut run = RecordedRun::default();
        let mut server = RecordedProcess::default();
        let mut listener = ResourceStreams {
            is_listener: true,
            ..ResourceStreams::default()
        };
        let socket = |origin| Resource::new(origin, b"", libc::S_IFSOCK);
        run.resources.push(socket(Origin::Opened));
        for connection in [SILENT, ONE, SILENT_TOO, TWO, LATE] {
            run.resources.push(socket(Origin::Accepted(LISTENER)));
            let time = accepted_at(connection);
            listener.accepted.push_back(AcceptedConnection {
                made: Made::Resource(connection),
                address: Vec::new(),
                time,
            });
            let mut streams = ResourceStreams::default();
            if [ONE, TWO].contains(&connection) {
                let (input, output) = (&mut streams.input, &mut streams.output);
                input.push_at(InputItem::Bytes(b"asked".to_vec()), time + 10);
                output.push_at(OutputItem::Bytes(b"told".to_vec()), time + 20);
                run.units.push(Some(unit(connection)));
            }
            streams.input.push_at(InputItem::End, time + 30);
            server.streams.insert(connection, streams);
        }
        server.streams.insert(LISTENER, listener);
        run.processes.push(server);
        run
    }

    /// The connections that are handed out for the second request, and the reads from each.
    fn handed_out(fed: &[usize]) -> Vec<(ResourceId, usize)> {
        let mut run = served();
        choose(&mut run, 2, fed, 0).unwrap();
        let streams = &run.processes[0].streams;
        let accepted = streams[&LISTENER].accepted.iter();
        let accepted = accepted.map(|accepted| match accepted.made {
            Made::Resource(id) => (id, streams[&id].input.len()),
            Made::Failed(errno) => panic!("{errno}"),
        });
        accepted.collect()
    }

    #[test]
    fn connections_without_a_byte_come_with_all_earlier_requests_only() {
        let all = [(SILENT, 1), (ONE, 2), (SILENT_TOO, 1), (TWO, 2)];
        assert_eq!(handed_out(&[1]), all);
        assert_eq!(handed_out(&[]), [(TWO, 2)]);
    }

    #[test]
    fn a_listener_is_ready_with_other_descriptors_before_a_connection_that_stays() {
        let ready = |connection, next| ReadyTurn {
            ready: vec![(Some(connection), IN), (Some(LISTENER), IN)],
            value: 2,
            time: accepted_at(next) - 5,
            thread: 0,
            child_ended: None,
        };
        let mut run = served();
        run.processes[0].turns = [ready(ONE, TWO), ready(TWO, LATE)].into();
        choose(&mut run, 2, &[1], 0).unwrap();
        let turns = run.processes[0].turns.iter();
        let ids = turns.map(|turn| turn.ready.iter().filter_map(|(id, _)| *id).collect());
        let ids: Vec<Vec<ResourceId>> = ids.collect();
        assert_eq!(ids, [vec![ONE, LISTENER], vec![TWO]]);
    }

    #[test]
    fn a_connection_that_a_process_accepts_for_one_below_it_stays() {
        const OTHER: ResourceId = LATE + 1;
        const PASSED: ResourceId = LATE + 2;
        const LATER: ResourceId = LATE + 3;
        let mut run = served();
        let mut listener = ResourceStreams {
            is_listener: true,
            ..ResourceStreams::default()
        };
        let socket = |origin| Resource::new(origin, b"", libc::S_IFSOCK);
        run.resources.push(socket(Origin::Socket));
        for (id, time) in [(PASSED, accepted_at(TWO) + 12), (LATER, accepted_at(LATE))] {
            run.resources.push(socket(Origin::Accepted(OTHER)));
            listener.accepted.push_back(AcceptedConnection {
                made: Made::Resource(id),
                address: Vec::new(),
                time,
            });
        }
        let mut above = RecordedProcess {
            pid: 7,
            ..RecordedProcess::default()
        };
        above.streams.insert(OTHER, listener);
        above.children.push_back(RecordedChild {
            pid: 8,
            is_made: true,
            is_aside: false,
            time: 1,
        });
        (run.processes[0].pid, run.processes[0].parent) = (8, 7);
        run.processes.push(above);
        choose(&mut run, 2, &[], 1).unwrap();
        let accepted = run.processes[1].streams[&OTHER].accepted.iter();
        let made: Vec<Made> = accepted.map(|one| one.made.clone()).collect();
        assert_eq!(made, [Made::Resource(PASSED)]);
    }

    #[test]
    fn results_near_the_reached_times_stay_and_the_last_one() {
        let mut queue: VecDeque<((), u64)> = (0..200).map(|time| ((), time)).collect();
        thin(&mut queue, |time| time < 3 || time == 100);
        let kept: Vec<u64> = queue.iter().map(|(_, time)| *time).collect();
        let behind = BEHIND as u64;
        let expected: Vec<u64> = (0..3 + behind)
            .chain(100..=100 + behind)
            .chain([199])
            .collect();
        assert_eq!(kept, expected);
    }

    #[test]
    fn results_that_are_thinned_while_they_come_are_those_of_the_whole_record() {
        let reach = |time| time < 3 || (100..105).contains(&time);
        for step in 1..40 {
            let mut queue: VecDeque<((), u64)> = VecDeque::new();
            for time in 0..200 {
                queue.push_back(((), time));
                if time % step == 0 {
                    thin(&mut queue, reach);
                }
            }
            thin(&mut queue, reach);
            let mut whole: VecDeque<((), u64)> = (0..200).map(|time| ((), time)).collect();
            thin(&mut whole, reach);
            assert_eq!(queue, whole, "{step}");
        }
    }
}
