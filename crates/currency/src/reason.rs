//! The reasons why a step is stale.

use backstory_eventlog::event::Bytes;

/// The reason why a step is stale.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A script that it runs has changed. Its new text may do other things than were recorded.
    ScriptChanged(Bytes),
    /// An output does not exist.
    OutputGone(Bytes),
    /// An output has changed since the step.
    OutputChanged(Bytes),
    /// An input does not exist any more.
    InputGone(Bytes),
    /// An input has changed.
    InputChanged(Bytes),
    /// A program or library that it used has changed.
    ToolChanged(Bytes),
    /// A file that it looked for in vain exists now.
    Appeared(Bytes),
    /// A directory that it listed has changed.
    DirectoryChanged(Bytes),
    /// Its look-ups are not known, and a directory that it opened files in has changed.
    MayHaveLooked(Bytes),
    /// A file that it looked at has another size, type, mode or, where it uses them, other times.
    LookChanged(Bytes),
    /// It can have read the file, which has changed. Whether it did is not known.
    MayHaveRead(Bytes),
    /// The file changed after its use and before the end of the run, or the directory after it was
    /// listed. The content, or the names, at the use are not known.
    MayHaveChanged(Bytes),
    /// The program that made the file failed. The file that it left is no result.
    MakerFailed(Bytes),
    /// The user changes a variable.
    Environment(Bytes),
    /// A script that started the step, a file that the script read, or a directory in which a shell
    /// looked for names has changed. Other commands may be started now, so the whole command of the
    /// run is repeated.
    GuideChanged(Bytes),
}

impl Reason {
    /// The path or variable.
    pub fn subject(&self) -> &Bytes {
        match self {
            Reason::ScriptChanged(it)
            | Reason::OutputGone(it)
            | Reason::OutputChanged(it)
            | Reason::InputGone(it)
            | Reason::InputChanged(it)
            | Reason::ToolChanged(it)
            | Reason::Appeared(it)
            | Reason::DirectoryChanged(it)
            | Reason::MayHaveLooked(it)
            | Reason::LookChanged(it)
            | Reason::MayHaveRead(it)
            | Reason::MayHaveChanged(it)
            | Reason::MakerFailed(it)
            | Reason::Environment(it)
            | Reason::GuideChanged(it) => it,
        }
    }

    /// True if the reason says only that something may have changed.
    pub fn is_uncertain(&self) -> bool {
        use Reason::{MayHaveChanged, MayHaveLooked, MayHaveRead};
        matches!(self, MayHaveLooked(_) | MayHaveRead(_) | MayHaveChanged(_))
    }

    /// The reason in words.
    pub fn words(&self) -> &'static str {
        match self {
            Reason::ScriptChanged(_) => {
                "a script that it runs changed since it was recorded, and may do other things"
            }
            Reason::OutputGone(_) => "its output is not there",
            Reason::OutputChanged(_) => "its output was changed since",
            Reason::InputGone(_) => "its input is not there any more",
            Reason::InputChanged(_) => "its input has changed",
            Reason::ToolChanged(_) => "a program or library it used has changed",
            Reason::Appeared(_) => "it looked for this, which was not there and is now",
            Reason::DirectoryChanged(_) => "a directory it listed has changed",
            Reason::MayHaveLooked(_) => {
                "what it looked at is not known, and a directory it opened files from has changed"
            }
            Reason::LookChanged(_) => {
                "a file it looked at has another size, type, mode or other times"
            }
            Reason::MayHaveRead(_) => "it may have read this file, which has changed",
            Reason::MayHaveChanged(_) => {
                "it changed during the run or soon after, perhaps after the command had used it"
            }
            Reason::MakerFailed(_) => "the program that made it failed",
            Reason::Environment(_) => "a variable of its environment is to be different",
            Reason::GuideChanged(_) => "what decided which commands the run starts has changed",
        }
    }
}
