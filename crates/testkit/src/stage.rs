//! A stage for a test: a directory that its user owns, with the tested binary and fixtures.
//!
//! The build directory may lie below a home that only its owner can enter. So everything is linked
//! or copied to the stage first.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::busybox::{busybox, is_installed};
use crate::need::say;
use crate::program;
use crate::user::User;

/// Search path of staged commands. It is the same on all machines of one distribution.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// With this variable set, stages are kept for inspection.
pub const KEEP: &str = "BACKSTORY_TEST_KEEP";

/// A temporary stage. It is removed with everything in it when dropped.
#[derive(Debug)]
pub struct Stage {
    directory: TempDir,
    user: User,
    binary: PathBuf,
    /// Search path of commands: [`PATH`]. If the installed busybox is dynamic, a directory with a
    /// static one precedes it.
    path: String,
}

impl Stage {
    /// A stage for tests of the executable `binary`, run as an ordinary user.
    pub fn new(binary: impl AsRef<Path>) -> io::Result<Stage> {
        Stage::of(User::ordinary(), binary.as_ref())
    }

    /// The same for a given user.
    pub fn of(user: User, binary: &Path) -> io::Result<Stage> {
        let mut directory = tempfile::Builder::new()
            .prefix("backstory-test-")
            .tempdir_in("/tmp")?;
        if std::env::var_os(KEEP).is_some() {
            directory.disable_cleanup(true);
            say(&format!("{KEEP}: {}", directory.path().display()));
        }
        user.directory(directory.path())?;
        for part in ["bin", "home", "store"] {
            user.directory(&directory.path().join(part))?;
        }
        let staged = directory.path().join("bin/backstory");
        place(binary, &staged)?;
        let mut path = PATH.to_owned();
        if let Some(program) = busybox().filter(|program| !is_installed(program)) {
            let first = directory.path().join("static");
            user.directory(&first)?;
            // Not a link: the status of the file would change with each stage that comes or goes.
            program::copy(program, &first.join("busybox"))?;
            path = format!("{}:{PATH}", first.display());
        }
        Ok(Stage {
            path,
            directory,
            user,
            binary: staged,
        })
    }

    /// The stage's directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The store of [`Stage::record`].
    pub fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    /// The user of the commands.
    pub fn user(&self) -> User {
        self.user
    }

    /// The static busybox that commands of this stage find by its name, if there is one.
    pub fn busybox(&self) -> Option<PathBuf> {
        let staged = self.path().join("static/busybox");
        match staged.exists() {
            true => Some(staged),
            false => busybox().map(Path::to_owned),
        }
    }

    /// A new directory in the stage, owned by its user.
    pub fn directory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path().join(name);
        self.user.directory(&path)?;
        Ok(path)
    }

    /// Links or copies `from` to `bin/NAME` of the stage.
    pub fn install(&self, from: &Path) -> io::Result<PathBuf> {
        let name = from
            .file_name()
            .ok_or_else(|| io::Error::other("a file without a name"))?;
        let to = self.path().join("bin").join(name);
        place(from, &to)?;
        Ok(to)
    }

    /// A command of the staged user, with a fixed environment. No variable of the test suite
    /// reaches it.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.path().join("home"))
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC");
        command
            .env("FIX", self.path().join("bin"))
            .env("TMPDIR", "/tmp");
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "Test")
                .env(format!("GIT_{who}_EMAIL"), "test@example.org");
            command.env(format!("GIT_{who}_DATE"), "2001-02-03T04:05:06Z");
        }
        command.stdin(Stdio::null());
        self.user.runs(&mut command);
        command
    }

    /// `backstory ARGS…`, with the stage's own store.
    pub fn backstory(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = self.command(&self.binary);
        command.env("BACKSTORY_STORE", self.store()).args(args);
        command
    }

    /// `backstory record -- ARGV…`
    pub fn record(&self, argv: &[impl AsRef<OsStr>]) -> Command {
        let mut command = self.backstory(&["record", "--"]);
        command.args(argv);
        command
    }
}

fn place(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::hard_link(from, to).or_else(|_| program::copy(from, to))
}
