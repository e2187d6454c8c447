//! Starts the worker `backstory-inspect` for one question, and limits what it can cost.
//!
//! The question lies in a memory file that is the worker's standard input: nothing is read from the
//! file system. The worker takes its own rights away before it reads the question (crate
//! `inspect`, `sandbox.rs`). The limits here hold whatever the worker does.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::answer::{self, Answer};
use crate::question::{Question, QuestionHead};
use crate::{COMPONENT_WORKER, InspectorEntry, LARGEST_CONTENT, Trouble, WORKER, component};

/// Where packages install the worker, from the directory above the main program's.
const LIBEXEC: &str = "libexec/backstory";

/// The processor time that the worker may take, in seconds.
pub const PROCESSOR_SECONDS: u64 = 2;

/// The time after which a worker is killed that waits for something, in seconds.
pub const SECONDS: u64 = 10;

/// The time after which every worker is killed, in seconds. On a busy machine the worker, which has
/// the lowest priority, can wait long for a processor.
pub const MOST_SECONDS: u64 = 120;

/// The most bytes of the worker's last words that are read.
const LAST_WORDS: usize = 4096;

/// The installed worker.
#[derive(Debug, Clone)]
pub struct InspectionWorker {
    program: PathBuf,
}

impl InspectionWorker {
    /// Finds the worker: beside this program, or in `../libexec/backstory` from there.
    ///
    /// # Errors
    /// [`Trouble::NoWorker`]
    pub fn find() -> Result<InspectionWorker, Trouble> {
        let own = std::env::current_exe().unwrap_or_default();
        let directory = own.parent().unwrap_or(Path::new("/"));
        let libexec = directory.parent().unwrap_or(directory).join(LIBEXEC);
        let all = [directory.join(WORKER), libexec.join(WORKER)];
        match all.into_iter().find(|program| program.is_file()) {
            Some(program) => Ok(InspectionWorker { program }),
            None => Err(Trouble::NoWorker(libexec)),
        }
    }

    /// The worker at this path.
    pub fn at(program: PathBuf) -> InspectionWorker {
        InspectionWorker { program }
    }

    /// Asks an inspector, and waits for its answer.
    ///
    /// # Errors
    /// The content is too large, or the inspector gave no answer that may be shown.
    pub fn ask(&self, entry: &InspectorEntry, question: &Question<'_>) -> Result<Answer, Trouble> {
        self.ask_with(entry, component::read(entry)?.as_deref(), question)
    }

    /// Asks an inspector whose component was read.
    ///
    /// # Errors
    /// As [`InspectionWorker::ask`].
    pub(crate) fn ask_with(
        &self,
        entry: &InspectorEntry,
        component: Option<&[u8]>,
        question: &Question<'_>,
    ) -> Result<Answer, Trouble> {
        let object = printable(&String::from_utf8_lossy(question.name));
        if question
            .contents()
            .any(|content| content.len() > LARGEST_CONTENT)
        {
            return Err(Trouble::TooLarge { object });
        }
        let asked = AskedQuestion {
            inspector: &entry.name,
            object: &object,
        };
        let program = self.program_for(entry)?;
        let not_started = |cause| Trouble::NotStarted {
            program: program.clone(),
            cause,
        };
        let input = memory_file(entry, component, question).map_err(not_started)?;
        let child = Command::new(&program)
            .stdin(Stdio::from(input))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir("/")
            .env_remove("LD_PRELOAD")
            .env_remove("RUST_BACKTRACE")
            .spawn()
            .map_err(not_started)?;
        let mut running = RunningWorker { child };
        let wrote = running.outputs().map_err(not_started)?;
        let status = match wrote.stopped {
            Some(Stopped::Late(seconds)) => return Err(asked.too_slow(seconds)),
            Some(Stopped::Long) => {
                let because = format!("it has more than {} KiB", answer::LONGEST >> 10);
                return Err(asked.refused(because));
            }
            None => running.child.wait().map_err(not_started)?,
        };
        asked.judged(entry.version, status, &wrote)
    }

    /// The program that answers for an inspector.
    fn program_for(&self, entry: &InspectorEntry) -> Result<PathBuf, Trouble> {
        if entry.component.is_none() {
            return Ok(self.program.clone());
        }
        let program = self.program.with_file_name(COMPONENT_WORKER);
        match program.is_file() {
            true => Ok(program),
            false => Err(Trouble::NoComponentWorker {
                inspector: entry.name.clone(),
                directory: program.parent().unwrap_or(&program).to_owned(),
            }),
        }
    }
}

/// The question in a memory file that no process can change.
fn memory_file(
    entry: &InspectorEntry,
    component: Option<&[u8]>,
    question: &Question<'_>,
) -> io::Result<std::fs::File> {
    let head = QuestionHead {
        inspector: entry.name.clone(),
        version: entry.version,
        name: String::from_utf8_lossy(question.name).into_owned(),
        lengths: question.contents().map(<[u8]>::len).collect(),
        command: entry.command.clone(),
        component: component.map(<[u8]>::len),
    };
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = std::fs::File::from(memfd_create("inspected", flags)?);
    serde_json::to_writer(&mut file, &head)?;
    file.write_all(b"\n")?;
    for content in component.into_iter().chain(question.contents()) {
        file.write_all(content)?;
    }
    file.seek(SeekFrom::Start(0))?;
    fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file)
}

/// Names the inspector and the file in messages.
struct AskedQuestion<'q> {
    inspector: &'q str,
    object: &'q str,
}

