//! The parts of a log that requests need: decided on its outline, before the log is read for them.
//!
//! In: the outline of a run, and the numbers of requests. Out: what can be left out while the log
//! is read once more. Invariant: the reduction of what is left ([`crate::request::choose`]) is that
//! of the whole run. So only parts are left out that it removes for certain. Results on removed
//! connections are left out, too: no process gets these connections.
//!
//! Memory of what is left: that of the beginning of each process, and of the requests. Absent: the
//! reduction itself.

use crate::error::Error;
use crate::process::{CallObject, ReadyTurn, RecordedProcess};
use crate::random_bytes::is_random_device;
use crate::recorded::RecordedRun;
use crate::request::{Choice, chosen, thin};
use crate::resource::{Origin, Resource, ResourceId};
use std::collections::{HashMap, HashSet};

/// The requests that are fed, and what follows from them.
#[derive(Debug)]
pub(crate) struct Selection {
    choice: Choice,
    /// Until when each process works for its beginning, by its epoch.
    begins: HashMap<u64, u64>,
    /// The streams that several processes use. Their positions count from the first byte of any.
    /// Pairs of sockets between two are among them: writes there are dated by the other's reads.
    shared: HashSet<ResourceId>,
}

impl Selection {
    /// Selects request number `wanted` of a server, and those in `fed`. `first`: the process that
    /// is started.
    ///
    /// # Errors
    /// There are fewer requests, or the record does not have the connection.
    pub fn of(
        outline: &RecordedRun,
        (wanted, fed): (usize, &[usize]),
        first: usize,
    ) -> Result<Selection, Error> {
        let unit = chosen(outline, wanted)?;
        let mut run = outline.clone();
        let choice = Choice::of(&mut run, &unit, (wanted, fed), first);
        let begins = run.processes.iter();
        let begins = begins.map(|process| (process.epoch, choice.begins(process)));
        Ok(Selection {
            begins: begins.collect(),
            shared: shared(&run, &choice),
            choice,
        })
    }

    /// True if the processes with this number are made.
    pub fn makes(&self, pid: u32) -> bool {
        self.choice.makes(pid)
    }

    /// True if the bytes of a connection are needed.
    pub fn has(&self, connection: ResourceId) -> bool {
        self.choice.stay.contains_key(&connection)
    }

    /// True for a stream that several processes use.
    pub fn is_shared(&self, id: ResourceId) -> bool {
        self.shared.contains(&id)
    }

    /// Leaves out of a process what no execution of the requests reaches. Further calls of it may
    /// follow. Returns the number of items that are left, and their bytes.
    pub fn leave_out(&self, process: &mut RecordedProcess, resources: &[Resource]) -> (u64, u64) {
        let begins = self.begins.get(&process.epoch).copied();
        let begins = begins.unwrap_or(u64::MAX);
        self.leave_out_results(process, resources, begins);
        self.leave_out_turns(process, begins);
        self.leave_out_streams(process, resources, begins);
        let streams = process.streams.values();
        let bytes = streams.map(|own| own.input.remaining() + own.output.stored_bytes());
        (items(process), bytes.sum())
    }

    /// Results far behind all moments that an execution can reach. The status of children in
    /// `wait4` is looked for in the whole record. A resource of which only the number is known may
    /// become another one, which has results, too.
    fn leave_out_results(
        &self,
        process: &mut RecordedProcess,
        resources: &[Resource],
        begins: u64,
    ) {
        let reach = |time: u64| time < begins || self.choice.reached.have(time);
        process.opens.values_mut().for_each(|q| thin(q, reach));
        thin(&mut process.temporary_names, reach);
        process.sockets.values_mut().for_each(|q| thin(q, reach));
        process.pairs.values_mut().for_each(|q| thin(q, reach));
        for (key, queue) in &mut process.results {
            let is_vague =
                matches!(&key.object, CallObject::Resource(id) if resources[*id].is_vague());
            if !is_vague && key.call != libc::SYS_wait4 as u16 {
                thin(queue, reach);
            }
        }
    }

    /// Waits at other times for other things. The last one stays: a signal may belong to it.
    fn leave_out_turns(&self, process: &mut RecordedProcess, begins: u64) {
        let lies_in = |time: u64| time < begins || self.choice.lasting.have(time);
        let is_needed = |turn: &ReadyTurn| match turn.ready.is_empty() {
            true => turn.value == 0 && turn.time >= begins && lies_in(turn.time),
            false => {
                let mut ready = turn.ready.iter().filter_map(|(id, _)| *id);
                lies_in(turn.time) || ready.any(|id| self.has(id))
            }
        };
        let mut behind = process.turns.len();
        process.turns.retain(|turn| {
            behind -= 1;
            behind == 0 || is_needed(turn)
        });
    }

