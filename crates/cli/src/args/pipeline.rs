//! Arguments of `pipeline` and its commands.

use std::path::PathBuf;

use backstory_pipeline::filter::Action;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

/// The text after the options in the help of `pipeline`.
pub const EXAMPLES: &str = "Examples:\n  \
    backstory pipeline add drop --path '**/.cache/**' --name caches\n  \
    backstory pipeline test                  the effect on the latest run\n  \
    backstory pipeline show\n  \
    backstory pipeline remove caches\n\n\
    Filters are applied when a run enters the store. Its log is never changed, so\n\
    `backstory store rebuild` applies changed filters to all runs.";

/// `pipeline`
#[derive(Debug, Subcommand)]
pub enum PipelineCommand {
    /// Print the sources, the filters and the stores
    #[command(after_help = "Examples:\n  \
        backstory pipeline show\n  \
        backstory pipeline show --json | jq .filters\n\n\
        Exit status: 0 if the configuration has no mistake, 1 if it has one.")]
    Show(PipelineShowArgs),

    /// Add a filter or a further store to config.toml
    #[command(after_help = "Examples:\n  \
        backstory pipeline add drop --path '/usr/lib/**' --relation read,exec\n  \
        backstory pipeline add redact --text 'customer-[0-9]+'\n  \
        backstory pipeline add rename --text '^/scratch/job-[0-9]+' --to /scratch/job\n  \
        backstory pipeline add abstract --program make\n  \
        backstory pipeline add drop --when 'size > 1000000 && kind == \"file\"'\n  \
        backstory pipeline add store --directory /srv/group/store\n\n\
        The comments in the file stay. A filter with a mistake is not added.")]
    Add(Box<PipelineAddArgs>),

    /// Remove a filter or a further store from config.toml
    #[command(after_help = "Examples:\n  \
        backstory pipeline remove caches")]
    Remove(PipelineRemoveArgs),

    /// Apply the filters to runs that are in the store, print the effect, and change nothing
    #[command(after_help = "Examples:\n  \
        backstory pipeline test\n  \
        backstory pipeline test nightly\n  \
        backstory pipeline test --last 20 --json\n\n\
        Exit status: 0 if all filters worked, 1 if one failed.")]
    Test(PipelineTestArgs),
}

/// `pipeline show`
#[derive(Debug, Args)]
pub struct PipelineShowArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The actions, and `store`.
fn actions() -> PossibleValuesParser {
    PossibleValuesParser::new(Action::WORDS.into_iter().chain(["store"]))
}

/// `pipeline add`
#[derive(Debug, Args)]
pub struct PipelineAddArgs {
    /// The change that the filter makes; `store` adds a further store
    #[arg(value_name = "ACTION", value_parser = actions())]
    pub action: String,

    /// Name in reports
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Look at files or processes, or change all texts
    #[arg(long, value_name = "SUBJECT", value_parser = ["file", "process", "text"])]
    pub on: Option<String>,

    /// Files at these paths: a pattern, as of `--exclude`
    #[arg(long, value_name = "PATTERN")]
    pub path: Vec<String>,

    /// Things of this kind: file, directory, pipe, socket, missing …
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kind: Vec<String>,

    /// Processes of these programs, or files that only these programs used
    #[arg(long, value_name = "PATTERN")]
    pub program: Vec<String>,

    /// Files with no other relations: read, exec, stat, missing, write …
    #[arg(long, value_name = "RELATION", value_delimiter = ',')]
    pub relation: Vec<String>,

    /// Nodes for which an expression in CEL is true
    #[arg(long, value_name = "EXPRESSION")]
    pub when: Option<String>,

    /// Regular expression of the text to redact or rename, or of the part of a name that does not
    /// tell repetitions apart
    #[arg(long, value_name = "REGEX")]
    pub text: Option<String>,

    /// Text that replaces it; $1 is the first group
    #[arg(long, value_name = "TEXT")]
    pub to: Option<String>,

    /// Share that a sample keeps, from 0 to 1
    #[arg(long, value_name = "SHARE")]
    pub keep: Option<f64>,

    /// Effect if the filter cannot decide: `open` leaves the node, `closed` changes it
    #[arg(long, value_name = "MODE", value_parser = ["open", "closed"])]
    pub failure: Option<String>,

    /// Component of a plug-in in WebAssembly
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub component: Option<PathBuf>,

    /// Directory of a further store
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, required_if_eq("action", "store"))]
    pub directory: Option<PathBuf>,

    /// Write to the config.toml in the store, not to the user's
    #[arg(long)]
    pub in_store: bool,

    /// Command of a plug-in, with an absolute path
    #[arg(last = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandName)]
    pub command: Vec<String>,
}

/// `pipeline remove`
#[derive(Debug, Args)]
pub struct PipelineRemoveArgs {
    /// Name of the filter or store, as `pipeline show` prints it
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `pipeline test`
#[derive(Debug, Args)]
pub struct PipelineTestArgs {
    /// Run to apply the filters to: an id or a name; by default the latest run
    #[arg(value_name = "RUN", conflicts_with = "last")]
    pub run: Option<String>,

    /// Apply them to the N latest runs
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
