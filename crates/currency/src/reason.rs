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
            | Reason::Environment(it)
            | Reason::GuideChanged(it) => it,
        }
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
            Reason::Environment(_) => "a variable of its environment is to be different",
            Reason::GuideChanged(_) => "what decided which commands the run starts has changed",
        }
    }
}
