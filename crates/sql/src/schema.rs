//! The views and their columns: the one list that SQLite, the reference and the tests use.

/// The type of a column's values. Each value may be NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// A text. A path that is not UTF-8 is a BLOB with its bytes.
    Text,
    /// A whole number.
    Integer,
    /// A moment in UTC: a text such as `2026-11-23 15:40:26.123456`, which SQLite's date functions
    /// accept and which sorts by time.
    Time,
    /// 0 or 1.
    Truth,
}

impl ColumnType {
    /// The word for it in SQL and in the reference.
    pub fn word(self) -> &'static str {
        match self {
            ColumnType::Text => "TEXT",
            ColumnType::Integer => "INTEGER",
            ColumnType::Time => "DATETIME",
            ColumnType::Truth => "BOOLEAN",
        }
    }
}

/// A column of a view.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnType,
    /// Its meaning.
    pub about: &'static str,
    /// How well it selects, if the view can find the rows with a given value without reading all.
    pub key: Option<Key>,
    /// True if `SELECT *` leaves it out. It serves programs, such as those that copy a store.
    pub hidden: bool,
}

/// How many rows a key leaves, for the planner of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// One row.
    One,
    /// Some rows.
    Some,
    /// The rows of a run.
    Run,
}

impl Key {
    /// An estimate of the rows, in round numbers from recorded builds.
    pub(crate) fn rows(self) -> i64 {
        match self {
            Key::One => 1,
            Key::Some => 30,
            Key::Run => 10_000,
        }
    }
}

/// A view of the store.
#[derive(Debug)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    /// Its rows.
    pub about: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
}

const fn column(name: &'static str, kind: ColumnType, about: &'static str) -> Column {
    Column {
        name,
        kind,
        about,
        key: None,
        hidden: false,
    }
}

const fn hidden(name: &'static str, kind: ColumnType, about: &'static str) -> Column {
    Column {
        name,
        kind,
        about,
        key: None,
        hidden: true,
    }
}

const fn key(name: &'static str, kind: ColumnType, key: Key, about: &'static str) -> Column {
    Column {
        name,
        kind,
        about,
        key: Some(key),
        hidden: false,
    }
}

use ColumnType::{Integer, Text, Time, Truth};

/// All views.
pub static VIEWS: [View; 11] = [
    RUNS,
    PROCESSES,
    FILES,
    EDGES,
    STEPS,
    DERIVATIONS,
    INFORMS,
    CONNECTIONS,
    PEERS,
    FACTS,
    CHANGES,
];

const RUNS: View = View {
    name: "runs",
    about: "recorded commands",
    columns: &[
        key("run", Text, Key::One, "id"),
        column("name", Text, "given name"),
        column("note", Text, "attached note"),
        column("repeats", Text, "id of the run that it repeats"),
        column("command", Text, "command line"),
        column("cwd", Text, "working directory"),
        column("started", Time, "begin"),
        column("ended", Time, "end of the command"),
        column("exit", Integer, "exit status"),
        column("signal", Integer, "signal that ended it"),
        column("complete", Truth, "nothing was missed"),
        column("host", Text, "machine"),
        column("processes", Integer, "number of processes"),
        column("files_read", Integer, "number of files read"),
        column("files_written", Integer, "number of files written"),
        hidden("started_ns", Integer, "begin in ns since 1970"),
        hidden("since_boot_ns", Integer, "begin in ns since the boot"),
        hidden("boot", Text, "boot id of the machine"),
        hidden("uid", Integer, "user id of the command"),
        hidden("source", Text, "source of the records, if no command"),
        hidden("undone", Truth, "a repetition whose outputs were put back"),
        hidden("backstory", Text, "version of the recording program"),
    ],
};

const PROCESSES: View = View {
    name: "processes",
    about: "executed programs: one row for each program that a process executed",
    columns: &[
        key("process", Integer, Key::One, "key, unique in the store"),
        key("run", Text, Key::Run, "its run"),
        column("parent", Integer, "process that started it"),
        column("pid", Integer, "process id"),
        column("program", Text, "path of the executed file"),
        column("command", Text, "command line"),
        column("cwd", Text, "working directory at its begin"),
        column("started", Time, "begin"),
        column("ended", Time, "end"),
        column("exit", Integer, "exit status"),
        column("signal", Integer, "signal that ended it"),
        hidden("started_ns", Integer, "begin in ns since 1970"),
        hidden("ended_ns", Integer, "end in ns since 1970"),
    ],
};

const FILES: View = View {
    name: "files",
    about: "versions of files, pipes, sockets, directories and missing paths",
    columns: &[
        key("file", Integer, Key::One, "key, unique in the store"),
        key("run", Text, Key::Run, "run that used or made the version"),
        key(
            "path",
            Text,
            Key::Some,
            "absolute path, or name of a pipe or socket",
        ),
        column(
            "kind",
            Text,
            "file, directory, symlink, pipe, socket, missing and others",
        ),
        column(
            "version",
            Integer,
            "0: before the run; 1, 2: made by the run",
        ),
        column("previous", Integer, "version before it in the same run"),
        column("size", Integer, "bytes"),
        column("modified", Time, "time of the last modification"),
        column("digest", Text, "BLAKE3 of the content, if it was stored"),
        column("device", Integer, "device number"),
        column("inode", Integer, "inode number"),
        column("last", Truth, "the run left this version"),
        hidden("modified_ns", Integer, "modification in ns since 1970"),
        hidden("changed_ns", Integer, "status change in ns since 1970"),
        hidden("born_ns", Integer, "creation in ns since 1970; 0: unknown"),
        hidden(
            "aliases",
            Text,
            "other names that programs used, as words of a shell",
        ),
    ],
};

