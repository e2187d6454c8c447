//! Uses of files that a run's log has, and the store does not:
//!
//! - the directories that processes changed into. A run may use no file of such a directory.
//! - the files that they had open for writing. A run may write nothing into such a file.
//! - the directories that they could not remove or replace because these had entries. A run may use
//!   none of these entries.
//!
//! Absent: calls that name a file from an open directory (`unlinkat`). The log has the number of
//! its descriptor only.

use std::collections::HashMap;

use backstory_eventlog::event::{Bytes, CWD, Event, Op, Pid};
use backstory_eventlog::log::Log;
use backstory_replay::plan::LoggedUses;
use backstory_store::Home;

/// Bits of the flags of an open that say whether the file is open for reading or writing.
const O_ACCMODE: i32 = 3;
/// Their value for a file that is open for reading only.
const O_RDONLY: i32 = 0;
/// The results of a call that would have removed a directory with entries.
const HAS_ENTRIES: [i32; 2] = [-39 /* ENOTEMPTY */, -17 /* EEXIST */];

/// The uses that are only in the log. A log that is gone has none.
pub fn logged(home: &Home, run: &str) -> LoggedUses {
    let Ok(log) = Log::open(home.log_path(run)) else {
        return LoggedUses::default();
    };
    uses(&log.header().cwd, log.events())
}

/// The uses of these events. `began_in`: the directory in which the command was started.
fn uses(began_in: &[u8], events: impl Iterator<Item = Event>) -> LoggedUses {
    let mut uses = LoggedUses::default();
    let mut directories = CurrentDirectories {
        began_in: began_in.into(),
        by_process: HashMap::new(),
    };
    for event in events {
        if let Some(path) = with_entries(&event) {
            uses.occupied.extend(directories.absolute(event.pid, path));
        }
        if event.outcome.failed() {
            continue;
        }
        directories.follow(&event);
        match event.op {
            Op::Chdir { now, .. } if now.starts_with(b"/") => {
                uses.entered.insert(now);
            }
            Op::Open { flags, .. } if flags & O_ACCMODE != O_RDONLY => {
                let ident = event.ident.map(|ident| (ident.dev, ident.ino));
                uses.writable.extend(ident);
            }
            _ => {}
        }
    }
    uses
}

/// The path of a directory that a call could not remove or replace because it had entries.
fn with_entries(event: &Event) -> Option<&[u8]> {
    let result = event.outcome.value()?;
    let (dir, path) = match &event.op {
        Op::Unlink {
            dir,
            path,
            directory: true,
        } if HAS_ENTRIES.contains(&result) => (*dir, path),
        // With the other result, a file may be there that was to be kept.
        Op::Rename { to_dir, to, .. } if result == HAS_ENTRIES[0] => (*to_dir, to),
        _ => return None,
    };
    (dir == CWD || path.starts_with(b"/")).then_some(&**path)
}

/// True if a path leads upwards. Links on it decide where it leads.
fn has_dots(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(|part| part == b"..")
}

/// The current directories of processes.
struct CurrentDirectories {
    began_in: Bytes,
    /// Empty: it is not known.
    by_process: HashMap<Pid, Bytes>,
}

impl CurrentDirectories {
    fn of(&self, pid: Pid) -> &Bytes {
        self.by_process.get(&pid).unwrap_or(&self.began_in)
    }

    /// Follows a call that did not fail.
    fn follow(&mut self, event: &Event) {
        let pid = event.pid;
        let (process, directory) = match (&event.op, event.outcome.value()) {
            (Op::Chdir { now, .. }, _) if now.starts_with(b"/") => (pid, now.clone()),
            (Op::Chdir { fd: CWD, path, .. }, _) if !has_dots(path) => {
                (pid, self.absolute(pid, path).unwrap_or_default())
            }
            (Op::Chdir { .. }, _) => (pid, Bytes::default()),
            (Op::Exit { .. }, _) => {
                self.by_process.remove(&pid);
                return;
            }
            // The parent may log the fork when its child has already changed its directory.
            (Op::Fork { .. }, Some(child)) => {
                let (child, directory) = (child.cast_unsigned(), self.of(pid).clone());
                self.by_process.entry(child).or_insert(directory);
                return;
            }
            // The guard reports each program of a process, and knows no directory of most.
            (Op::Born { parent, cwd, .. }, _) if cwd.is_empty() => {
                let directory = self.of(*parent).clone();
                self.by_process.entry(pid).or_insert(directory);
                return;
            }
            (Op::Born { cwd, .. }, _) => (pid, cwd.clone()),
            (Op::Start { ppid, .. }, _) if !self.by_process.contains_key(&pid) => {
                (pid, self.of(*ppid).clone())
            }
            _ => return,
        };
        self.by_process.insert(process, directory);
    }

