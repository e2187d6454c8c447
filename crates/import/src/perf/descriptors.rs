//! The descriptors of pipes, which perf does not print.
//!
//! The kernel gives the lowest free number. So the descriptors of a process that are open tell the
//! numbers of a pipe. A result that is not the lowest free number shows that the numbers below it
//! were open before the log began.

use crate::calls::{Arg, flags};
use std::collections::{BTreeMap, HashMap};

/// Calls whose result is a new descriptor, and the position of their flags.
const MAKERS: &[(&str, Option<usize>)] = &[
    ("open", Some(1)),
    ("openat", Some(2)),
    ("openat2", None),
    ("creat", None),
    ("dup", None),
    ("socket", Some(1)),
    ("accept", None),
    ("accept4", Some(3)),
    ("memfd_create", None),
    ("eventfd2", Some(1)),
    ("epoll_create1", Some(0)),
    ("timerfd_create", Some(1)),
    ("signalfd4", Some(3)),
    ("inotify_init1", Some(0)),
    ("pidfd_open", None),
];

const CLOEXEC: i64 = libc::O_CLOEXEC as i64;
/// The most numbers below a result that are taken to be open. A program may choose a number.
const MOST: i32 = 1024;

/// The open descriptors of a process: their numbers, and whether an exec closes them.
type Open = BTreeMap<i32, bool>;

/// The open descriptors of all processes.
#[derive(Debug, Default)]
pub(super) struct DescriptorTables {
    open: HashMap<u32, Open>,
}

impl DescriptorTables {
    fn of(&mut self, pid: u32) -> &mut Open {
        let standard = || (0..3).map(|fd| (fd, false)).collect();
        self.open.entry(pid).or_insert_with(standard)
    }

    pub(super) fn forked(&mut self, parent: u32, child: u32) {
        let open = self.of(parent).clone();
        self.open.insert(child, open);
    }

    pub(super) fn executed(&mut self, pid: u32) {
        self.of(pid).retain(|_, cloexec| !*cloexec);
    }

    pub(super) fn gone(&mut self, pid: u32) {
        self.open.remove(&pid);
    }

    /// The descriptors of a pipe that the process makes.
    pub(super) fn pair(&mut self, pid: u32, cloexec: bool) -> (i32, i32) {
        let open = self.of(pid);
        let mut free = (0..).filter(|fd| !open.contains_key(fd));
        let pair = (free.next().unwrap_or(0), free.next().unwrap_or(1));
        open.insert(pair.0, cloexec);
        open.insert(pair.1, cloexec);
        pair
    }

    /// Takes a call that succeeded.
    pub(super) fn called(&mut self, pid: u32, name: &str, args: &[Arg], result: i32) {
        let raw = |at: usize| args.get(at).map_or("", Arg::raw);
        let fd = |at: usize| args.get(at).and_then(Arg::descriptor);
        let has_cloexec = |at: usize| flags(raw(at)) & CLOEXEC != 0;
        match name {
            "close" => {
                if let Some(fd) = fd(0) {
                    self.of(pid).remove(&fd);
                }
            }
            "close_range" => {
                let (from, to) = (fd(0).unwrap_or(0), fd(1).unwrap_or(i32::MAX));
                let keeps = raw(2).contains("CLOEXEC") || flags(raw(2)) & 4 != 0;
                if from <= to {
                    let open = self.of(pid);
                    open.range_mut(from..=to)
                        .for_each(|(_, cloexec)| *cloexec = true);
                    open.retain(|fd, _| keeps || !(from..=to).contains(fd));
                }
            }
            "dup2" => self.chosen(pid, result, false),
            "dup3" => self.chosen(pid, result, has_cloexec(2)),
            "fcntl" if raw(1).contains("DUPFD") => {
                self.chosen(pid, result, raw(1).contains("CLOEXEC"));
            }
            "fcntl" if raw(1).contains("SETFD") => {
                if let Some(fd) = fd(0) {
                    self.chosen(pid, fd, flags(raw(2)) & 1 != 0);
                }
            }
            _ => {
                if let Some((_, at)) = MAKERS.iter().find(|(maker, _)| *maker == name) {
                    self.lowest(pid, result, at.is_some_and(has_cloexec));
                }
            }
        }
    }

    /// The process chose the number.
    fn chosen(&mut self, pid: u32, fd: i32, cloexec: bool) {
        self.of(pid).insert(fd, cloexec);
    }

    /// The kernel gave the lowest number that was free.
    fn lowest(&mut self, pid: u32, fd: i32, cloexec: bool) {
        let open = self.of(pid);
        for below in 0..fd.min(MOST) {
            open.entry(below).or_insert(false);
        }
        open.insert(fd, cloexec);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::TextReader;

    fn call(tables: &mut DescriptorTables, name: &str, args: &str, result: i32) {
        let (args, _) = TextReader::new(args.as_bytes()).arguments();
        tables.called(7, name, &args, result);
    }

    #[test]
    fn a_pipe_gets_the_lowest_numbers_that_are_free() {
        let mut tables = DescriptorTables::default();
        assert_eq!(tables.pair(7, false), (3, 4));
        call(&mut tables, "close", "3)", 0);
        // The numbers 5 and 6 were open before the log began.
        call(
            &mut tables,
            "openat",
            "AT_FDCWD, \"a\", O_RDONLY|O_CLOEXEC)",
            3,
        );
        call(&mut tables, "openat", "AT_FDCWD, \"b\", O_RDONLY)", 7);
        assert_eq!(tables.pair(7, true), (8, 9));
        tables.forked(7, 8);
        tables.executed(7);
        assert_eq!(tables.pair(7, false), (3, 8));
        assert_eq!(tables.pair(8, false), (10, 11));
        call(&mut tables, "close_range", "3, 4294967295, 0)", 0);
        call(&mut tables, "dup2", "0, 4)", 4);
        call(&mut tables, "fcntl", "0, F_DUPFD_CLOEXEC, 5)", 5);
        assert_eq!(tables.pair(7, false), (3, 6));
    }
}
