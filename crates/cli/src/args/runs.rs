//! Arguments of the commands about whole runs: `show`, `rm`, `forget`, `note`, `git-note`, `name`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args};

/// The text after the options in the help of `show`.
pub const SHOW: &str = "Examples:\n  \
    backstory show\n  \
    backstory show 7hx2k9qa --verbose\n  \
    backstory show --json | jq .complete\n\n\
    docs/reasons.md explains each sentence that can follow `because` or `warning`.";

/// The text after the options in the help of `requests`.
pub const REQUESTS: &str = "Examples:\n  \
    backstory record --deep -- ./server\n  \
    backstory requests\n  \
    backstory requests 7hx2k9qa --json | jq '.[] | select(.bytes_in > 1000)'\n  \
    backstory requests --turns               for `replay --deep --from --to`\n\n\
    A request of a server begins with the first bytes that it reads after it last\n\
    wrote to the same connection, and ends with its last write. A request of a\n\
    client begins with the first bytes that it sends after it last received some,\n\
    and ends with the last bytes that it then receives.";

/// The text after the options in the help of `rm`.
pub const RM: &str = "Examples:\n  \
    backstory rm 7hx2k9qa\n  \
    backstory rm nightly first-try\n\n\
    The files that the run wrote stay where they are.";

/// The text after the options in the help of `note`.
pub const NOTE: &str = "Examples:\n  \
    backstory note 7hx2k9qa 'with the old compiler'\n  \
    backstory note nightly ''                remove the note";

/// The text after the options in the help of `forget`.
pub const FORGET: &str = "Examples:\n  \
    backstory forget --last 10m              all runs of the last ten minutes\n  \
    backstory forget ~/.ssh                  all runs that name a file there\n  \
    backstory forget --matching hunter2      all that has the text, contents, too\n\n\
    The runs go from the database, the logs and the journals, and contents that no\n\
    other run refers to go with them. `rm` removes a run, and leaves contents.";

/// The text after the options in the help of `git-note`.
pub const GIT_NOTE: &str = "Examples:\n  \
    backstory git-note                       the commit that is checked out\n  \
    backstory git-note --dry-run HEAD~3      print only\n  \
    backstory git-note --install             note each new commit\n\n\
    A run made a file if it wrote the content that the commit has. The notes are in\n\
    refs/notes/backstory. `git log --notes=backstory` shows them, and `git push\n\
    origin refs/notes/backstory` passes them on.";

/// The text after the options in the help of `name`.
pub const NAME: &str = "Examples:\n  \
    backstory name 7hx2k9qa nightly\n  \
    backstory name nightly ''                remove the name\n\n\
    Several runs can have the same name. It then means the newest of them.";

/// `forget`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("meant").required(true).multiple(true).args(["last", "paths", "matching"])))]
pub struct ForgetArgs {
    /// Runs in which one of these files or directories is named
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// Runs that ended at most this long ago: a number and a unit (s, m, h, d, w)
    #[arg(long, value_name = "TIME", value_parser = super::amounts::age)]
    pub last: Option<i64>,

    /// Runs whose record has this text anywhere, and stored contents that have it (repeatable)
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub matching: Vec<String>,

    /// Print only
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// `git-note`
#[derive(Debug, Args)]
pub struct GitNoteArgs {
    /// The commit; by default HEAD
    #[arg(value_name = "COMMIT")]
    pub revision: Option<String>,

    /// Write a hook that notes each new commit of this repository
    #[arg(long, conflicts_with_all = ["revision", "dry_run", "quiet"])]
    pub install: bool,

    /// Print the note, and leave the repository as it is
    #[arg(long)]
    pub dry_run: bool,

    /// Print nothing
    #[arg(long)]
    pub quiet: bool,
}

/// One run, and the form of the answer.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Id or name of the run; by default the latest run
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `requests`
#[derive(Debug, Args)]
pub struct RequestsArgs {
    /// The run, and the form of the answer
    #[command(flatten)]
    pub run: RunArgs,

    /// The run, as `when` and `scene` take it
    #[arg(long = "run", value_name = "RUN", conflicts_with = "run")]
    pub of_run: Option<String>,

    /// List all requests, not only those that fit on a screen
    #[arg(long)]
    pub all: bool,

    /// List the turns of the event loops of clients instead: the calls of a thread from one wait
    /// for several descriptors to the next
    #[arg(long)]
    pub turns: bool,
}

/// `show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The run, and the form of the answer
    #[command(flatten)]
    pub run: RunArgs,

    /// Also show the machine, the modes of the recording, counts, stored contents and the log
    #[arg(short, long)]
    pub verbose: bool,
}

/// `rm`
#[derive(Debug, Args)]
pub struct RmArgs {
    /// Runs to remove
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
}

/// `note`
#[derive(Debug, Args)]
pub struct NoteArgs {
    /// Id or name of the run
    #[arg(value_name = "RUN")]
    pub run: String,

    /// The note; an empty text removes it
    #[arg(value_name = "TEXT")]
    pub text: String,
}

/// `name`
#[derive(Debug, Args)]
pub struct NameArgs {
    /// Id or name of the run
    #[arg(value_name = "RUN")]
    pub run: String,

    /// The new name; an empty name removes it
    #[arg(value_name = "NAME")]
    pub name: String,
}