    /// The absolute path that a process means by a path.
    fn absolute(&self, pid: Pid, path: &[u8]) -> Option<Bytes> {
        if path.starts_with(b"/") {
            return Some(path.into());
        }
        let directory = self.of(pid);
        let is_known = directory.starts_with(b"/") && !path.is_empty();
        is_known.then(|| [&directory[..], b"/", path].concat().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_eventlog::event::{Outcome, Via};

    const NOT_EMPTY: i32 = HAS_ENTRIES[0];

    fn event(pid: Pid, result: i32, op: Op) -> Event {
        Event {
            time: 0,
            pid,
            tid: pid,
            via: Via::Library,
            outcome: Outcome::Done(result),
            ident: None,
            resolved: false,
            op,
        }
    }

    fn chdir(pid: Pid, now: &str) -> Event {
        let (fd, path, now) = (-1, Bytes::default(), now.as_bytes().into());
        event(pid, 0, Op::Chdir { fd, path, now })
    }

    fn chdir_relative(pid: Pid, path: &str) -> Event {
        let (fd, path, now) = (CWD, path.as_bytes().into(), Bytes::default());
        event(pid, 0, Op::Chdir { fd, path, now })
    }

    fn fork(pid: Pid, child: i32) -> Event {
        let (flags, spawn) = (0, None);
        event(pid, child, Op::Fork { flags, spawn })
    }

    fn removal(pid: Pid, path: &str, result: i32) -> Event {
        let (dir, path, directory) = (CWD, path.as_bytes().into(), true);
        let op = Op::Unlink {
            dir,
            path,
            directory,
        };
        event(pid, result, op)
    }

    fn occupied(events: Vec<Event>) -> Vec<String> {
        let found = uses(b"/w", events.into_iter()).occupied;
        let words = |path: &Bytes| String::from_utf8_lossy(path).into_owned();
        found.iter().map(words).collect()
    }

    #[test]
    fn a_directory_that_had_entries_has_the_path_from_where_its_process_was() {
        let events = vec![
            removal(1, "first", NOT_EMPTY),
            fork(1, 2),
            chdir(2, "/v"),
            fork(2, 3),
            removal(1, "own", NOT_EMPTY),
            removal(2, "child", NOT_EMPTY),
            removal(3, "grandchild", NOT_EMPTY),
            removal(3, "/absolute", NOT_EMPTY),
            chdir_relative(3, "deep"),
            removal(3, "below", NOT_EMPTY),
            chdir_relative(3, ".."),
            removal(3, "unknown", NOT_EMPTY),
            chdir(2, ""),
            removal(2, "unknown", NOT_EMPTY),
        ];
        let expected = [
            "/absolute",
            "/v/child",
            "/v/deep/below",
            "/v/grandchild",
            "/w/first",
            "/w/own",
        ];
        assert_eq!(occupied(events), expected);
    }

    #[test]
    fn a_child_that_changes_its_directory_before_its_fork_is_logged_is_there() {
        let op = Op::Exit {
            status: 0,
            processor_time: None,
        };
        let exit = event(2, 0, op);
        let events = vec![
            chdir(2, "/v"),
            fork(1, 2),
            removal(2, "child", NOT_EMPTY),
            exit,
            fork(1, 2),
            removal(2, "next", NOT_EMPTY),
        ];
        assert_eq!(occupied(events), ["/v/child", "/w/next"]);
    }

    #[test]
    fn a_process_stays_in_its_directory_when_it_executes_a_program() {
        let born = |parent| Op::Born {
            parent,
            exe: Bytes::default(),
            cwd: Bytes::default(),
        };
        let events = vec![
            event(2, 0, born(1)),
            chdir(2, "/v"),
            event(2, 0, born(1)),
            removal(2, "full", NOT_EMPTY),
        ];
        assert_eq!(occupied(events), ["/v/full"]);
    }

    #[test]
    fn a_directory_that_was_removed_or_could_not_be_for_another_reason_had_no_entries() {
        const EACCES: i32 = 13;
        let events = vec![removal(1, "removed", 0), removal(1, "refused", -EACCES)];
        assert_eq!(occupied(events), [""; 0]);
    }

    #[test]
    fn a_directory_that_a_rename_could_not_replace_had_entries() {
        let rename = |to: &str, result| {
            let op = Op::Rename {
                from_dir: CWD,
                from: Bytes::from(&b"from"[..]),
                to_dir: CWD,
                to: to.as_bytes().into(),
                flags: 0,
            };
            event(1, result, op)
        };
        let exists = HAS_ENTRIES[1];
        let events = vec![rename("full", NOT_EMPTY), rename("file", exists)];
        assert_eq!(occupied(events), ["/w/full"]);
    }
}
