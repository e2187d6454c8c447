//! A guarded thread in this process. Receivers of this process see its calls and those of the
//! processes that it starts.

#![allow(unsafe_code)]

use backstory_abi::{
    CallerIds, F_CALLER, F_IDENT, F_MORE, F_PREDICTED, F_RESOLVED, RESERVED, Record, op,
};
use backstory_arena::RecordSink;
use backstory_eventlog::Reason;
use backstory_files::Ident;
use backstory_guard::{
    Filter, FilterSpec, GuardSettings, Hooks, InstallError, ParkedCall, Receivers, SharedBuffers,
};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

/// An address that no `syscall` instruction of this process has.
pub const NOWHERE: u64 = 0x1234_5678_9abc;

/// A record with its parts.
#[derive(Debug, Clone)]
pub struct Seen {
    pub record: Record,
    pub caller: CallerIds,
    pub ident: Option<Ident>,
    pub body: Vec<u8>,
}

impl Seen {
    fn parse(bytes: &[u8]) -> Seen {
        let record = Record::read(bytes).unwrap();
        assert_eq!(usize::from(record.size), bytes.len());
        assert_ne!(record.flags & F_CALLER, 0);
        let mut body = &bytes[Record::SIZE..];
        let caller = CallerIds::read(body).unwrap();
        body = &body[CallerIds::SIZE..];
        let mut ident = None;
        if record.flags & F_IDENT != 0 {
            ident = Ident::read(body);
            body = &body[Ident::SIZE..];
        }
        Seen {
            record,
            caller,
            ident,
            body: body.to_vec(),
        }
    }

    /// The string with this index.
    pub fn string(&self, i: usize) -> &str {
        std::str::from_utf8(self.body.split(|b| *b == 0).nth(i).unwrap()).unwrap()
    }

    /// The concluded result. `None` if only the attempt is known.
    pub fn predicted(&self) -> Option<i32> {
        if self.record.state == RESERVED {
            return None;
        }
        assert_ne!(self.record.flags & F_PREDICTED, 0);
        Some(self.record.result)
    }

    pub fn resolved(&self) -> bool {
        self.record.flags & F_RESOLVED != 0
    }
}

#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Seen>>>);

impl Log {
    /// All records so far, in order of time.
    pub fn all(&self) -> Vec<Seen> {
        let mut seen = self.0.lock().unwrap().clone();
        seen.sort_by_key(|s| s.record.time);
        seen
    }
}

impl RecordSink for Log {
    fn append(&mut self, record: &[u8]) {
        self.0.lock().unwrap().push(Seen::parse(record));
    }
}

/// The calls of the hooks.
#[derive(Default)]
pub struct Told {
    pub announced: Mutex<Vec<(u32, u32, u32)>>,
    pub waiting: Mutex<Vec<ParkedCall>>,
    pub commits: Mutex<u32>,
    pub pid_namespaces: Mutex<u32>,
    pub notes: Mutex<Vec<Reason>>,
}

impl Hooks for Told {
    fn announce_chunk(&self, chunk: u32, pid: u32, tid: u32) {
        self.announced.lock().unwrap().push((chunk, pid, tid));
    }
    fn request_chunk(&self, parked: ParkedCall) {
        self.waiting.lock().unwrap().push(parked);
    }
    fn commit(&self, parked: ParkedCall) {
        *self.commits.lock().unwrap() += 1;
        drop(parked);
    }
    fn pid_namespace_created(&self) {
        *self.pid_namespaces.lock().unwrap() += 1;
    }
    fn report(&self, reason: Reason) {
        self.notes.lock().unwrap().push(reason);
    }
}

/// The outcome of a guarded thread.
pub struct Outcome<T> {
    pub result: T,
    pub seen: Vec<Seen>,
}

impl<T> Outcome<T> {
    /// The records of an operation on a path (its first string).
    pub fn of(&self, op: u16, path: &str) -> Vec<&Seen> {
        self.seen
            .iter()
            .filter(|s| s.record.op == op && s.string(0) == path)
            .collect()
    }

    /// The only record of an operation on a path.
    pub fn one(&self, op: u16, path: &str) -> &Seen {
        let found = self.of(op, path);
        assert_eq!(found.len(), 1, "{op} of {path} in {:#?}", self.seen);
        found[0]
    }