const EDGES: View = View {
    name: "edges",
    about: "uses of files by processes",
    columns: &[
        key("process", Integer, Key::Some, "process that did it"),
        key("file", Integer, Key::Some, "version that it used or made"),
        key("run", Text, Key::Run, "their run"),
        column("how", Text, "read, write, exec, stat and others"),
        column("flow", Text, "used: into the process; generated: out of it"),
        column("certainty", Text, "seen or possible"),
        column("started", Time, "first operation"),
        column("ended", Time, "last operation"),
        column("via", Text, "part of backstory that saw it"),
        hidden("started_ns", Integer, "first operation in ns since 1970"),
        hidden("ended_ns", Integer, "last operation in ns since 1970"),
    ],
};

const STEPS: View = View {
    name: "steps",
    about: "commands that a person would have written, with their files",
    columns: &[
        column("step", Text, "short name, after its first output"),
        key("run", Text, Key::Run, "its run"),
        column("command", Text, "command lines"),
        column("cwd", Text, "working directory"),
        column("started", Time, "begin of the first command"),
        column("ended", Time, "end of the last command"),
        column(
            "inputs",
            Text,
            "files that it reads: a JSON array, for json_each()",
        ),
        column("outputs", Text, "files that it makes: a JSON array"),
    ],
};

const DERIVATIONS: View = View {
    name: "derivations",
    about: "versions that the kernel made from others: renames, links, copies",
    columns: &[
        column("file", Integer, "new version"),
        column("origin", Integer, "version that it was made from"),
        column("process", Integer, "process that made it"),
        key("run", Text, Key::Run, "their run"),
        column("time", Time, "moment"),
        hidden("time_ns", Integer, "moment in ns since 1970"),
    ],
};

const INFORMS: View = View {
    name: "informs",
    about: "processes that informed others without a file between them",
    columns: &[
        column("process", Integer, "informed process"),
        column("origin", Integer, "process that informed it"),
        key("run", Text, Key::Run, "their run"),
        column("how", Text, "fork, exec, wait or signal"),
        column("time", Time, "moment"),
        hidden("time_ns", Integer, "moment in ns since 1970"),
    ],
};

const CONNECTIONS: View = View {
    name: "connections",
    about: "ends of TCP connections that dynamically linked programs and watched servers had",
    columns: &[
        column(
            "process",
            Integer,
            "process that had this end, or the session of a watched server",
        ),
        column("file", Integer, "what the client sends, in files"),
        column("reply", Integer, "what the server sends, in files"),
        key("run", Text, Key::Run, "their run"),
        column("role", Text, "client or server"),
        column("own", Text, "address and port of this end"),
        column("other", Text, "address and port of the other end"),
        column(
            "scope",
            Text,
            "where the server's address is unique: global, private or loopback",
        ),
        column(
            "began",
            Time,
            "a client began to connect, or a server had accepted; of a session: it existed then",
        ),
        hidden("began_ns", Integer, "the same in ns since 1970"),
        hidden(
            "network",
            Integer,
            "network namespace of the boot; 0: unknown",
        ),
    ],
};

const PEERS: View = View {
    name: "peers",
    about: "addresses that processes talked to or tried to: one row for each process and address",
    columns: &[
        column("process", Integer, "process that did it"),
        key("run", Text, Key::Run, "its run"),
        column("address", Text, "such as tcp:192.0.2.7:443"),
        column(
            "names",
            Text,
            "names that the address can have had: a JSON array",
        ),
        column("serves", Truth, "the process accepted connections there"),
        column("connected", Truth, "0: each attempt failed"),
        column("errno", Integer, "error of the last attempt that failed"),
        column(
            "sent",
            Integer,
            "bytes that it sent there, on connections that it closed",
        ),
        column("received", Integer, "bytes that it received there"),
        column("started", Time, "first contact"),
        column("ended", Time, "last contact"),
        hidden("started_ns", Integer, "first contact in ns since 1970"),
        hidden("ended_ns", Integer, "last contact in ns since 1970"),
    ],
};

const FACTS: View = View {
    name: "facts",
    about: "what inspectors say of the contents of files: see `backstory inspect`",
    columns: &[
        key("file", Integer, Key::Some, "version, in files"),
        key("run", Text, Key::Run, "run that used or made the version"),
        key("path", Text, Key::Some, "absolute path"),
        column("inspector", Text, "inspector that read the file"),
        column("fact", Text, "name of the fact, such as rows or authors"),
        column("value", Text, "a number, a text, or JSON for json_each()"),
        column("error", Text, "why the file could not be read"),
    ],
};

const CHANGES: View = View {
    name: "changes",
    about: "what changed inside of files, from the content before: one row for each sentence",
    columns: &[
        key("file", Integer, Key::Some, "changed version, in files"),
        key("run", Text, Key::Run, "run that used or made the version"),
        key("path", Text, Key::Some, "absolute path"),
        column("inspector", Text, "inspector that compared the contents"),
        column("change", Text, "a sentence, such as `dt` 0.1 → 0.01"),
        column("former_run", Text, "run that left the content before"),
        column("error", Text, "why the contents could not be compared"),
    ],
};

impl View {
    /// The declaration that SQLite gets.
    pub(crate) fn declaration(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                let hidden = if column.hidden { " HIDDEN" } else { "" };
                format!("\"{}\" {}{hidden}", column.name, column.kind.word())
            })
            .collect();
        format!("CREATE TABLE {}({})", self.name, columns.join(", "))
    }
}
