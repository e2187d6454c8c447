//! Starts the worker `backstory-inspect` for one question, and limits what it can cost.
//!
//! The question lies in a memory file that is the worker's standard input: nothing is read from the
//! file system. The worker takes its own rights away before it reads the question (crate
//! `inspect`, `sandbox.rs`). The limits here hold whatever the worker does.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use crate::answer::{self, Answer};
use crate::question::{Question, QuestionHead};
use crate::worker_process::{Stopped, WorkerProcess, Written, how, memory_file};
use crate::{COMPONENT_WORKER, InspectorEntry, LARGEST_CONTENT, Trouble, WORKER, component};

pub use crate::worker_process::{MOST_SECONDS, PROCESSOR_SECONDS, SECONDS, printable};

/// Where packages install the worker, from the directory above the main program's.
const LIBEXEC: &str = "libexec/backstory";

/// The installed worker.
#[derive(Debug, Clone)]
pub struct InspectionWorker {
    program: PathBuf,
    patience: Option<Duration>,
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
            Some(program) => Ok(InspectionWorker::at(program)),
            None => Err(Trouble::NoWorker(libexec)),
        }
    }

    /// The worker's executable.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The worker at this path.
    pub fn at(program: PathBuf) -> InspectionWorker {
        InspectionWorker {
            program,
            patience: None,
        }
    }

    /// The same worker, which is killed after this time, also if it waits for a processor.
    pub fn within(self, patience: Duration) -> InspectionWorker {
        InspectionWorker {
            patience: Some(patience),
            ..self
        }
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
        let input = question_file(entry, component, question).map_err(not_started)?;
        let mut running = WorkerProcess::start(&program, input).map_err(not_started)?;
        let wrote = running.outputs(answer::LONGEST, self.patience);
        let wrote = wrote.map_err(not_started)?;
        let status = match wrote.stopped {
            Some(Stopped::Late(seconds)) => return Err(asked.too_slow(seconds)),
            Some(Stopped::Long) => {
                let because = format!("it has more than {} KiB", answer::LONGEST >> 10);
                return Err(asked.refused(because));
            }
            None => running.wait().map_err(not_started)?,
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
fn question_file(
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
    let mut line = serde_json::to_vec(&head)?;
    line.push(b'\n');
    let first: [&[u8]; 2] = [&line, component.unwrap_or_default()];
    let parts: Vec<&[u8]> = first.into_iter().chain(question.contents()).collect();
    memory_file(&parts)
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