    /// The strings of all records of an operation by a process, as one list.
    pub fn list(&self, op: u16, pid: u32) -> Vec<String> {
        let mut bytes = Vec::new();
        for seen in self
            .seen
            .iter()
            .filter(|s| s.record.op == op && s.caller.pid == pid)
        {
            let end = seen.body.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
            bytes.extend_from_slice(&seen.body[..end]);
            if seen.record.flags & F_MORE == 0 {
                bytes.push(0);
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }
}

/// Installs a filter on a new thread and returns its listener, and a function that runs `act` on
/// that thread.
pub fn guarded<T: Send + 'static>(
    spec: FilterSpec,
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<(OwnedFd, impl FnOnce() -> T), InstallError> {
    let filter = Filter::build(&spec);
    let (listener_out, listener_in) = channel();
    let (start, started) = channel();
    let thread = std::thread::spawn(move || {
        let listener = filter.install();
        listener_out.send(listener).unwrap();
        started.recv().unwrap();
        act()
    });
    let listener = listener_in.recv().unwrap()?;
    Ok((listener, move || {
        start.send(()).unwrap();
        thread.join().unwrap()
    }))
}

/// Runs `act` on a thread whose calls are notified, and waits until its processes have ended too.
pub fn watch_with<T: Send + 'static>(
    spec: FilterSpec,
    watch: GuardSettings,
    told: Arc<Told>,
    act: impl FnOnce() -> T + Send + 'static,
) -> Outcome<T> {
    let (listener, run) = guarded(spec, act).unwrap();
    let shared = Arc::new(SharedBuffers::create().unwrap());
    let log = Log::default();
    let end = listener.try_clone().unwrap();
    let receivers = Receivers::start(listener, shared, watch, || log.clone(), told).unwrap();
    let result = run();
    let mut end = [rustix::event::PollFd::new(
        &end,
        rustix::event::PollFlags::empty(),
    )];
    rustix::event::poll(&mut end, None).unwrap();
    while !receivers.ended() {
        std::thread::yield_now();
    }
    assert!(receivers.stop());
    let seen = log.all();
    Outcome { result, seen }
}

/// The spec of a run with a gate that no code uses.
pub fn spec() -> FilterSpec {
    FilterSpec {
        gate: Some(NOWHERE),
        ..FilterSpec::default()
    }
}

/// [`watch_with`] with the default settings.
pub fn watch<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Outcome<T> {
    let watch = GuardSettings {
        gate: Some(NOWHERE),
        ..GuardSettings::default()
    };
    watch_with(spec(), watch, Arc::default(), act)
}

/// Runs a command under the guard. Returns its exit status and its output.
pub fn command(words: &[&str]) -> Outcome<(Option<i32>, String)> {
    let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    watch(move || {
        let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    })
}

/// The process that executed this path.
pub fn executor<T>(outcome: &Outcome<T>, path: &str) -> u32 {
    outcome.one(op::EXEC, path).caller.pid
}

/// A system call of this thread: result or `-errno`.
pub fn call(nr: i64, args: [usize; 5]) -> i64 {
    // SAFETY: tests pass pointers to live, NUL-terminated strings or structures, as the calls ask.
    let r = unsafe { libc::syscall(nr, args[0], args[1], args[2], args[3], args[4]) };
    if r < 0 {
        -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap())
    } else {
        r
    }
}

/// True if the program can be run here. Prints a note if not.
pub fn available(program: &[&str]) -> bool {
    let ok = Command::new(program[0])
        .args(&program[1..])
        .output()
        .is_ok_and(|o| o.status.success());
    if !ok {
        backstory_testkit::need::skipped(
            "a guarded program",
            &format!("{program:?} does not run here"),
        );
    }
    ok
}

/// The path of a static busybox. `None`, and a line that says so, if this machine has no such file.
pub fn static_busybox() -> Option<&'static str> {
    let found = backstory_testkit::busybox::busybox().and_then(std::path::Path::to_str);
    if found.is_none() {
        backstory_testkit::need::skipped("a static program", "needs a static busybox");
    }
    found
}
