//! A watched file system for a test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use backstory_testkit::need::{needs, skipped};
use backstory_testkit::procs::eventually;
use backstory_testkit::stage::Stage;
use backstory_testkit::unfinished_run;
use backstory_testkit::user::User;

/// The longest wait for the watch.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A kind of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// In memory.
    Tmpfs,
    /// On a loop device.
    Ext4,
}

/// A mounted file system, and the process that watches it. Dropped, it is unmounted.
pub struct WatchedFilesystem {
    pub stage: Stage,
    /// The root of the file system.
    pub at: PathBuf,
    pub watcher: Child,
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::null());
    command.stderr(Stdio::null()).status().unwrap().success()
}

fn mount(kind: Kind, stage: &Stage, at: &Path) -> bool {
    let at = at.to_str().unwrap();
    match kind {
        Kind::Tmpfs => succeeds("mount", &["-t", "tmpfs", "-o", "size=256m", "tmpfs", at]),
        Kind::Ext4 => {
            let image = stage.path().join("image");
            fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
            let image = image.to_str().unwrap();
            succeeds("mkfs.ext4", &["-q", image]) && succeeds("mount", &["-o", "loop", image, at])
        }
    }
}

/// A watched file system that is empty at first. `None`, with a notice, where this machine cannot
/// mount or watch.
pub fn watched(what: &str, kind: Kind, before: impl FnOnce(&Path)) -> Option<WatchedFilesystem> {
    watched_with(what, kind, &[], before)
}

/// The same, with options of the watch.
pub fn watched_with(
    what: &str,
    kind: Kind,
    options: &[&str],
    before: impl FnOnce(&Path),
) -> Option<WatchedFilesystem> {
    if !rustix::process::geteuid().is_root() {
        skipped(what, "needs root");
        return None;
    }
    if kind == Kind::Ext4 && !needs(what, &["mkfs.ext4"]) {
        return None;
    }
    let stage = Stage::of(User::Myself, Path::new(env!("CARGO_BIN_EXE_backstory"))).unwrap();
    let at = stage.directory("at").unwrap();
    if !mount(kind, &stage, &at) {
        skipped(what, "cannot mount a file system");
        return None;
    }
    before(&at);
    let watcher = stage
        .backstory(&[&["watch"], options, &["--filesystem"]].concat())
        .arg(&at)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut watched = WatchedFilesystem { stage, at, watcher };
    let mut lines = BufReader::new(watched.watcher.stderr.take().unwrap()).lines();
    let said = lines.next().map(Result::unwrap).unwrap_or_default();
    if said.contains("the kernel does not notify") {
        skipped(what, &said);
        return None;
    }
    assert!(said.contains("records the file system"), "{said}");
    Some(watched)
}

impl WatchedFilesystem {
    /// A shell that nothing recorded started, in the file system.
    pub fn shell(&self, script: &str) -> Output {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(&self.at);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        output
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.watcher.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until the records of the watch have a text. The watch reads its notifications at any
    /// time after the operations.
    pub fn wait_for(&self, text: &str) {
        let store = self.stage.store();
        let is_recorded = || unfinished_run::has_text(&store, text);
        assert!(eventually(PATIENCE, is_recorded), "never recorded: {text}");
    }

    /// Runs a program in the file system that opens the pipe `$GATE` for reading at its end, and so
    /// waits. It goes on when the watch has recorded these texts of it and its children: the watch
    /// knows only programs that live when it looks.
    pub fn known(&self, program: &mut Command, texts: &[&str]) {
        let gate = self.stage.path().join("gate");
        assert!(succeeds("mkfifo", &[gate.to_str().unwrap()]));
        program.current_dir(&self.at).env("GATE", &gate);
        let mut child = program.stdin(Stdio::null()).spawn().unwrap();
        texts.iter().for_each(|text| self.wait_for(text));
        fs::write(&gate, "").unwrap();
        assert!(child.wait().unwrap().success(), "{program:?}");
    }

    /// Ends the run.
    pub fn end(&mut self) {
        self.signal(rustix::process::Signal::INT);
        assert!(self.watcher.wait().unwrap().success());
    }

    /// The answer of `backstory ARGS…`.
    pub fn answer(&self, args: &[&str]) -> String {
        let output = self.stage.backstory(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The path of a file, for arguments.
    pub fn path(&self, name: &str) -> String {
        self.at.join(name).to_str().unwrap().to_owned()
    }

    /// The paths in the answer to a question, relative to the file system's root.
    pub fn paths(&self, args: &[&str]) -> Vec<String> {
        let answer = self.answer(args);
        let prefix = format!("{}/", self.at.to_str().unwrap());
        let words = answer.split('"');
        let mut found: Vec<String> = words
            .filter_map(|word| word.strip_prefix(&prefix))
            .map(str::to_owned)
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// The files that a file came from, with itself.
    pub fn inputs(&self, name: &str) -> Vec<String> {
        self.paths(&["of", "--json", &self.path(name)])
    }
}

impl Drop for WatchedFilesystem {
    fn drop(&mut self) {
        let _ = self.watcher.kill();
        let _ = self.watcher.wait();
        // A test that failed may have left it in use.
        let _ = Command::new("umount")
            .args(["-l".as_ref(), self.at.as_os_str()])
            .stderr(Stdio::null())
            .status();
    }
}