impl AskedQuestion<'_> {
    fn too_slow(&self, seconds: u64) -> Trouble {
        Trouble::TooSlow {
            inspector: self.inspector.to_owned(),
            object: self.object.to_owned(),
            seconds,
        }
    }

    fn refused(&self, because: String) -> Trouble {
        Trouble::Refused {
            inspector: self.inspector.to_owned(),
            object: self.object.to_owned(),
            because,
        }
    }

    /// The answer of a worker that has ended.
    fn judged(&self, version: u32, status: ExitStatus, wrote: &Written) -> Result<Answer, Trouble> {
        if status.signal() == Some(libc::SIGXCPU) {
            return Err(self.too_slow(PROCESSOR_SECONDS));
        }
        if !status.success() {
            return Err(Trouble::Crashed {
                inspector: self.inspector.to_owned(),
                object: self.object.to_owned(),
                how: how(status, &wrote.errors),
            });
        }
        let answer = Answer::read(&wrote.answer, self.inspector, version)
            .map_err(|because| self.refused(printable(&because)))?;
        match answer.error {
            Some(because) => Err(Trouble::Unreadable {
                inspector: self.inspector.to_owned(),
                object: self.object.to_owned(),
                because,
            }),
            None => Ok(answer),
        }
    }
}

/// How a process ended, with the last line that it wrote.
fn how(status: ExitStatus, errors: &[u8]) -> String {
    let how = match (status.signal(), status.code()) {
        (Some(libc::SIGSYS), _) => "it made a system call that it may not make".to_owned(),
        (Some(signal), _) => format!("it was ended by signal {signal}"),
        (None, code) => format!("it exited with {}", code.unwrap_or_default()),
    };
    let text = String::from_utf8_lossy(errors);
    match text.lines().rfind(|line| !line.trim().is_empty()) {
        Some(last) => format!("{how} ({})", printable(last.trim())),
        None => how,
    }
}

/// A text of foreign origin without characters that a terminal would obey.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|char| {
            if answer::is_control(char) {
                '\u{fffd}'
            } else {
                char
            }
        })
        .collect()
}

/// A worker that is killed when its caller stops waiting for it.
struct RunningWorker {
    child: Child,
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        // A process that has ended is not harmed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Why no more of an output was read.
#[derive(Debug, Clone, Copy)]
enum Stopped {
    /// The worker took this many seconds.
    Late(u64),
    Long,
}

/// The output of the worker.
struct Written {
    answer: Vec<u8>,
    errors: Vec<u8>,
    stopped: Option<Stopped>,
}

impl RunningWorker {
    /// True if the worker runs, or could run if a processor were free. The limit of processor time
    /// ends such a worker.
    fn wants_processor(&self) -> bool {
        let stat = std::fs::read(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let state =
            backstory_sys::process_tree::stat_fields(&stat).and_then(|mut fields| fields.next());
        state == Some("R")
    }

    /// Reads both outputs until the worker closes them, or a limit is reached.
    fn outputs(&mut self) -> io::Result<Written> {
        let begin = Instant::now();
        let mut end = begin + Duration::from_secs(SECONDS);
        let mut stdout = self.child.stdout.take();
        let mut stderr = self.child.stderr.take();
        let mut wrote = Written {
            answer: Vec::new(),
            errors: Vec::new(),
            stopped: None,
        };
        while stdout.is_some() || stderr.is_some() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                if begin.elapsed().as_secs() < MOST_SECONDS && self.wants_processor() {
                    end = Instant::now() + Duration::from_millis(200);
                    continue;
                }
                wrote.stopped = Some(Stopped::Late(begin.elapsed().as_secs()));
                break;
            }
            let (ready_out, ready_err) = ready(&stdout, &stderr, left)?;
            if ready_out && !more(&mut stdout, &mut wrote.answer, usize::MAX)? {
                stdout = None;
            }
            if ready_err && !more(&mut stderr, &mut wrote.errors, LAST_WORDS)? {
                stderr = None;
            }
            if wrote.answer.len() > answer::LONGEST {
                wrote.stopped = Some(Stopped::Long);
                break;
            }
        }
        Ok(wrote)
    }
}

/// Waits until one of the outputs can be read. Tells which.
fn ready(
    stdout: &Option<impl AsFd>,
    stderr: &Option<impl AsFd>,
    left: Duration,
) -> io::Result<(bool, bool)> {
    let mut waited: Vec<PollFd<'_>> = Vec::new();
    if let Some(stdout) = stdout {
        waited.push(PollFd::new(stdout, PollFlags::IN));
    }
    if let Some(stderr) = stderr {
        waited.push(PollFd::new(stderr, PollFlags::IN));
    }
    let left = Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    match poll(&mut waited, Some(&left)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut states = waited.iter().map(|fd| !fd.revents().is_empty());
    let first = stdout.is_some() && states.next().unwrap_or(false);
    let second = stderr.is_some() && states.next().unwrap_or(false);
    Ok((first, second))
}

/// Reads what is there. Bytes over `most` are dropped. False at the end.
fn more(from: &mut Option<impl Read>, into: &mut Vec<u8>, most: usize) -> io::Result<bool> {
    let mut part = [0; 16384];
    let Some(from) = from else {
        return Ok(false);
    };
    let read = from.read(&mut part)?;
    let room = most.saturating_sub(into.len()).min(read);
    into.extend_from_slice(&part[..room]);
    Ok(read > 0)
}
