//! The end of the start: the first connection that is fed is handed out.
//!
//! All attempts at a request have the same start. A copy of the started programs could stand for a
//! new start, if the copies share nothing and lack nothing. Out: the calls and the time of the
//! start, and the obstacles to such a copy, if the caller asks for them.
//! `snapshot.rs` makes such copies. Invariant: the programs are looked at, and stay as they are.

use super::Supervisor;
use super::processes::state_and_time;
use crate::engine::proc_texts::{field, open_flags, threads};
use crate::resource::ResourceId;
use crate::verdict::ProgramStart;
use backstory_sys as sys;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

impl Supervisor {
    /// A program reads from this resource.
    pub(super) fn start_may_end(&mut self, id: ResourceId) {
        if self.part.as_ref().is_some_and(|part| part.starts_until(id)) {
            self.end_start();
        }
    }

    /// A connection is handed out. All that remain in the record are fed.
    pub(super) fn end_start(&mut self) {
        let part = self.part.as_ref().filter(|part| part.start.is_none());
        let Some(lists) = part.map(|part| part.lists_obstacles) else {
            return;
        };
        let start = ProgramStart {
            calls: self.calls_so_far(),
            took: self.took(),
            obstacles: match lists {
                true => self.obstacles().into_iter().collect(),
                false => Vec::new(),
            },
        };
        if let Some(part) = &mut self.part {
            part.start = Some(start);
        }
    }

    /// Ns since the first program began.
    pub(super) fn took(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Calls that came, of all programs with a deep record.
    pub(super) fn calls_so_far(&self) -> u64 {
        self.matchers.iter().map(|matcher| matcher.came).sum()
    }

    /// True if nothing is seen that forbids a copy of the programs as they are now.
    pub(super) fn lacks_obstacles(&self) -> bool {
        self.obstacles().is_empty()
    }

    /// The obstacles to a copy of the programs as they are now.
    fn obstacles(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        if self.has_tool {
            found.insert("a tool runs the program".to_owned());
        }
        // `SEM_UNDO`, and memory that is not attached. The first line names the columns.
        for kind in ["shm", "sem", "msg"] {
            let text = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
            if text.lines().count() > 1 {
                found.insert(format!("an object of sysvipc(7): {kind}"));
            }
        }
        let lives = |pid: &u32| {
            let state = state_and_time(*pid).map(|(state, _)| state);
            state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
        };
        let mut processes = sys::process_tree::descendants_of(std::process::id());
        let all = processes.len();
        processes.retain(lives);
        if processes.len() < all {
            found.insert("a child that has ended".to_owned());
        }
        if processes.len() > 1 {
            found.insert(format!("{} processes", processes.len()));
        }
        for pid in processes {
            let threads = threads(pid);
            if threads > 1 {
                found.insert(format!("{threads} threads"));
            }
            // The file is missing on kernels without checkpoints.
            let timers = fs::read(format!("/proc/{pid}/timers")).unwrap_or_default();
            if !timers.is_empty() {
                found.insert("a timer".to_owned());
            }
            match fs::read(format!("/proc/{pid}/smaps")) {
                Ok(smaps) => found.extend(of_memory(&String::from_utf8_lossy(&smaps))),
                Err(_) => {
                    found.insert("memory that cannot be looked at".to_owned());
                }
            }
            found.extend(self.of_descriptors(pid));
        }
        found
    }

    /// The obstacles among the descriptors of a process. Stand-ins have no state: the record has.
    fn of_descriptors(&self, pid: u32) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let root = fs::metadata("/").map(|root| root.dev()).ok();
        let all = fs::read_dir(format!("/proc/{pid}/fd"));
        for entry in all.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.parse::<i32>().ok());
            let (Some(fd), Ok(link)) = (number, fs::read_link(entry.path())) else {
                continue;
            };
            if self.stand_ins.of(pid, fd).is_some() {
                continue;
            }
            let about = fs::metadata(entry.path()).ok();
            let is_file = about.as_ref().is_some_and(fs::Metadata::is_file);
            // If an attempt writes into such a file, the state of the root tells the next one.
            let is_seen = about.is_some_and(|about| Some(about.dev()) == root && about.nlink() > 0);
            let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
            let kind = (is_file, is_seen);
            found.extend(of_descriptor(&link.to_string_lossy(), &info, kind));
        }
        found
    }
}

