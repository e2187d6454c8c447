//! Arguments of `import`.

use std::path::PathBuf;

use backstory_import::MachineMode;
use clap::Args;

use super::record::words;

/// The text after the options in the help of `import`.
pub const EXAMPLES: &str = "Examples:\n  \
    backstory import                          list the formats\n  \
    strace -f -y -ttt -s 4096 -o trace.log make\n  \
    backstory import strace trace.log         make a run of the log\n  \
    backstory of build/app                    ... and ask about it\n  \
    backstory import strace trace.*           the logs of strace -ff\n  \
    backstory import spade --pipe /tmp/pipe   make a run of each log in a pipe\n\n\
    The same log gives the same run: a second import changes nothing.\n\
    Exit status: 0 if the log was imported now or before, 1 if it cannot be read or\n\
    is in another format, 2 if there is no such format.";

/// `import`
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The format of the log; without one, the formats are listed
    #[arg(value_name = "FORMAT")]
    pub format: Option<String>,

    /// The file of the log; several files if the tool wrote one for each process
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub files: Vec<PathBuf>,

    /// Make a named pipe, and a run of each log that a tool writes into it. A log ends when all
    /// writers have closed the pipe, unless --one-run is given. The command ends by Ctrl-C or
    /// SIGTERM
    #[arg(long, value_name = "PIPE", conflicts_with_all = ["files", "print_script"], value_hint = clap::ValueHint::FilePath)]
    pub pipe: Option<PathBuf>,

    /// How often what has come through the pipe is imported while the log goes on, if each line of
    /// the format stands for itself (spade). The run of the longer part replaces that of the
    /// shorter one. 0 waits for the end of the log
    #[arg(long, value_name = "SECONDS", requires = "pipe", default_value_t = 10)]
    pub every: u64,

    /// Make one run of all that comes through the pipe until the command ends, up to 128 MiB. Use
    /// this for scripts that write each line by an `echo` of its own: SPADE's reporter joins them,
    /// too. Only for formats whose lines stand for themselves (spade)
    #[arg(long, requires = "pipe")]
    pub one_run: bool,

    /// Print the script with which the tool writes logs of this format (bpftrace, perf)
    #[arg(long, conflicts_with = "files")]
    pub print_script: bool,

    /// Name the run; other commands accept the name instead of the id
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// The directory in which the command began, if the log does not have it. Without this option,
    /// it is then taken to be the directory of the log
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub cwd: Option<PathBuf>,

    /// The directory of this machine that the command had as its root directory. It is that of a
    /// container, or of another machine's disk that is mounted here
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub root: Option<PathBuf>,

    /// Whether the files that the log names are looked up on this machine. `auto` looks them up if
    /// the file of the log was written here while the command ran; `other` uses only their paths
    #[arg(long, value_name = "MODE", value_parser = words::<MachineMode>(), default_value_t = MachineMode::Auto)]
    pub machine: MachineMode,

    /// Also redact the values of environment variables and options with this name (`*` and `?`
    /// match; repeatable)
    #[arg(long, value_name = "PATTERN")]
    pub redact: Vec<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