    /// Bytes of pipes, files and sockets at other times. Connections that stay are whole.
    fn leave_out_streams(
        &self,
        process: &mut RecordedProcess,
        resources: &[Resource],
        begins: u64,
    ) {
        let lies_in = |time: u64| time < begins || self.choice.lasting.have(time);
        for (id, streams) in &mut process.streams {
            let is_whole = self.has(*id) || self.is_shared(*id) || streams.is_listener;
            // Threads that took random bytes for other requests are looked for among all bytes.
            if is_whole || is_random_device(&resources[*id]) {
                continue;
            }
            streams.input.retain_before_last(lies_in);
            streams.output.retain_before_last(lies_in);
        }
    }
}

/// The streams that several processes use, with pairs of sockets between two of them. Removed
/// connections are not among them, and files have positions of their own.
fn shared(run: &RecordedRun, choice: &Choice) -> HashSet<ResourceId> {
    // The two ends of a pair of sockets count as one.
    let pairs: HashMap<ResourceId, ResourceId> = run.pairs.iter().copied().collect();
    let stream = |id: ResourceId| pairs.get(&id).copied().unwrap_or(id);
    let mut users: HashMap<ResourceId, HashSet<usize>> = HashMap::new();
    let is_positioned = |id: &ResourceId| {
        let resource = &run.resources[*id];
        let is_removed = matches!(resource.origin, Origin::Accepted(_));
        let stays = !is_removed || choice.stay.contains_key(id);
        stays && resource.kind != libc::S_IFREG
    };
    let mut used = HashSet::new();
    for (index, process) in run.processes.iter().enumerate() {
        for id in process.used().filter(is_positioned) {
            users.entry(stream(id)).or_default().insert(index);
            used.insert(id);
        }
    }
    used.retain(|id| users.get(&stream(*id)).is_some_and(|all| all.len() > 1));
    used
}

/// The number of recorded calls that a process still has, of the kinds that are left out.
fn items(process: &RecordedProcess) -> u64 {
    let opens = process.opens.values().map(|queue| queue.len());
    let sockets = process.sockets.values().map(|queue| queue.len());
    let pairs = process.pairs.values().map(|queue| queue.len());
    let results = process.results.values().map(|queue| queue.len());
    let streams = process.streams.values();
    let moves = streams.map(|own| 1 + own.input.len() + own.output.len());
    let others = process.turns.len() + process.temporary_names.len();
    let all = opens.chain(sockets).chain(pairs).chain(results);
    (all.chain(moves).sum::<usize>() + others) as u64
}

#[cfg(test)]
mod tests {
    use super::Selection;
    use crate::engine::{self, Options};
    use crate::process::{CallObject, RecordedProcess};
    use crate::read_log::{ReadLog, arranged};
    use crate::recorded::{RecordedRun, Scope};
    use crate::resource::{Origin, Resource, ResourceId};
    use backstory_abi::{Chunk, DeepRecord, deep};
    use backstory_deep::{Compression, DeepEnd, DeepHeader, DeepLog, DeepWriter, Role};
    use backstory_testkit::deep_records::{WrittenSection, deep_chunk, deep_record};
    use libc::c_long;
    use std::collections::{BTreeMap, HashMap, HashSet};
    use std::fmt::Debug;
    use std::fs;
    use std::path::Path;

    /// Process and thread.
    type ThreadId = (u32, u32);
    const SERVER: ThreadId = (10, 10);
    const THREAD: ThreadId = (10, 12);
    const CHILD: ThreadId = (11, 11);

    const LISTENER: i32 = 3;
    const SET: i32 = 4;
    /// A connection to another server.
    const OTHER: i32 = 7;
    const NOTHING: WrittenSection<'_> = (deep::ENTERED, b"");

    /// A record that is being written.
    #[derive(Default)]
    struct Written {
        time: u64,
        threads: BTreeMap<ThreadId, Vec<Vec<u8>>>,
    }

