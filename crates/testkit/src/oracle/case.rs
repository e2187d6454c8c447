//! A command of the corpus, and its runs from a known state: alone, under strace, or recorded.

use backstory_files::CLOCK_GRANULARITY;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::snapshot::{self, Snapshot};
use crate::stage::Stage;
use crate::strace;

/// Longest time for a command of the corpus before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(120);

/// Prepares the directory of every case, before its own set-up.
const COMMON: &str = "umask 022; printf 'one\\ntwo\\nthree\\n' >a; printf 'beta\\nalpha\\n' >b; mkdir d; printf 'x\\n' >d/x; \
                      printf 'y\\n' >d/y; ln -s a soft; ln -s loop loop; ln -s nowhere dangling";

/// The form of a case's command.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// A program and its arguments; `$FIX/` in one is the directory of the fixtures.
    Program(&'static [&'static str]),
    /// A line for `sh -c`; `$FIX` is in its environment.
    Sh(&'static str),
    /// A line for `bash -c`.
    Bash(&'static str),
}

/// The last part of every set-up: archives store the times of their files, which must be the same
/// every time.
const AGED: &str = "find . -exec touch -h -d @1000000000 {} +";

/// A command whose account must be complete.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its name, and that of its directory.
    pub name: &'static str,
    /// Its command.
    pub how: How,
    /// Shell text that prepares the directory, beyond the common files.
    pub setup: &'static str,
    /// Tools it needs beside coreutils and a shell.
    pub needs: &'static [&'static str],
    /// Two plain runs of it produce different output or files: only its account is compared, not
    /// its effects.
    pub restless: bool,
    /// The reason why backstory's account of it is not right yet. Such a case must fail. When it
    /// passes, the mark must go.
    pub gap: Option<&'static str>,
    /// Beginnings of all reasons of the run, if it cannot be complete.
    pub marked: &'static [&'static str],
}

/// A program called directly.
pub const fn program(name: &'static str, argv: &'static [&'static str]) -> Case {
    Case {
        name,
        how: How::Program(argv),
        setup: "",
        needs: &[],
        restless: false,
        gap: None,
        marked: &[],
    }
}

/// A line for `sh -c`.
pub const fn sh(name: &'static str, line: &'static str) -> Case {
    Case {
        name,
        how: How::Sh(line),
        setup: "",
        needs: &[],
        restless: false,
        gap: None,
        marked: &[],
    }
}

/// A line for `bash -c`.
pub const fn bash(name: &'static str, line: &'static str) -> Case {
    Case {
        name,
        how: How::Bash(line),
        setup: "",
        needs: &[],
        restless: false,
        gap: None,
        marked: &[],
    }
}

impl Case {
    /// With this preparation.
    pub const fn after(mut self, setup: &'static str) -> Case {
        self.setup = setup;
        self
    }

    /// Skips the case where one of these tools is missing.
    pub const fn needs(mut self, tools: &'static [&'static str]) -> Case {
        self.needs = tools;
        self
    }

    /// Marks its account as wrong, for this reason.
    pub const fn gap(mut self, why: &'static str) -> Case {
        self.gap = Some(why);
        self
    }

    /// Marks its run as not complete, for these reasons.
    pub const fn marked(mut self, reasons: &'static [&'static str]) -> Case {
        self.marked = reasons;
        self
    }

    /// Marks its effects as different from run to run.
    pub const fn restless(mut self) -> Case {
        self.restless = true;
        self
    }
}

/// The externally visible effects of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Its end. `None` if it hung and was killed.
    pub status: Option<ExitStatus>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// The directory afterwards.
    pub files: Snapshot,
}

impl Outcome {
    /// The command's own stderr. After the command has ended, `record` adds one line if the record
    /// is not complete, and no other. The line is removed if its reason begins with one of
    /// `expected`.
    pub fn stderr_without_verdict(&self, expected: &[&str]) -> Vec<u8> {
        let lines: Vec<&[u8]> = self.stderr.split_inclusive(|&b| b == b'\n').collect();
        let is_expected = |line: &[u8]| {
            let line = String::from_utf8_lossy(line);
            let reason = line
                .strip_prefix("backstory: the record of run ")
                .and_then(|rest| rest.split_once(" is not complete: "))
                .map_or("", |(_, reason)| reason);
            expected.iter().any(|begin| reason.starts_with(begin))
        };
        match lines.split_last() {
            Some((last, before)) if is_expected(last) => before.concat(),
            _ => self.stderr.clone(),
        }
    }

    /// Exit status as a shell gives it: 128 + n for a signal; -1 if it hung.
    pub fn code(&self) -> i32 {
        self.status.map_or(-1, |s| {
            s.code().unwrap_or_else(|| 128 + s.signal().unwrap_or(0))
        })
    }
}

/// Runs cases.
#[derive(Debug)]
pub struct Bench {
    stage: Stage,
}

impl Bench {
    /// Cases run in `stage`.
    pub fn new(stage: Stage) -> Bench {
        Bench { stage }
    }

    /// The stage below.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Runs the case by itself.
    pub fn plain(&self, case: &Case) -> io::Result<Outcome> {
        let directory = self.prepare(case)?;
        let argv = self.argv(case);
        let mut command = self.stage.command(&argv[0]);
        command
            .args(&argv[1..])
            .env("BACKSTORY_STORE", self.store(case));
        watch(&mut command, &directory)
    }

