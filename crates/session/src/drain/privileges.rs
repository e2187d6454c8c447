//! Finds the programs that lost a privilege because they were recorded.
//!
//! Without `CAP_SYS_ADMIN` a filter needs `no_new_privs`, which makes `execve` ignore set-id bits
//! and file capabilities. The program runs without them and does not say why it fails. Therefore
//! the run names it. Program files are examined when executions reach the log, never while the
//! program waits, and each path only once.

use super::executed::{ProgramEvent, each};
use backstory_eventlog::Reason;
use backstory_files::regular;
use backstory_vocabulary::GuardMode;
use rustix::fs::{StatVfsMountFlags, getxattr, stat, statvfs};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities, no_new_privs};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Most programs that are examined. No ordinary run has more.
const LOOKED_AT: usize = 10_000;
/// Most programs that are named. More names add no information.
const TOLD: usize = 10;

/// The programs executed so far.
#[derive(Debug, Default)]
pub(crate) struct Privileges {
    /// True if privileges are lost in this run.
    lost: bool,
    /// Programs that were examined, or that the broker executed with their privilege.
    seen: HashSet<Box<[u8]>>,
    told: Vec<String>,
}

impl Privileges {
    /// For a run with this guard mode, called before the filter is installed. In a container that
    /// has removed the privileges already, recording removes none.
    pub(crate) fn of_run(guard: GuardMode) -> Privileges {
        let all =
            capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
        let gone = no_new_privs().unwrap_or(false);
        Privileges {
            lost: guard != GuardMode::Off && !all && !gone,
            ..Privileges::default()
        }
    }

    /// Examines the programs executed in a chunk.
    pub(crate) fn look(&mut self, chunk: &[u8]) {
        if !self.lost {
            return;
        }
        each(chunk, |event| match event {
            // Its execution follows, perhaps behind chunks of other processes.
            ProgramEvent::Outside(path) => drop(self.seen.insert(path.into())),
            ProgramEvent::Program(path) | ProgramEvent::Spawned(_, path) => self.program(path),
            ProgramEvent::Directory(_) | ProgramEvent::Root => {}
        });
    }

    /// Examines a program. A relative path is skipped: its directory is unknown, and such programs
    /// are rarely called that way.
    fn program(&mut self, path: &[u8]) {
        if !path.starts_with(b"/") || self.seen.len() >= LOOKED_AT || self.seen.contains(path) {
            return;
        }
        self.seen.insert(path.into());
        let file = Path::new(OsStr::from_bytes(path));
        if self.told.len() < TOLD
            && let Some(privilege) = privilege(file)
        {
            let program = file.display().to_string();
            self.told
                .push(Reason::PrivilegeLost { program, privilege }.to_string());
        }
    }

    /// A sentence for each program that lost a privilege.
    pub(crate) fn reported(&self) -> &[String] {
        &self.told
    }
}

/// The privilege that executing a file would have given to this process, if any.
pub(crate) fn privilege(file: &Path) -> Option<&'static str> {
    let stat = stat(file).ok()?;
    let mode = stat.st_mode;
    let set_user = mode & 0o4000 != 0 && stat.st_uid != geteuid().as_raw();
    let set_group = mode & 0o2010 == 0o2010 && stat.st_gid != getegid().as_raw();
    let privilege = match (set_user, set_group) {
        (true, _) => "set-user-id privilege",
        (_, true) => "set-group-id privilege",
        _ if has_capabilities(file) => "file capabilities",
        _ => return None,
    };
    let ignored = is_script(file)
        || statvfs(file).is_ok_and(|there| there.f_flag.contains(StatVfsMountFlags::NOSUID));
    (!ignored).then_some(privilege)
}

fn has_capabilities(file: &Path) -> bool {
    getxattr(file, "security.capability", &mut [0u8; 64][..]).is_ok_and(|length| length > 0)
}

/// True for a script, whose set-id bits the kernel ignores. A file that cannot be read is no
/// script.
fn is_script(file: &Path) -> bool {
    let mut start = [0; 2];
    let read = regular::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && &start == b"#!"
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_abi::{self as abi, op};
    use backstory_eventlog::chunk;
    use backstory_eventlog::record::RecordBuilder;
    use std::os::unix::fs::{PermissionsExt, chown};

    fn reported(paths: &[(&Path, i32)], lost: bool) -> Vec<String> {
        let head = abi::Chunk {
            magic: abi::CHUNK_MAGIC,
            ..abi::Chunk::default()
        };
        let mut chunk = chunk::ChunkBuilder::new(head);
        let mut builder = RecordBuilder::new();
        for (path, result) in paths {
            builder
                .start(op::EXEC, 1)
                .string(path.as_os_str().as_bytes())
                .result(*result);
            assert!(chunk.push(builder.finish()));
        }
        let mut privileges = Privileges {
            lost,
            ..Privileges::default()
        };
        privileges.look(chunk.bytes());
        privileges.reported().to_vec()
    }

    #[test]
    fn a_program_with_a_privilege_is_named_once_and_only_if_it_ran() {
        let su = Path::new("/usr/bin/su");
        if !geteuid().is_root() {
            if privilege(su).is_none() {
                backstory_testkit::need::skipped(
                    "privileges",
                    "needs a set-user-id program or root",
                );
                return;
            }
            assert_eq!(reported(&[(su, 0), (su, 0)], true).len(), 1);
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8], mode: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            chown(&path, Some(1), Some(1)).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let set_user = file("set_user", b"\x7fELF", 0o4755);
        let set_group = file("set_group", b"\x7fELF", 0o2755);
        let locked = file("locked", b"\x7fELF", 0o2644); // mandatory locking, no privilege
        let script = file("script", b"#!/bin/sh", 0o4755);
        let plain = file("plain", b"\x7fELF", 0o755);
        let all = [
            (&*plain, 0),
            (&*set_user, -libc::EACCES),
            (&*set_group, 0),
            (&*script, 0),
            (&*locked, 0),
        ];
        let said = reported(&all, true);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("set_group ran without its set-group-id privilege"));
        let said = reported(&[(&set_user, 0), (&set_user, 0)], true);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("set_user ran without its set-user-id privilege"));
        assert!(reported(&all, false).is_empty());
    }
}
