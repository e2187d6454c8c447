//! Every reason why a record is not complete, and every warning that recording changed what a
//! program did.
//!
//! Invariant: this is the only list. A component that finds something missing reports a [`Reason`].
//! The sentence, its name and its meaning for the record stand here, and `docs/reasons.md` is
//! generated from them. A log stores the sentences.

pub mod undecoded;

use std::fmt;
use std::path::PathBuf;

pub use undecoded::UNDECODED;

/// One line of `docs/reasons.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The reason's name.
    pub name: &'static str,
    /// Its sentence. The parts that differ each time are in braces.
    pub sentence: &'static str,
    /// The part of the record that is unknown then, and what the user can do.
    pub meaning: &'static str,
}

/// The variants, their sentences and their meanings, each written once.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $field:ident : $kind:ty),* } says $sentence:literal means $meaning:literal;)*) => {
        /// A reason why a run is not complete, or a warning about it.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Reason {
            $($(#[$doc])* $name { $($(#[$of])* $field: $kind),* },)*
        }

        /// All reasons, in the order of the page.
        pub const ROWS: &[Row] = &[$(Row { name: stringify!($name), sentence: $sentence, meaning: $meaning }),*];

        impl Reason {
            /// Its name in [`ROWS`].
            pub fn name(&self) -> &'static str {
                match self {
                    $(Reason::$name { .. } => stringify!($name),)*
                }
            }
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Reason::$name { $($field),* } => write!(f, $sentence),)*
                }
            }
        }
    };
}