    impl Written {
        /// Adds a call, with bytes at one of its arguments.
        fn add(
            &mut self,
            by: ThreadId,
            head: DeepRecord,
            (arg, section): (u8, WrittenSection<'_>),
        ) {
            self.time += 1000;
            let head = DeepRecord {
                time: self.time,
                took: head.took.max(1),
                ..head
            };
            let mut record = deep_record(head, &[section]);
            record[DeepRecord::SIZE + 2] = arg;
            self.threads.entry(by).or_default().push(record);
        }

        /// A call on a descriptor, with its result and two arguments.
        fn call(&mut self, by: ThreadId, number: c_long, (fd, result): (i32, i32), a: u64, b: u64) {
            let head = head(number as u16, (fd, i64::from(result)), (a, b));
            self.add(by, head, (1, NOTHING));
        }

        fn begin(&mut self, by: ThreadId, how: u64) {
            let head = head(deep::BEGIN, (-1, 0), (how, u64::from(by.1)));
            self.add(by, head, (1, NOTHING));
        }

        fn read(&mut self, by: ThreadId, fd: i32, bytes: &str) {
            let moved = (fd, bytes.len() as i64);
            let head = head(libc::SYS_read as u16, moved, (100, 0));
            self.add(by, head, (1, (deep::ENTERED, bytes.as_bytes())));
        }

        fn write(&mut self, by: ThreadId, fd: i32, bytes: &str) {
            let moved = (fd, bytes.len() as i64);
            let head = head(libc::SYS_write as u16, moved, (bytes.len() as u64, 0));
            self.add(by, head, (1, (deep::LEFT, bytes.as_bytes())));
        }

        /// A pipe: the end that is read, and the other one.
        fn pipe(&mut self, by: ThreadId, (read, written): (i32, i32)) {
            let head = head(libc::SYS_pipe2 as u16, (-1, 0), (0, 0));
            let ends = [read.to_le_bytes(), written.to_le_bytes()].concat();
            self.add(by, head, (0, (deep::ENTERED, &ends)));
        }

        /// A write that returns as late as several later calls.
        fn write_for_long(&mut self, by: ThreadId, fd: i32, bytes: &str) {
            let length = bytes.len() as u64;
            let head = head(libc::SYS_write as u16, (fd, length as i64), (length, 0));
            let head = DeepRecord { took: 4500, ..head };
            self.add(by, head, (1, (deep::LEFT, bytes.as_bytes())));
        }

        fn random(&mut self, by: ThreadId) {
            let head = head(libc::SYS_getrandom as u16, (-1, 4), (4, 0));
            self.add(by, head, (0, (deep::ENTERED, b"rand")));
        }

        fn open(&mut self, by: ThreadId, path: &str, fd: i32) {
            let head = head(libc::SYS_open as u16, (-1, i64::from(fd)), (0, 0));
            self.add(by, head, (0, (deep::PATH, path.as_bytes())));
        }

        /// A wait that this descriptor ended, or its time.
        fn wait(&mut self, by: ThreadId, ready: Option<i32>) {
            let result = i64::from(ready.is_some());
            let head = head(libc::SYS_epoll_wait as u16, (SET, result), (0, 0));
            let events = ready.map_or_else(Vec::new, event);
            self.add(by, head, (1, (deep::ENTERED, &events)));
        }

        /// A descriptor is registered with the set.
        fn register(&mut self, by: ThreadId, fd: i32) {
            let how = (libc::EPOLL_CTL_ADD as u64, fd as u64);
            let head = head(libc::SYS_epoll_ctl as u16, (SET, 0), how);
            self.add(by, head, (3, (deep::LEFT, &event(fd))));
        }

        fn accept(&mut self, by: ThreadId, fd: i32) {
            self.wait(by, Some(LISTENER));
            self.call(by, libc::SYS_accept4, (LISTENER, fd), 0, 0);
            self.call(by, libc::SYS_accept4, (LISTENER, -libc::EAGAIN), 0, 0);
            self.call(by, libc::SYS_setsockopt, (fd, 0), 1, 2);
            self.register(by, fd);
            self.random(by);
        }

        /// Answers a request: with a file, a line of the log, and what another server says.
        fn answer(&mut self, by: ThreadId, fd: i32, name: &str) {
            self.wait(by, Some(fd));
            self.read(by, fd, &format!("GET {name}"));
            self.open(by, "/content", fd + 20);
            self.read(by, fd + 20, "what the file has");
            self.call(by, libc::SYS_close, (fd + 20, 0), 0, 0);
            self.write(by, OTHER, &format!("who is {name}?"));
            self.read(by, OTHER, &format!("{name} is one of us"));
            self.random(by);
            self.write(by, 1, &format!("{name} came\n"));
            self.write(by, fd, &format!("hello {name}"));
            self.wait(by, None);
        }

        fn close(&mut self, by: ThreadId, fd: i32) {
            self.call(by, libc::SYS_close, (fd, 0), 0, 0);
        }

        /// The log of these calls.
        fn log(&self, directory: &Path) -> DeepLog {
            let path = directory.join("log.deep");
            let mut log = DeepWriter::open(&path, &DeepHeader::default()).unwrap();
            for ((pid, tid), records) in &self.threads {
                let head = Chunk {
                    pid: *pid,
                    tid: *tid,
                    epoch: u64::from(*pid),
                    ppid: if *pid == CHILD.0 { SERVER.0 } else { 1 },
                    ..Chunk::default()
                };
                let chunk = deep_chunk(head, records);
                log.chunk(&chunk, Compression::Usual).unwrap();
            }
            log.end(&DeepEnd::default()).unwrap();
            DeepLog::open(&path).unwrap()
        }
    }

