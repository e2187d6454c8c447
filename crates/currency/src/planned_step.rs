//! A recorded step as it would run now.

use std::collections::HashMap;

use backstory_eventlog::event::Bytes;
use backstory_files::Digest;
use backstory_store::ActivityKey;
use backstory_vocabulary::ContentsMode;

use crate::reason::Reason;

/// A step with the state of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// A short name, after its first output.
    pub name: String,
    /// The commands, for a shell in the step's directory, one a line.
    pub script: String,
    /// The commands for a reader: from the program on, without directories and variables.
    pub headline: String,
    /// Its directory.
    pub cwd: Bytes,
    /// Its environment.
    pub env: Vec<(Bytes, Bytes)>,
    /// The id of its run.
    pub run: String,
    /// True if its run was made from the log of another tool. Such a log may lack redirections, and
    /// then the script does, too.
    pub is_imported: bool,
    /// Its recorded activities. Of a step that is the run's whole command: all of the run's.
    pub members: Vec<ActivityKey>,
    /// True if its script is the run's whole command.
    pub is_whole_run: bool,
    /// Which contents the recorded run stored; `None` if that is not known.
    pub contents: Option<ContentsMode>,
    /// Directories that must exist for its outputs.
    pub directories: Vec<Bytes>,
    /// Its outputs, with their recorded contents as far as known. Those that the plan was made for
    /// come first, then those that other steps of the plan read.
    pub outputs: Vec<(Bytes, Option<Digest>)>,
    /// Its inputs that another step makes: the step, and the file.
    pub fed_by: Vec<(usize, Bytes)>,
    /// The recorded contents of these inputs, as far as known.
    pub had: HashMap<Bytes, Digest>,
    /// The reasons why it is stale. Without a reason it is current, unless a step that feeds it
    /// makes another content.
    pub reasons: Vec<Reason>,
}