reasons! {
    /// No filter could be installed.
    NoFilter { /** What the kernel said. */ why: String }
        says "{why}; only calls that the recorder wraps were recorded"
        means "The kernel refused the guard's filter. An outer filter has a listener (a container runtime, another recording around this \
            one), the kernel is older than 5.19, or it refuses filters. Static programs, Go programs, direct system calls and programs of \
            other architectures are missing.";
    /// No thread for the filter.
    NoGuard { /** Why. */ error: String }
        says "cannot start the guard: {error}; only calls that the recorder wraps were recorded"
        means "As above, because no thread or descriptor was left for the guard. Raise `ulimit -u` or `ulimit -n`.";
    /// The guard lets calls continue, but does not record them.
    GuardSilent { /** Why. */ error: String }
        says "the guard did not record the calls it received: {error}"
        means "As above: the guard lets every call continue, but could not be started to record them.";
    /// The keeper can't stand in.
    KeeperWithoutListener { /** Why. */ error: String }
        says "the keeper did not receive the guard's listener: {error}"
        means "Nothing is missing yet. If the supervisor had died, no process could have responded to the guard's calls.";
    /// The supervisor was killed.
    SupervisorDied {}
        says "the supervisor died; from then on only calls that the recorder wraps were recorded"
        means "Another process killed the supervisor, which records the calls that bypass the recorder. The keeper ended the log.";
    /// The keeper was killed.
    KeeperDied {}
        says "the keeper died"
        means "Nothing is missing. The process that would have replaced a dead supervisor was killed.";
    /// Both were killed.
    BothDied {}
        says "the supervisor and the keeper died"
        means "As when the supervisor died. The launcher ended the log.";
    /// No thread for the drainer.
    NotDrained { /** Why. */ error: String }
        says "the arena was not drained while the command ran: {error}"
        means "No thread was left to move operations into the log. Operations that did not fit into shared memory are lost. Raise \
            `ulimit -u`.";
    /// No process observed the command's end.
    EndUnseen {}
        says "the command's end was not observed"
        means "The exit status is unknown, because the supervisor was killed before it observed the end.";
    /// Processes outlive the recording.
    Detached { /** How many, with their verb. */ processes: String }
        says "{processes} still running when recording stopped"
        means "The operations of these processes after `--detach-after`, or after the supervisor and the keeper died, are unknown.";
    /// The log could not be written.
    LogFailed { /** What failed. */ error: String }
        says "{error}"
        means "The log could not be written or read back (`cannot append to log …`), mostly because the disk is full. Operations that \
            did not fit are missing.";
    /// The user's policy for shells says so.
    OnlyLine {}
        says "the policy of the shell keeps only the line, not its operations"
        means "The line is one of the commands that the list `noise` in the user's `config.toml` names. Its files are unknown.";
    /// The log was removed, and another file is in its place.
    LogReplaced { /** The log. */ path: String }
        says "another process removed or replaced the log {path}: what was recorded is lost"
        means "A program of the run, or another one of the same user, removed the log or put another file in its place. Only `record` itself \
            prints this. Record as another user if a program must not reach its own record.";
    /// The log could not be given its name.
    NotFinalized { /** The log. */ path: String, /** Why. */ error: String }
        says "cannot finalize the log {path}: {error}; the next command that may write the store does it"
        means "*A warning*: the log is whole. Only `record` itself prints this, and its summary leaves the verdict open (`null`).";
    /// The log was not durable before the results.
    Unordered { /** Why. */ why: String }
        says "the log was not durable before the results: {why}"
        means "Nothing is missing. But a crash of the machine could have left a content that the record does not explain. That \
            breaks the promise of `--durability`. The disk of the log was full, failed, or did not respond in 2 s: the program \
            does not wait longer. Or a program wrote in a form that cannot be held back.";
    /// The shared memory was truncated or overwritten.
    CutShort {}
        says "a program truncated or overwrote the recording's shared memory, so operations are lost"
        means "A program of the run changed the file `/dev/shm/backstory-*.arena`, which is not its own. The operations in it are \
            missing.";
    /// Operations were counted, not logged.
    Lost { /** How many. */ operations: u64 }
        says "{operations} operations could not be logged"
        means "Shared memory or disk were full, or a program that restricts its own system calls could not get memory. Which operations \
            they were is unknown.";
    /// A warning: the deep log ended before the run.
    DeepEnded { /** Why. */ error: String }
        says "the processes are shallow from some moment on: {error}"
        means "*A warning*: the record of files is complete. The run was recorded with `--deep`, and its deep log could not be written, \
            mostly because the disk is full. The program went on. The bytes that entered and left its processes after that are unknown.";
    /// A warning: the deep log has gaps.
    DeepLost { /** How many. */ records: u64 }
        says "{records} calls are missing in the deep log"
        means "*A warning*: the record of files is complete. The run was recorded with `--deep`. No shared memory became free in \
            time: the supervisor was stopped, its disk did not respond, or the program had limited its own system calls. The processes with a gap are not deep.";
    /// A program named more things than are kept.
    TooManyStatements { /** How many are kept. */ most: u64 }
        says "programs said more about their own work than is kept: only the first {most} statements are in the graph"
        means "Programs of the run named activities, things and attributes by marks. The later ones are in the log, and not in the graph. \
            The operations of these programs are recorded all the same.";
    /// Programs that need the guard ran without it.
    Unwatched { /** Up to three, and how many more. */ programs: String }
        says "without the guard, nothing that {programs} did was recorded"
        means "The run had no guard, because of `--guard=off` or because the guard could not start. It executed programs that the \
            recorder cannot enter: static, set-user-id or of another architecture. Go programs bypass the C library.";
    /// An earlier run's verdict about a program does not hold.
    WrongVerdict { /** Up to three, and how many more. */ programs: String }
        says "an earlier run's verdict about {programs} is wrong or cannot be checked, so calls may be missing"
        means "The run was recorded with `--guard=auto`, and believed an earlier run that these programs or libraries need no filter. \
            They are examined again after the run. A program of the same user may have changed the file of verdicts \
            (`docs/security.md`), which is then removed. Or another version of the program was installed meanwhile. Or the \
            recording was killed, or the disk had no room, before the log had the result. Record again.";
    /// A set-user-id program of a recorded shell.
    RanOutside { /** Which program. */ program: String }
        says "{program} ran outside of the recording, so its files are unknown"
        means "The program has a set-user-id bit or capabilities. The broker of the recorded shell executed it with its privilege \
            (`docs/design/shell.md`). Its operations, and those of the programs that it started, are unknown.";
    /// A process may not be read.
    Unreadable { /** Which. */ pid: u32 }
        says "process {pid} is protected from being read, so its files are unknown"
        means "Its program may be executed but not read (mode 0111), or the process made itself non-dumpable (`ssh-agent`). The guard \
            could not read the names of files from its memory.";
    /// The arguments of a call could not be read in time.
    Unread {}
        says "the arguments of some system calls could not be read in time, so these calls are unknown"
        means "The names lay in memory that is filled only when it is touched: by `userfaultfd`, or from a file of a FUSE server. More \
            such calls waited at once than the guard has threads, so the guard let them continue unread.";
    /// Outcomes were not found out in time.
    SlowFileSystem {}
        says "a file system did not respond in time, so some outcomes are unknown"
        means "A network or FUSE file system hung for 2 s after the command had ended. Calls on it are `possible`.";
    /// The recording was killed.
    Killed {}
        says "the recording was killed; operations after that are unknown"
        means "All processes of the recording died at once, or the machine did. The next command ended the log with what was left.";
    /// The recording was killed, and its memory with it.
    ArenaDamaged {}
        says "the recording's shared memory was damaged, so the last operations are lost"
        means "Together with the reason above: only the log was left.";
    /// The log's last frame is missing.
    NoEnd {}
        says "the log has no end: recording was cut off"
        means "The log was copied incompletely or truncated. How the command ended is unknown.";
    /// The log is damaged.
    LogDamaged { /** What of it. */ what: String }
        says "the log is damaged: {what}"
        means "Bytes of the log were changed or lost, or threads were killed while they recorded an operation. All other operations are \
            in the graph.";
    /// The graph lacks the files of some calls.
    UnknownDirectory {}
        says "some paths start at a directory descriptor that is not in the record, so the files that they name are missing"
        means "A process used a relative path with a directory descriptor that no recorded call gave it. Only the index finds this, \
            in a run that recording called complete. It is a defect of backstory: please report it, with the program.";
    /// A watched database was not recorded for some time, or in part.
    DatabaseGap { /** What is missing, from when to when. */ what: String }
        says "the record of the database has a gap: {what}"
        means "The server ended the connection for row changes, or removed a file of its log too early. Or a transaction changed too \
            many rows. The database itself went on. The rest of the run is complete.";
    /// The tables of some statements of a watched database are unknown.
    StatementsUnparsed { /** How many, with their noun. */ statements: String, /** `it uses` or `they use`. */ they_use: &'static str }
        says "the record of the database has a gap: {statements} cannot be parsed, so the tables that {they_use} are possible at most"
        means "The server logged a statement that backstory cannot parse, as a `DO` block of PostgreSQL. Changes of rows come from \
            another source, so the gap hides none of them. The rest of the run is complete.";
    /// A watched file system was not recorded for some time, or in part.
    FileSystemGap { /** What is missing. */ what: String }
        says "the record of the file system has a gap: {what}"
        means "`watch --filesystem` could not keep up with the operations, or could not find the paths of files that were removed at \
            once. The programs themselves went on. Raise `/proc/sys/fs/fanotify/max_queued_events`. The rest of the run is complete.";
    /// A command on another machine is not recorded.
    RemoteUnrecorded { /** The machine. */ machine: String, /** Why. */ why: String }
        says "what ssh started on {machine} is not recorded: {why}"
        means "The run was recorded with `--remote`. The command on the other machine ran as without recording, and its files \
            are unknown. The rest of the run is complete.";
    /// The run of another machine is not in the store.
    RemoteAbsent { /** Its id. */ run: String, /** The machine. */ machine: String, /** Why. */ why: String }
        says "run {run} of {machine} is not in this store: {why}"
        means "ssh started a command that was recorded on the other machine. The run stays there, and `backstory index` asks for \
            it again. It can be fetched with `backstory store pull`, too.";
    /// The log of another tool does not have everything.
    ImportGap { /** What is missing. */ what: String }
        says "the imported log has a gap: {what}"
        means "The other tool did not log everything, or its log was cut. The sentence names the tool's option that changes this. The \
            rest of the log is in the graph.";
    /// A warning: times of an imported log were concluded.
    ImportedTimes { /** How. */ what: &'static str }
        says "{what}"
        means "*A warning*: no operation is missing. The order of the operations is that of the log, and their times may be wrong.";
    /// Something that can't be decoded was used.
    Undecoded { /** A name in [`UNDECODED`]. */ what: String }
        says "{what} was used, which cannot be decoded"
        means "The program's use of it is unknown. The table below lists the names.";
    /// A warning: the machine's clock was set.
    ClockSet { /** `back` or `forward`. */ which: &'static str, /** How far. */ seconds: u64 }
        says "the machine's clock was set {which} by {seconds} s during the recording; the times of the run are those of the clock before"
        means "*A warning*: nothing is missing. Files written after that have other times than the calls that wrote them. Reads of them \
            may be `possible` instead of `seen`.";
    /// A warning: a program ran without what its file would have given it.
    PrivilegeLost { /** Which program. */ program: String, /** What it lost. */ privilege: &'static str }
        says "{program} ran without its {privilege}, which recording removes unless root records; --guard=off keeps it"
        means "*A warning*: the record is complete, but the program may have failed where it would not have alone. Record as root, or \
            with `--guard=off`.";
    /// A command was recorded inside this recording.
    OtherRecording { /** Its store. */ store: String }
        says "another recording ran inside this one; the files of its command are known in {store} only"
        means "A recorded program ran `backstory record` with another store. The programs of that command were recorded there, and their \
            files are missing here. Record into the same store: its runs are joined by their files.";
    /// A warning: a program wanted a listener, which the recording has.
    ListenerRefused { /** Which program. */ program: String }
        says "the kernel refused {program} a seccomp listener (EBUSY), because the recording has one; --guard=off needs none"
        means "*A warning*: another recording, or a container runtime, ran inside this one. The kernel allows one listener.";
}

impl Reason {
    /// The reason for so many processes that outlive the recording.
    pub fn detached(count: usize) -> Reason {
        let processes = match count {
            1 => "1 process was".to_owned(),
            _ => format!("{count} processes were"),
        };
        Reason::Detached { processes }
    }

    /// Of earlier verdicts about these programs and libraries.
    pub fn wrong_verdicts(files: &[PathBuf]) -> Reason {
        const NAMED: usize = 3;
        let named = files.iter().take(NAMED);
        let named: Vec<String> = named.map(|file| file.display().to_string()).collect();
        let more = match files.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let programs = format!("{}{more}", named.join(", "));
        Reason::WrongVerdict { programs }
    }

    /// The reason for so many statements that cannot be parsed.
    pub fn unparsed(count: u64) -> Reason {
        let (statements, they_use) = match count {
            1 => ("1 statement".to_owned(), "it uses"),
            _ => (format!("{count} statements"), "they use"),
        };
        Reason::StatementsUnparsed {
            statements,
            they_use,
        }
    }

    /// Of an interface of this name in [`UNDECODED`] that a process used.
    pub fn undecoded(pid: u32, name: &[u8]) -> Reason {
        if let Some(program) = name.strip_prefix(undecoded::OUTSIDE.as_bytes()) {
            let program = String::from_utf8_lossy(program).into_owned();
            return Reason::RanOutside { program };
        }
        // The guard may not have lived to report a protected process itself.
        match name == undecoded::PROTECTED.as_bytes() {
            true => Reason::Unreadable { pid },
            false => Reason::Undecoded {
                what: String::from_utf8_lossy(name).into_owned(),
            },
        }
    }

    /// True if the record is complete, but a program may have behaved otherwise than alone.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            Reason::NotFinalized { .. }
                | Reason::ClockSet { .. }
                | Reason::ImportedTimes { .. }
                | Reason::PrivilegeLost { .. }
                | Reason::ListenerRefused { .. }
                | Reason::DeepEnded { .. }
                | Reason::DeepLost { .. }
        )
    }
}

/// The sentences of [`Reason::StatementsUnparsed`] in logs of earlier versions.
const FORMER_UNPARSED: &[&str] = &[
    "the record of the database has a gap: {statements} cannot be parsed, so the tables that they name are unknown",
];

/// True for the sentence of a gap that hides statements, and no change of a row. A log stores
/// sentences, so those of earlier versions are recognized, too.
pub fn hides_no_row(sentence: &str) -> bool {
    let rows = ROWS.iter().filter(|row| row.name == "StatementsUnparsed");
    let mut known = rows
        .map(|row| row.sentence)
        .chain(FORMER_UNPARSED.iter().copied());
    known.any(|known| is_made_of(sentence, known))
}

/// True if this is the known sentence, with any words for its parts in braces.
fn is_made_of(sentence: &str, known: &str) -> bool {
    let fixed: Vec<&str> = known.split(['{', '}']).step_by(2).collect();
    let [first, middle @ .., last] = &fixed[..] else {
        return sentence == known;
    };
    let inside = sentence.strip_prefix(*first);
    let Some(mut rest) = inside.and_then(|inside| inside.strip_suffix(*last)) else {
        return false;
    };
    middle.iter().all(|part| match rest.split_once(*part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// True if this path and these flags open the memory of a process for writing: `/proc/PID/mem` or
/// `/proc/PID/task/TID/mem`. `/proc/self/mem` is the opener's own memory.
pub fn opens_memory(path: &[u8], flags: i32) -> bool {
    const O_ACCMODE: i32 = 3;
    if flags & O_ACCMODE == 0 || !path.starts_with(b"/proc/") || !path.ends_with(b"/mem") {
        return false;
    }
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    match parts[..] {
        [_, _, process, _] => is_number(process),
        [_, _, process, b"task", thread, _] => is_number(process) && is_number(thread),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