    fn head(call: u16, (fd, result): (i32, i64), (a, b): (u64, u64)) -> DeepRecord {
        DeepRecord {
            call,
            fd,
            result,
            a,
            b,
            ..DeepRecord::default()
        }
    }

    /// A `struct epoll_event` whose data is the descriptor.
    fn event(fd: i32) -> Vec<u8> {
        [&1u32.to_le_bytes()[..], &(fd as u64).to_le_bytes()].concat()
    }

    /// A server that asks another one. Two threads serve connections at the same time, or one
    /// thread and a child.
    fn server(has_threads: bool) -> Written {
        let mut all = Written::default();
        all.begin(SERVER, deep::BY_EXEC);
        all.open(SERVER, "/settings", 9);
        all.read(SERVER, 9, "some settings");
        all.call(SERVER, libc::SYS_socket, (-1, LISTENER), 2, 1);
        all.call(SERVER, libc::SYS_epoll_create1, (-1, SET), 0, 0);
        all.register(SERVER, LISTENER);
        all.call(SERVER, libc::SYS_socket, (-1, OTHER), 2, 1);
        let connected = head(libc::SYS_connect as u16, (OTHER, 0), (0, 0));
        let address: WrittenSection<'_> = (deep::ADDRESS, &[2, 0, 0, 80, 127, 0, 0, 1]);
        all.add(SERVER, connected, (1, address));
        if has_threads {
            all.begin(THREAD, deep::BY_THREAD);
        }
        let beside = if has_threads { THREAD } else { SERVER };
        for number in 0..6 {
            let (one, two) = (20 + 2 * number, 21 + 2 * number);
            all.accept(SERVER, one);
            all.accept(beside, two);
            all.answer(beside, two, &format!("second of {number}"));
            all.answer(SERVER, one, &format!("first of {number}"));
            if number % 2 == 1 {
                all.answer(beside, two, &format!("again of {number}"));
            }
            all.close(beside, two);
            all.close(SERVER, one);
        }
        if !has_threads {
            all.accept(SERVER, 40);
            all.pipe(SERVER, (60, 61));
            all.call(SERVER, libc::SYS_fork, (-1, CHILD.0 as i32), 0, 0);
            // The child has these bytes before its request, and the write returns within that.
            all.write_for_long(SERVER, 61, "go on");
            all.begin(CHILD, deep::BY_FORK);
            all.read(CHILD, 60, "go on");
            all.answer(CHILD, 40, "child");
            all.call(CHILD, libc::SYS_exit_group, (-1, 0), 0, 0);
            all.close(SERVER, 40);
            let waited = head(libc::SYS_wait4 as u16, (-1, i64::from(CHILD.0)), (0, 0));
            all.add(SERVER, waited, (1, (deep::ENTERED, &[0; 4])));
            all.accept(SERVER, 41);
            all.answer(SERVER, 41, "last");
            all.close(SERVER, 41);
        }
        all
    }

    fn sorted<T: Debug>(all: impl Iterator<Item = T>) -> Vec<String> {
        let mut all: Vec<String> = all.map(|one| format!("{one:?}")).collect();
        all.sort_unstable();
        all
    }

    /// All that an execution of requests uses. Nothing reaches a removed connection.
    fn described(run: &RecordedRun) -> Vec<String> {
        let stay: HashSet<ResourceId> = run.fed.iter().map(|unit| unit.connection).collect();
        let is_accepted = |id: ResourceId| matches!(run.resources[id].origin, Origin::Accepted(_));
        let is_removed = |object: &CallObject| match object {
            CallObject::Resource(id) => is_accepted(*id) && !stay.contains(id),
            _ => false,
        };
        let mut all = Vec::new();
        for process in &run.processes {
            let results = process.results.iter();
            all.extend(sorted(results.filter(|(key, _)| !is_removed(&key.object))));
            all.extend(sorted(process.streams.iter()));
            all.extend(sorted(process.opens.iter()));
            all.extend(sorted(process.sockets.iter()));
            all.extend(sorted(process.held.iter()));
            let rest = RecordedProcess {
                results: HashMap::new(),
                streams: HashMap::new(),
                opens: HashMap::new(),
                sockets: HashMap::new(),
                held: Vec::new(),
                // Only those of what is left are looked for.
                movers: HashMap::new(),
                moves: HashMap::new(),
                ..process.clone()
            };
            all.push(format!("{rest:?}"));
        }
        for resource in &run.resources {
            let peer = None;
            let resource = resource.clone();
            all.push(format!("{:?}", Resource { peer, ..resource }));
        }
        let rest = (&run.connections, &run.is_cut, &run.chosen, &run.fed);
        all.push(format!("{rest:?}"));
        all
    }

