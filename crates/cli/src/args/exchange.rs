//! Arguments of `store push`, `store pull` and the command that serves them.

use std::path::PathBuf;

use backstory_exchange::RemoteAddress;
use clap::{Args, Parser};

use super::search::RunChoice;

/// The text after the options in the help of `store push`.
pub const PUSH: &str = "Examples:\n  \
    backstory store push box:stores/mine      a directory below the home directory on box\n  \
    backstory store push me@box:              the store that `me` uses on box\n  \
    backstory store push /media/stick/runs --since '1 week ago'\n  \
    backstory store push box:stores/mine --sign ~/.ssh/id_ed25519\n  \
    backstory store push s3://team/runs       a bucket; keys as the AWS command line has them\n\n\
    Only runs, contents and annotations that the other store lacks are sent. A push that\n\
    was interrupted goes on when it is repeated.\n\
    Exit status: 0 if the other store has all runs, 1 if not.";

/// The text after the options in the help of `store pull`.
pub const PULL: &str = "Examples:\n  \
    backstory store pull box:stores/mine\n  \
    backstory store pull box: --command make --dry-run\n  \
    backstory store pull box:stores/team --allowed-signers ~/.ssh/allowed_signers\n\n\
    Only runs, contents and annotations that this store lacks are fetched.\n\
    Exit status: 0 if this store has all runs, 1 if not.";

/// The text after the options in the help of `store serve-peer`.
pub const SERVE_PEER: &str = "Examples:\n  \
    ssh box backstory store serve-peer stores/mine     as `store push box:stores/mine` runs it\n\n\
    It speaks the protocol of docs/formats/exchange.md on its input and output.";

/// The other store, and the runs that are meant.
#[derive(Debug, Args)]
pub struct ExchangeArgs {
    /// The other store: a directory, a directory of a host that ssh reaches, or a bucket
    #[arg(value_name = "[USER@]HOST:DIR|DIR|s3://BUCKET/PREFIX", value_parser = RemoteAddress::parse, value_hint = clap::ValueHint::AnyPath)]
    pub remote: RemoteAddress,

    /// This run only, by id or name (repeatable)
    #[arg(long, value_name = "RUN")]
    pub run: Vec<String>,

    /// Conditions on the runs
    #[command(flatten)]
    pub which: RunChoice,

    /// Print what would be exchanged, and exchange nothing
    #[arg(long)]
    pub dry_run: bool,

    /// The ssh program and its options, in words; by default $BACKSTORY_SSH, or ssh
    #[arg(long, value_name = "COMMAND")]
    pub ssh: Option<String>,

    /// Path of backstory on the other host
    #[arg(long, value_name = "PATH", default_value = "backstory")]
    pub remote_program: String,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `store push`
#[derive(Debug, Args)]
pub struct StorePushArgs {
    /// Both sides
    #[command(flatten)]
    pub exchange: ExchangeArgs,

    /// Sign each run with this SSH key (`ssh-keygen -Y sign`), unless it has signed the run already
    #[arg(long, value_name = "KEY", value_hint = clap::ValueHint::FilePath)]
    pub sign: Option<PathBuf>,
}

/// `store pull`
#[derive(Debug, Args)]
pub struct StorePullArgs {
    /// Both sides
    #[command(flatten)]
    pub exchange: ExchangeArgs,

    /// Accept new runs only if a key of this file signed them (ALLOWED SIGNERS in ssh-keygen(1))
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub allowed_signers: Option<PathBuf>,
}

/// `store serve-peer`
#[derive(Debug, Args)]
pub struct StoreServePeerArgs {
    /// Directory of the store; by default the user's own
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub directory: Option<PathBuf>,

    /// The store is in a bucket
    #[arg(long, value_name = "s3://BUCKET/PREFIX", conflicts_with_all = ["directory", "allowed_signers"], value_parser = RemoteAddress::parse)]
    pub bucket: Option<RemoteAddress>,

    /// Change nothing, and do not make the store
    #[arg(long)]
    pub read_only: bool,

    /// Accept new runs only if a key of this file signed them
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub allowed_signers: Option<PathBuf>,
}

/// The runs that the side that the user started selects, in options for the other side.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
pub struct RunSelection {
    /// Runs by id or name
    #[arg(long)]
    pub run: Vec<String>,

    /// Conditions on the runs
    #[command(flatten)]
    pub which: RunChoice,
}
