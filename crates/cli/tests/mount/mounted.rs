//! A mounted directory for a test.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use backstory_testkit::need::skipped;
use backstory_testkit::procs::eventually;
use backstory_testkit::stage::Stage;
use backstory_testkit::user::User;

/// Longest wait for a mount or its end.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A directory, its mount, and the process that serves it. Dropped, it is unmounted.
pub struct MountedDirectory {
    pub stage: Stage,
    /// The directory behind the mount.
    pub behind: PathBuf,
    /// The mount point.
    pub at: PathBuf,
    pub server: Child,
}

/// A mount of an empty directory. `None`, with a notice, where this machine cannot mount.
pub fn mounted(what: &str, options: &[&str]) -> Option<MountedDirectory> {
    mounted_by(what, &[], options)
}

/// The same. A command like `nice` executes the program that serves the mount.
pub fn mounted_by(what: &str, by: &[&str], options: &[&str]) -> Option<MountedDirectory> {
    if !rustix::process::geteuid().is_root() {
        skipped(what, "needs root");
        return None;
    }
    if !Path::new("/dev/fuse").exists() {
        skipped(what, "needs /dev/fuse");
        return None;
    }
    let stage = Stage::of(User::Myself, Path::new(env!("CARGO_BIN_EXE_backstory"))).unwrap();
    let (behind, at) = (
        stage.directory("behind").unwrap(),
        stage.directory("at").unwrap(),
    );
    let server = serving(&stage, by, options, [&behind, &at]);
    let mut mounted = MountedDirectory {
        stage,
        behind,
        at,
        server,
    };
    if !mounted.comes_up() {
        let said = mounted.said();
        if said.contains("does not permit") || said.contains("has no FUSE") {
            skipped(what, &said);
            return None;
        }
        panic!("not mounted: {said}");
    }
    Some(mounted)
}

fn serving(stage: &Stage, by: &[&str], options: &[&str], places: [&Path; 2]) -> Child {
    let own = stage.backstory(&["mount"]);
    let words = by.iter().map(OsStr::new).chain([own.get_program()]);
    let words: Vec<&OsStr> = words.chain(own.get_args()).collect();
    let mut command = stage.command(words[0]);
    let set = own
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let command = command.envs(set).args(&words[1..]);
    let command = command.args(options).args(places);
    command.stderr(Stdio::piped()).spawn().unwrap()
}

impl MountedDirectory {
    /// Mounts the directory again, after its unmount.
    pub fn mount_again(&mut self, options: &[&str]) {
        self.server = serving(&self.stage, &[], options, [&self.behind, &self.at]);
        assert!(self.comes_up(), "{}", self.said());
    }

    fn comes_up(&mut self) -> bool {
        eventually(PATIENCE, || {
            self.is_mounted() || self.server.try_wait().unwrap().is_some()
        });
        self.is_mounted()
    }

    pub fn is_mounted(&self) -> bool {
        let device = |path: &Path| std::fs::metadata(path).map(|of| of.dev()).ok();
        device(&self.at) != device(self.stage.path())
    }

    /// The messages of the server, which is killed.
    pub fn said(&mut self) -> String {
        use std::io::Read;
        let mut text = String::new();
        let _ = self.server.kill();
        if let Some(mut from) = self.server.stderr.take() {
            from.read_to_string(&mut text).unwrap();
        }
        text
    }

    /// Unmounts by the program `umount`, and waits for the end of the run.
    pub fn unmount(&mut self) -> ExitStatus {
        // A child of another test has the descriptors of this process until it executes a program.
        // One of them can be that of a file below the mount.
        let is_unmounted = || {
            let done = Command::new("umount").arg(&self.at).status();
            done.unwrap().success()
        };
        assert!(eventually(PATIENCE, is_unmounted));
        let mut status = None;
        eventually(PATIENCE, || {
            status = self.server.try_wait().unwrap();
            status.is_some()
        });
        status.expect("the server ends with its mount")
    }

    /// A shell that nothing recorded started, in the mounted directory.
    pub fn shell(&self, script: &str) -> Output {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(&self.at);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// The answer of `backstory ARGS…`.
    pub fn answer(&self, args: &[&str]) -> String {
        let output = self.stage.backstory(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Detaches the mount at a place. False if none is there. A test that failed may have left it in
/// use.
fn detach(place: &Path) -> bool {
    let mut umount = Command::new("umount");
    let umount = umount.args(["-l".as_ref(), place.as_os_str()]);
    let done = umount.stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

/// A further mount of a test, at a directory. Dropped, it is unmounted.
pub struct FurtherMount(PathBuf);

impl FurtherMount {
    /// The mount that the program `mount` makes at `place`, with these arguments before the place.
    pub fn at(place: &Path, arguments: &[&OsStr]) -> FurtherMount {
        let made = Command::new("mount").args(arguments).arg(place).status();
        assert!(made.unwrap().success(), "{arguments:?}");
        FurtherMount(place.to_owned())
    }

    /// Unmounts it.
    pub fn unmount(self) {
        let is_unmounted = || {
            let done = Command::new("umount").arg(&self.0).status();
            done.unwrap().success()
        };
        assert!(eventually(PATIENCE, is_unmounted));
        // Nothing is left to detach: another mount may be at the place.
        std::mem::forget(self);
    }
}

impl Drop for FurtherMount {
    fn drop(&mut self) {
        detach(&self.0);
    }
}

impl Drop for MountedDirectory {
    fn drop(&mut self) {
        // The server may have ended, or another one have mounted at the place.
        while detach(&self.at) {}
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