    #[test]
    fn a_part_that_is_read_by_itself_is_that_of_the_whole_log() {
        for has_threads in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let log = server(has_threads).log(directory.path());
            let (whole, outline) = (ReadLog::read(&log), ReadLog::outline(&log));
            assert_eq!(whole.requests, outline.requests);
            assert_eq!(whole.run.units, outline.run.units);
            let served = whole.requests.iter();
            let served = served.filter(|request| request.role == Role::Server);
            assert_eq!(served.count(), if has_threads { 15 } else { 17 });
            for wanted in 1..=whole.requests.len() {
                let before = 1..wanted;
                for fed in [
                    Vec::new(),
                    vec![1],
                    before.clone().step_by(3).collect(),
                    before.collect(),
                ] {
                    let options = Options {
                        request: Some(wanted),
                        fed,
                        ..Options::default()
                    };
                    let mut cut = whole.run.clone();
                    engine::reduce(&mut cut, &options).unwrap();
                    let part = outline.part(&log, &options).unwrap();
                    let what = format!("{has_threads} {wanted} {:?}", options.fed);
                    assert_eq!(described(&part), described(&cut), "{what}");
                }
            }
        }
    }

    #[test]
    fn a_damaged_log_has_the_same_parts_however_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.deep");
        drop(server(true).log(directory.path()));
        let bytes = fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(97) {
            let mut changed = bytes.clone();
            changed[at] ^= 0xff;
            for file in [&bytes[..at], &changed[..]] {
                fs::write(&path, file).unwrap();
                let log = DeepLog::open(&path).unwrap();
                let (whole, outline) = (ReadLog::read(&log), ReadLog::outline(&log));
                assert_eq!(whole.requests, outline.requests, "{at}");
                for wanted in 1..=whole.requests.len().min(3) {
                    let options = Options {
                        request: Some(wanted),
                        ..Options::default()
                    };
                    let mut cut = whole.run.clone();
                    let is_cut = engine::reduce(&mut cut, &options).is_ok();
                    let part = outline.part(&log, &options);
                    assert_eq!(part.is_ok(), is_cut, "{at} {wanted}");
                    if let Ok(part) = part {
                        assert_eq!(described(&part), described(&cut), "{at} {wanted}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_part_has_no_time_of_each_call() {
        let directory = tempfile::tempdir().unwrap();
        let log = server(true).log(directory.path());
        let outline = ReadLog::outline(&log);
        let mut roles = outline.requests.iter().map(|request| request.role);
        let wanted = 1 + roles.position(|role| role == Role::Server).unwrap();
        let selection = Selection::of(&outline.run, (wanted, &[]), 0).unwrap();
        let times = |scope| {
            let (run, _) = arranged(&log, scope, Vec::new());
            let threads = run.processes.iter().flat_map(|one| one.call_times.values());
            threads.map(Vec::len).sum::<usize>()
        };
        assert_eq!(times(Scope::Part(Box::new(selection))), 0);
        assert!(times(Scope::Whole) > 100);
    }

    #[test]
    fn an_outline_has_no_bytes_and_no_results_of_requests() {
        let directory = tempfile::tempdir().unwrap();
        let log = server(false).log(directory.path());
        let outline = ReadLog::outline(&log).run;
        let text = format!("{:?}", outline.processes);
        let bytes = |text: &str| format!("{:?}", text.as_bytes());
        let inner = |text: &str| bytes(text).trim_matches(['[', ']']).to_owned();
        assert!(!text.contains(&inner("GET ")) && !text.contains(&inner("some settings")));
        let server = &outline.processes[0];
        assert!(server.opens.is_empty() && server.turns.is_empty());
        let mut keys = server.results.keys();
        assert!(keys.all(|key| key.call == libc::SYS_wait4 as u16));
        // How many bytes moved is known.
        let connection = outline.units[0].unwrap().connection;
        assert!(server.received(connection) > 4 && server.sent(connection) > 6);
    }
}
