//! The ordinary user that end-to-end tests run as.
//!
//! A suite started as root makes a user `backstory-test` once and runs commands as that user. If it
//! cannot, it uses the id of `nobody`. A suite started by an ordinary user runs commands as that
//! user.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const NAME: &str = "backstory-test";
const NOBODY: (u32, u32) = (65534, 65534);

/// The user of a test's commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The user of the suite: an ordinary one, or root in a test about root.
    Myself,
    /// This user and group; the suite is root.
    Other {
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
    },
}

impl User {
    /// An ordinary user, even if the suite is root.
    pub fn ordinary() -> User {
        static ORDINARY: OnceLock<User> = OnceLock::new();
        *ORDINARY.get_or_init(|| {
            if !suite_is_root() {
                return User::Myself;
            }
            let (uid, gid) = entry().or_else(make).unwrap_or(NOBODY);
            User::Other { uid, gid }
        })
    }

    /// Makes `command` run as this user.
    pub fn runs(self, command: &mut Command) -> &mut Command {
        match self {
            User::Myself => command,
            User::Other { uid, gid } => command.uid(uid).gid(gid),
        }
    }

    /// Gives `path`, and everything below a directory, to this user.
    pub fn owns(self, path: &Path) -> io::Result<()> {
        let User::Other { uid, gid } = self else {
            return Ok(());
        };
        let kind = fs::symlink_metadata(path)?.file_type();
        if kind.is_dir() {
            for entry in fs::read_dir(path)? {
                self.owns(&entry?.path())?;
            }
        }
        std::os::unix::fs::lchown(path, Some(uid), Some(gid))
    }

    /// Makes `path` a directory of this user's, readable by all.
    pub fn directory(self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        match self {
            User::Myself => Ok(()),
            User::Other { uid, gid } => chown(path, Some(uid), Some(gid)),
        }
    }
}

/// True if the suite was started as root.
pub fn suite_is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn entry() -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|l| l.split(':').next() == Some(NAME))?;
    let fields: Vec<&str> = line.split(':').collect();
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

fn make() -> Option<(u32, u32)> {
    let mut useradd = Command::new("useradd");
    useradd.args([
        "--system",
        "--no-create-home",
        "--user-group",
        "--shell",
        "/bin/sh",
        NAME,
    ]);
    useradd
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Another test binary may be making the same user. The entry counts, whatever the status.
    let _ = useradd.status();
    entry()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_user_is_not_root() {
        let mut id = Command::new("id");
        let output = User::ordinary()
            .runs(id.arg("-u"))
            .output()
            .expect("id runs");
        assert_ne!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    }
}