/// The mappings that copies would share, or would lack. `smaps`: the text of `/proc/PID/smaps`.
fn of_memory(smaps: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut name = String::new();
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("VmFlags:") => {
                for flag in words {
                    match flag {
                        "sh" => found.insert(format!("shared memory{name}")),
                        "dc" | "wf" => found.insert(format!("memory that a copy lacks{name}")),
                        "lo" => found.insert(format!("locked memory{name}")),
                        _ => false,
                    };
                }
            }
            // A mapping begins: its address, four columns, and its file, if any.
            Some(first) if !first.ends_with(':') => {
                let path: Vec<&str> = words.skip(4).collect();
                name = match path.is_empty() {
                    true => String::new(),
                    false => format!(": {}", path.join(" ")),
                };
            }
            _ => {}
        }
    }
    found
}

/// The obstacle that a descriptor is, if it is one. The position in a file can be put back, but no
/// content. A set of epoll has members in the kernel, or none but stand-ins. `link`, `info`: its
/// link in `/proc/PID/fd`, and its text in `/proc/PID/fdinfo`. `kind`: it is a regular file, and
/// one with a name in the root.
fn of_descriptor(link: &str, info: &str, kind: (bool, bool)) -> Option<String> {
    let (is_file, is_seen) = kind;
    if field(info, "lock").is_some() {
        return Some(format!("a lock on {link}"));
    }
    if is_file {
        let is_read_only =
            open_flags(info).is_some_and(|flags| flags & libc::O_ACCMODE as u32 == 0);
        return (!is_read_only && !is_seen)
            .then(|| format!("a file that is open for writing: {link}"));
    }
    let (kind, rest) = link.split_once(':')?;
    let name = match kind {
        "anon_inode" if rest == "[eventpoll]" && field(info, "tfd").is_none() => return None,
        "anon_inode" => rest.trim_start_matches('[').trim_end_matches(']'),
        "pipe" | "socket" => kind,
        _ => return None,
    };
    Some(format!("an object of the kernel: {name}"))
}

#[cfg(test)]
mod tests {
    use super::{of_descriptor, of_memory};

    #[test]
    fn memory_that_a_copy_shares_or_lacks_is_an_obstacle_and_other_memory_is_not() {
        let smaps = "\
55d0a000-55d0b000 r-xp 00000000 08:01 42 /usr/bin/a server
Rss:                   4 kB
VmFlags: rd ex mr mw me
7f000000-7f001000 r--s 00000000 08:01 43 /usr/lib/cache
Size:                  4 kB
VmFlags: rd mr me ms
7f100000-7f101000 rw-s 00000000 00:01 44 /dev/zero (deleted)
VmFlags: rd wr sh mr mw me ms sd
7f200000-7f201000 rw-p 00000000 00:00 0
VmFlags: rd wr mr mw me wf sd
7f300000-7f301000 rw-p 00000000 00:00 0                  [heap]
VmFlags: rd wr mr mw me dc ac
7f400000-7f401000 rw-p 00000000 00:00 0
VmFlags: rd wr mr mw me ac
7f500000-7f501000 rw-p 00000000 00:00 0
VmFlags: rd wr mr mw me lo ac
";
        let found: Vec<String> = of_memory(smaps).into_iter().collect();
        assert_eq!(
            found,
            [
                "locked memory",
                "memory that a copy lacks",
                "memory that a copy lacks: [heap]",
                "shared memory: /dev/zero (deleted)",
            ]
        );
    }

    #[test]
    fn descriptors_with_a_state_that_copies_share_are_obstacles() {
        let read = "pos:\t8\nflags:\t0100000\nmnt_id:\t9\n";
        let written = "pos:\t8\nflags:\t0102001\n";
        let locked = "flags:\t0100000\nlock:\t1: FLOCK  ADVISORY  WRITE 7 08:01:42 0 EOF\n";
        let native =
            "pos:\t0\nflags:\t02\ntfd:        5 events:       19 data: 5  pos:0 ino:1 sdev:f\n";
        let (named, nameless, other) = ((true, true), (true, false), (false, false));
        for (link, info, kind, expected) in [
            ("/etc/hosts", read, nameless, None),
            ("/dev/null", written, other, None),
            ("/srv/a:b", read, other, None),
            ("/srv/log", written, named, None),
            (
                "/srv/log (deleted)",
                written,
                nameless,
                Some("a file that is open for writing: /srv/log (deleted)"),
            ),
            ("/srv/pid", locked, named, Some("a lock on /srv/pid")),
            ("anon_inode:[eventpoll]", read, other, None),
            (
                "anon_inode:[eventpoll]",
                native,
                other,
                Some("an object of the kernel: eventpoll"),
            ),
            (
                "anon_inode:[timerfd]",
                read,
                other,
                Some("an object of the kernel: timerfd"),
            ),
            (
                "pipe:[77]",
                read,
                other,
                Some("an object of the kernel: pipe"),
            ),
        ] {
            let found = of_descriptor(link, info, kind);
            assert_eq!(found.as_deref(), expected, "{link}");
        }
    }
}
