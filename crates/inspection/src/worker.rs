//! Asks the worker `backstory-inspect` one question about a file, and checks the answer.
//!
//! The worker takes its own rights away before it reads the question (crate `inspect`,
//! `sandbox.rs`). The limits here hold whatever the worker does.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::answer::{self, Answer};
use crate::asking::{self, AnswerLimits, NoAnswer};
use crate::format_answer::{self, FormatAnswer};
use crate::question::{FormatHead, FormatQuestion, Question, QuestionHead, Request};
use crate::{InspectorEntry, LARGEST_CONTENT, Trouble, WORKER, component, name_pattern};

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
    /// The directory in which it could be installed.
    pub fn find() -> Result<InspectionWorker, PathBuf> {
        let own = std::env::current_exe().unwrap_or_default();
        let directory = own.parent().unwrap_or(Path::new("/"));
        let libexec = directory.parent().unwrap_or(directory).join(LIBEXEC);
        let all = [directory.join(WORKER), libexec.join(WORKER)];
        match all.into_iter().find(|program| program.is_file()) {
            Some(program) => Ok(InspectionWorker::at(program)),
            None => Err(libexec),
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
        let asked = AskedQuestion::new(entry, question.name);
        let request = Request::Inspect(QuestionHead {
            inspector: entry.name.clone(),
            version: entry.version,
            // The answer is kept for the path, so it must not depend on how the name is written.
            name: String::from_utf8_lossy(&name_pattern::absolute(question.name)).into_owned(),
            command: entry.command.clone(),
            component: component.is_some(),
            key: question.key.to_vec(),
        });
        let contents: Vec<&[u8]> = question.contents().collect();
        asked.check_sizes(&contents)?;
        let parts: Vec<&[u8]> = component.into_iter().chain(contents).collect();
        let wrote = asked.answered(
            &self.program,
            &request,
            &parts,
            self.limits(answer::LONGEST),
        )?;
        let answer = Answer::read(&wrote, &entry.name, entry.version)
            .map_err(|because| asked.refused(printable(&because)))?;
        match answer.error {
            Some(because) => Err(asked.unreadable(because)),
            None => Ok(answer),
        }
    }

    /// Asks about the form of one or two contents of the file `name`, whose format is that of the
    /// built-in inspector `entry`. `key`: see [`Question::key`]. `wanted` takes the right variant
    /// of the answer.
    ///
    /// # Errors
    /// A content is too large, or the worker gave no answer that may be used.
    pub fn read_format<T>(
        &self,
        entry: &InspectorEntry,
        (name, key): (&[u8], &[String]),
        question: FormatQuestion,
        contents: &[&[u8]],
        wanted: impl FnOnce(FormatAnswer) -> Option<T>,
    ) -> Result<T, Trouble> {
        let asked = AskedQuestion::new(entry, name);
        asked.check_sizes(contents)?;
        let request = Request::Read(FormatHead {
            inspector: entry.name.clone(),
            name: String::from_utf8_lossy(name).into_owned(),
            question,
            key: key.to_vec(),
        });
        let limits = self.limits(format_answer::LONGEST);
        let wrote = asked.answered(&self.program, &request, contents, limits)?;
        match FormatAnswer::read(&wrote, question) {
            Ok(FormatAnswer::Unreadable(because)) => Err(asked.unreadable(printable(&because))),
            Ok(answer) => {
                let another = || asked.refused("it answers another question".to_owned());
                wanted(answer).ok_or_else(another)
            }
            Err(because) => Err(asked.refused(printable(&because))),
        }
    }

    fn limits(&self, longest: usize) -> AnswerLimits {
        AnswerLimits {
            longest,
            patience: self.patience,
        }
    }
}

/// Names the inspector and the file in messages.
struct AskedQuestion {
    inspector: String,
    object: String,
}

impl AskedQuestion {
    fn new(entry: &InspectorEntry, name: &[u8]) -> AskedQuestion {
        AskedQuestion {
            inspector: entry.name.clone(),
            object: printable(&String::from_utf8_lossy(name)),
        }
    }

    fn check_sizes(&self, contents: &[&[u8]]) -> Result<(), Trouble> {
        let object = || self.object.clone();
        let mut contents = contents.iter();
        match contents.any(|content| content.len() > LARGEST_CONTENT) {
            true => Err(Trouble::TooLarge { object: object() }),
            false => Ok(()),
        }
    }

    /// The bytes that a worker wrote.
    fn answered(
        &self,
        program: &Path,
        request: &Request,
        parts: &[&[u8]],
        limits: AnswerLimits,
    ) -> Result<Vec<u8>, Trouble> {
        let (inspector, object) = (self.inspector.clone(), self.object.clone());
        asking::ask(program, request, parts, limits).map_err(|why| match why {
            NoAnswer::NotStarted(cause) => Trouble::NotStarted {
                object,
                program: program.to_owned(),
                cause,
            },
            NoAnswer::TooSlow(seconds) => Trouble::TooSlow {
                inspector,
                object,
                seconds,
            },
            NoAnswer::TooLong => {
                self.refused(format!("it has more than {} KiB", limits.longest >> 10))
            }
            NoAnswer::Crashed(how) => Trouble::Crashed {
                inspector,
                object,
                how,
            },
        })
    }

    fn refused(&self, because: String) -> Trouble {
        Trouble::Refused {
            inspector: self.inspector.clone(),
            object: self.object.clone(),
            because,
        }
    }

    fn unreadable(&self, because: String) -> Trouble {
        Trouble::Unreadable {
            inspector: self.inspector.clone(),
            object: self.object.clone(),
            because,
        }
    }
}