    /// Runs the case under strace. The trace is read while the directory is as the case left it.
    pub fn traced(&self, case: &Case) -> io::Result<(Outcome, strace::Trace)> {
        let directory = self.prepare(case)?;
        let text = self
            .stage
            .directory("traces")?
            .join(format!("{}.strace", case.name));
        let tracer = strace::command(&text, &self.argv(case));
        let mut command = self.stage.command(tracer.get_program());
        command
            .args(tracer.get_args())
            .env("BACKSTORY_STORE", self.store(case));
        let outcome = watch(&mut command, &directory)?;
        let trace = strace::read(&fs::read(&text)?, directory.as_os_str().as_encoded_bytes());
        Ok((outcome, trace))
    }

    /// Runs the case recorded, into a store of its own, with further options of `record`.
    pub fn recorded(&self, case: &Case, options: &[&str]) -> io::Result<(Outcome, PathBuf)> {
        let directory = self.prepare(case)?;
        let store = self.empty_store(case)?;
        let mut command = self.stage.backstory(&["record"]);
        command
            .args(options)
            .arg("--")
            .args(self.argv(case))
            .env("BACKSTORY_STORE", &store);
        Ok((watch(&mut command, &directory)?, store))
    }

    /// Starts the case recorded, without waiting for it; its directory and its store are returned
    /// with it.
    pub fn started(&self, case: &Case) -> io::Result<(Child, PathBuf, PathBuf)> {
        self.started_with(case, &[])
    }

    /// The same with further options of `record`.
    pub fn started_with(
        &self,
        case: &Case,
        options: &[&str],
    ) -> io::Result<(Child, PathBuf, PathBuf)> {
        let directory = self.prepare(case)?;
        let store = self.empty_store(case)?;
        let mut command = self.stage.backstory(&["record"]);
        command.args(options).arg("--").args(self.argv(case));
        command
            .env("BACKSTORY_STORE", &store)
            .current_dir(&directory);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        Ok((child, directory, store))
    }

    /// The answer of `files --json` about a run, without the versions. Their digests become known
    /// later, also by other runs that read the same files.
    pub fn files(&self, store: &Path, run: &str) -> io::Result<serde_json::Value> {
        let told = self.ask(store, &["files", "--json", run])?;
        let mut files: serde_json::Value = serde_json::from_slice(&told)?;
        let versions = files.as_array_mut().into_iter().flatten();
        for versions in versions.filter_map(|file| file["versions"].as_array_mut()) {
            versions.clear();
        }
        Ok(files)
    }

    /// Asks the store that [`Bench::recorded`] filled.
    pub fn ask(&self, store: &Path, question: &[&str]) -> io::Result<Vec<u8>> {
        let mut command = self.stage.backstory(question);
        let output = command
            .env("BACKSTORY_STORE", store)
            .stderr(Stdio::piped())
            .output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(io::Error::other(format!(
            "backstory {}: {} {why}",
            question.join(" "),
            output.status
        )))
    }

    /// The store of a case. Even unrecorded commands see its name in their environment.
    fn store(&self, case: &Case) -> PathBuf {
        self.stage.store().join(case.name)
    }

    fn empty_store(&self, case: &Case) -> io::Result<PathBuf> {
        let store = self.store(case);
        // A process that stores contents of an earlier run in the background may still add files.
        let patience = std::time::Duration::from_secs(120);
        crate::procs::eventually(patience, || {
            let removed = fs::remove_dir_all(&store);
            removed.is_ok_and(|()| !store.exists()) || !store.exists()
        });
        Ok(store)
    }

    fn argv(&self, case: &Case) -> Vec<String> {
        let fixtures = format!("{}/bin/", self.stage.path().display());
        match case.how {
            How::Program(argv) => argv
                .iter()
                .map(|word| word.replace("$FIX/", &fixtures))
                .collect(),
            How::Sh(line) => ["sh", "-c", line].map(str::to_owned).to_vec(),
            How::Bash(line) => ["bash", "-c", line].map(str::to_owned).to_vec(),
        }
    }

    fn prepare(&self, case: &Case) -> io::Result<PathBuf> {
        let directory = self.stage.path().join("work").join(case.name);
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        self.stage.directory("work")?;
        self.stage.directory(&format!("work/{}", case.name))?;
        let mut setup = self.stage.command("sh");
        setup
            .arg("-ec")
            .arg(format!("{COMMON}\n{}\n{AGED}", case.setup))
            .current_dir(&directory);
        let output = setup.output()?;
        if output.status.success() {
            // A file whose age is within the granularity of that clock may have been changed after
            // it was read.
            let made = Instant::now();
            while made.elapsed() <= GRANULARITY {
                thread::yield_now();
            }
            return Ok(directory);
        }
        Err(io::Error::other(format!(
            "set-up of {}: {}",
            case.name,
            String::from_utf8_lossy(&output.stderr)
        )))
    }
}

/// The granularity of the clock that stamps files.
const GRANULARITY: Duration = Duration::from_nanos(CLOCK_GRANULARITY.cast_unsigned());

/// Runs `command` in `directory` and collects its visible effects. A command that takes too long is
/// killed, with its process group.
pub fn watch(command: &mut Command, directory: &Path) -> io::Result<Outcome> {
    command
        .current_dir(directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn()?;
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let status = wait(&mut child)?;
    if status.is_none() {
        return Ok(Outcome {
            status,
            stdout: Vec::new(),
            stderr: b"(hung)".to_vec(),
            files: Snapshot::new(),
        });
    }
    let collected = |reader: JoinHandle<Vec<u8>>| reader.join().unwrap_or_default();
    let (stdout, stderr) = (collected(stdout), collected(stderr));
    Ok(Outcome {
        status,
        stdout,
        stderr,
        files: snapshot::take(directory)?,
    })
}

fn drain(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // Bytes that were read before an error count.
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(2));
    }
    if let Some(group) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        // Kills the rest of the group.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    child.wait()?;
    Ok(None)
}
