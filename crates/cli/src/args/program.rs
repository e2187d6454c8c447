//! Arguments of the commands about the program itself: `index`, `tui`, `doctor`,
//! `completions`, `man`.

use std::path::PathBuf;

use clap::Args;

/// The text after the options in the help of `index`.
pub const INDEX: &str = "Examples:\n  \
    backstory index --wait\n\n\
    It runs in the background after each `record`, and before the first question\n\
    that needs it. --wait returns when all finished runs are in the store and the\n\
    contents of their files are stored.";

/// The text after the options in the help of `tui`.
pub const TUI: &str = "Examples:\n  \
    backstory tui\n  \
    backstory tui report.txt\n  \
    backstory tui nightly\n\n\
    Enter opens the selected row, Left goes back, Tab shows the next view of the\n\
    same run or file, / searches, ? lists the keys, q quits.";

/// The text after the options in the help of `doctor`.
pub const DOCTOR: &str = "Examples:\n  \
    backstory doctor\n  \
    backstory doctor --json\n\n\
    It tries what a recording does: it installs a filter, makes shared memory,\n\
    enters namespaces, and records a command into a store that it removes. Nothing\n\
    is changed. Each line says what works, what is limited and what fails. The\n\
    consequence and the remedy follow. Exit status 1 if recording cannot work here.";

/// The text after the options in the help of `completions`.
pub const COMPLETIONS: &str = "Examples:\n  \
    backstory completions bash > /etc/bash_completion.d/backstory\n\n\
    The scripts complete commands, options, export formats, runs and recorded paths.";

/// The text after the options in the help of `complete-words`.
pub const COMPLETE_WORDS: &str = "Examples:\n  \
    backstory complete-words -- export ro\n\n\
    The completion scripts call it.";

/// The text after the options in the help of `answer`.
pub const ANSWER: &str = "Examples:\n  \
    python3 -c 'import backstory; backstory.Store().runs()'    asks";

/// The text after the options in the help of `man`.
pub const MAN: &str = "Examples:\n  \
    backstory man /usr/local/share/man/man1";

/// `index`
#[derive(Debug, Args)]
pub struct IndexArgs {
    /// Wait for another indexer of the same store to end, instead of leaving the work to it
    #[arg(long)]
    pub wait: bool,
}

/// `tui`
#[derive(Debug, Args)]
pub struct TuiArgs {
    /// The file or the run whose view comes first; by default the list of runs
    #[arg(value_name = "PATH|RUN", value_hint = clap::ValueHint::AnyPath)]
    pub subject: Option<std::ffi::OsString>,
}

/// `doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `completions`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// `complete-words`
#[derive(Debug, Args)]
pub struct CompleteWordsArgs {
    /// The words of the command line up to the cursor, without the program's name
    #[arg(
        value_name = "WORD",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub words: Vec<std::ffi::OsString>,
}

/// `man`
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory to write into; it is created if it does not exist
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub dir: PathBuf,

    /// Write Markdown instead, as the documentation site has it: a page for each command, and a
    /// list
    #[arg(long)]
    pub markdown: bool,
}
