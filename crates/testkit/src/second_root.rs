//! A second root directory with a user of its own: as much of another machine as one kernel has.
//!
//! In: programs and libraries of `/usr`. Out: commands in mounts of their own, under another host
//! name. The user has no entry in the system's `/etc/passwd`.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::need::skipped;
use crate::user::{User, suite_is_root};

/// The user in the second root.
pub const USER: &str = "far";

/// The host name in the second root.
pub const HOST: &str = "far-box";

/// The number of [`USER`].
const ID: u32 = 47_110;

/// Mounts the second root, and continues there. Arguments: root, program, arguments of the program.
const ENTER: &str = "set -e; root=$0
mount --make-rprivate /
mount --bind /usr \"$root/usr\"
mount --rbind /dev \"$root/dev\"
mount --rbind /sys \"$root/sys\"
mount -t proc proc \"$root/proc\"
mount --bind \"$1\" \"$root/program\"; shift
echo HOST >/proc/sys/kernel/hostname
exec chroot \"$root\" /program \"$@\"";

/// The second root. It is removed when dropped.
pub struct SecondRoot(TempDir);

impl SecondRoot {
    /// Makes the directory. `None`, with a notice, if the suite is not root.
    pub fn new(what: &str) -> io::Result<Option<SecondRoot>> {
        if !suite_is_root() || fs::read_link("/bin").is_err() {
            skipped(what, "needs root, and programs in /usr alone");
            return Ok(None);
        }
        let root = SecondRoot(tempfile::tempdir()?);
        let at = root.path();
        User::Myself.directory(at)?;
        for name in ["usr", "dev", "sys", "proc", "etc/ssh", "run/sshd", "home"] {
            User::Myself.directory(&at.join(name))?;
        }
        for name in ["bin", "sbin", "lib", "lib64"] {
            symlink(fs::read_link(Path::new("/").join(name))?, at.join(name))?;
        }
        fs::copy("/etc/ld.so.cache", at.join("etc/ld.so.cache"))?;
        fs::write(at.join("program"), "")?;
        fs::write(
            at.join("etc/passwd"),
            format!(
                "root:x:0:0::/:/bin/sh\nsshd:x:33:33::/run/sshd:/usr/sbin/nologin\n\
                 {USER}:x:{ID}:{ID}::/home/{USER}:/bin/sh\n"
            ),
        )?;
        fs::write(at.join("etc/group"), format!("root:x:0:\n{USER}:x:{ID}:\n"))?;
        let owner = User::Other { uid: ID, gid: ID };
        owner.directory(&at.join("home").join(USER))?;
        owner.directory(&at.join("tmp"))?;
        Ok(Some(root))
    }

    /// The directory, as the tests see it.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A program of the tests' root, by root in the second root.
    pub fn command(&self, program: &Path) -> io::Result<Command> {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--uts", "sh", "-c"]);
        command.arg(ENTER.replace("HOST", HOST));
        command.arg(self.path()).arg(program.canonicalize()?);
        Ok(command)
    }
}
