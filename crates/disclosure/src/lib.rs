//! A program says what it does, and backstory records that beside the program's system calls.
//!
//! ```
//! let epoch = backstory_disclosure::begin("train", "epoch 3");
//! backstory_disclosure::read("s3://bucket/images");
//! backstory_disclosure::write("model:3");
//! backstory_disclosure::note("loss", "0.12");
//! drop(epoch);
//! ```
//!
//! In: names of activities, and of things with a URI of the program's own. Out: marks, which the
//! recorder takes without a system call. C programs use `include/backstory.h`, which says the same.
//!
//! Guarantees: no function fails, blocks or changes the program. In a process that is not recorded,
//! each compares one variable. Statements that are too long are cut.
//!
//! Absent: uses of files, which are observed without a statement.

mod path;
mod route;

use std::sync::atomic::{AtomicU64, Ordering};

pub use path::{MarkPath, PREFIX};
pub use route::is_recorded;

/// The C header, for programs that write it where they compile.
pub const HEADER: &str = include_str!("../include/backstory.h");

/// An activity inside the present one of this process. It ends when the value is dropped.
///
/// Activities end in the reverse order of their begins. For others, see [`Span`].
#[derive(Debug)]
#[must_use = "the activity ends when this is dropped"]
pub struct Activity(());

impl Drop for Activity {
    fn drop(&mut self) {
        say(|| MarkPath::new("end"));
    }
}

/// Begins an activity inside the present one. An empty `text` is left out.
pub fn begin(what: &str, text: &str) -> Activity {
    say(|| begun(MarkPath::new("begin"), what, text));
    Activity(())
}

/// The present activity read a thing.
pub fn read(name: &str) {
    say(|| MarkPath::new("read").word(name));
}

/// The present activity made a thing, or all of its content is new.
pub fn write(name: &str) {
    say(|| MarkPath::new("write").word(name));
}

/// The present activity changed a part of a thing.
pub fn change(name: &str) {
    say(|| MarkPath::new("change").word(name));
}

/// The present activity deleted a thing.
pub fn delete(name: &str) {
    say(|| MarkPath::new("delete").word(name));
}

/// The present activity read a part of a thing, as `row=42` or `bytes=0-4095`. Others are ignored.
pub fn read_part(name: &str, part: &str) {
    say(|| MarkPath::new("read").word(name).word(part));
}

/// The present activity made a part of a thing, or all of the part's content is new.
pub fn write_part(name: &str, part: &str) {
    say(|| MarkPath::new("write").word(name).word(part));
}

/// The present activity changed some of a part of a thing.
pub fn change_part(name: &str, part: &str) {
    say(|| MarkPath::new("change").word(name).word(part));
}

/// The present activity deleted a part of a thing.
pub fn delete_part(name: &str, part: &str) {
    say(|| MarkPath::new("delete").word(name).word(part));
}

/// The present activity made the thing `name` from the thing `from`.
pub fn derive(name: &str, from: &str) {
    say(|| MarkPath::new("derive").word(name).word(from));
}

/// An attribute of the present activity.
pub fn note(key: &str, value: &str) {
    say(|| MarkPath::new("note").word(key).word(value));
}

/// An extended record of the present activity. `kind` has a dot, as `org.example.metric`.
pub fn record(kind: &str, payload: &str) {
    say(|| MarkPath::new("record").word(kind).word(payload));
}

/// An activity that may overlap with others: a request of a server. It ends when the value is
/// dropped.
///
/// Files that the process reads meanwhile count for the process. Each overlapping activity may have
/// used them.
#[derive(Debug)]
pub struct Span {
    handle: String,
}

impl Span {
    /// Begins an activity inside the present one of this process.
    pub fn begin(what: &str, text: &str) -> Span {
        Span::begin_in(None, what, text)
    }

    /// Begins an activity inside this one.
    pub fn child(&self, what: &str, text: &str) -> Span {
        Span::begin_in(Some(&self.handle), what, text)
    }

    fn begin_in(around: Option<&str>, what: &str, text: &str) -> Span {
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        let handle = format!("rust-{}", BEGUN.fetch_add(1, Ordering::Relaxed));
        say(|| {
            let mark = match around {
                Some(around) => MarkPath::inside(&[around, &handle], "begin"),
                None => MarkPath::inside(&[&handle], "begin"),
            };
            begun(mark, what, text)
        });
        Span { handle }
    }

    fn mark(&self, verb: &str) -> MarkPath {
        MarkPath::inside(&[&self.handle], verb)
    }

    /// The activity read a thing.
    pub fn read(&self, name: &str) {
        say(|| self.mark("read").word(name));
    }

    /// The activity made a thing, or all of its content is new.
    pub fn write(&self, name: &str) {
        say(|| self.mark("write").word(name));
    }

    /// The activity changed a part of a thing.
    pub fn change(&self, name: &str) {
        say(|| self.mark("change").word(name));
    }

    /// The activity deleted a thing.
    pub fn delete(&self, name: &str) {
        say(|| self.mark("delete").word(name));
    }

    /// The activity read a part of a thing.
    pub fn read_part(&self, name: &str, part: &str) {
        say(|| self.mark("read").word(name).word(part));
    }

    /// The activity made a part of a thing, or all of the part's content is new.
    pub fn write_part(&self, name: &str, part: &str) {
        say(|| self.mark("write").word(name).word(part));
    }

    /// The activity changed some of a part of a thing.
    pub fn change_part(&self, name: &str, part: &str) {
        say(|| self.mark("change").word(name).word(part));
    }

    /// The activity deleted a part of a thing.
    pub fn delete_part(&self, name: &str, part: &str) {
        say(|| self.mark("delete").word(name).word(part));
    }

    /// The activity made the thing `name` from the thing `from`.
    pub fn derive(&self, name: &str, from: &str) {
        say(|| self.mark("derive").word(name).word(from));
    }

    /// An attribute of the activity.
    pub fn note(&self, key: &str, value: &str) {
        say(|| self.mark("note").word(key).word(value));
    }

    /// An extended record of the activity. `kind` has a dot, as `org.example.metric`.
    pub fn record(&self, kind: &str, payload: &str) {
        say(|| self.mark("record").word(kind).word(payload));
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        say(|| self.mark("end"));
    }
}

fn begun(mark: MarkPath, what: &str, text: &str) -> MarkPath {
    let mark = mark.word(what);
    match text.is_empty() {
        true => mark,
        false => mark.word(text),
    }
}

fn say(mark: impl FnOnce() -> MarkPath) {
    if is_recorded() {
        route::send(&mark());
    }
}
