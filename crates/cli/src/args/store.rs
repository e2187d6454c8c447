//! Arguments of `store` and its commands.

use std::ffi::OsString;
use std::path::PathBuf;

use backstory_evidence::Head;
use backstory_store::StoreEngine;
use backstory_vocabulary::Word;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::amounts::{age, size};
use super::exchange::{self, StorePullArgs, StorePushArgs, StoreServePeerArgs};

/// The text after the options in the help of `store`.
pub const EXAMPLES: &str = "Examples:\n  \
    backstory store stats\n  \
    backstory store gc --older-than 30d --dry-run\n  \
    backstory store verify\n  \
    backstory store export nightly -o nightly.backstory\n  \
    backstory store push box:stores/mine";

/// `store`
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Print how much is in the store, and what takes the space
    #[command(after_help = "Examples:\n  \
        backstory store stats\n  \
        backstory store stats --deep             of deep logs, also the share of I/O\n  \
        backstory store stats --json | jq .contents.disk_bytes")]
    Stats(StoreStatsArgs),

    /// Read the database, the logs and all contents, and list what is damaged
    #[command(after_help = "Examples:\n  \
        backstory store verify\n  \
        backstory store verify --evidence --signers allowed_signers\n  \
        backstory store verify --evidence build.intoto.json --signers allowed_signers\n\n\
        With --evidence, every part of a sealed run is compared with its seal.\n\
        Exit status: 0 if everything is intact, 1 if something is damaged.")]
    Verify(StoreVerifyArgs),

    /// Seal runs in a signed chain, so that `verify --evidence` finds later changes
    #[command(after_help = "Examples:\n  \
        backstory store seal --all --key ~/.ssh/id_ed25519\n  \
        backstory store seal 7hx2k9qa --key ~/.ssh/id_ed25519 --tsa http://tsa.example.org\n\n\
        The last line names the end of the chain. Note it elsewhere: `store verify\n\
        --evidence --expect` then finds out if the chain was cut.")]
    Seal(StoreSealArgs),

    /// Make the database again from the logs of the runs
    #[command(after_help = "Examples:\n  \
        backstory store rebuild\n\n\
        The old database stays until the new one is complete. Logs and contents stay as\n\
        they are. Names and notes are taken from the old database if it can be read.\n\
        Exit status: 0 if all runs are there again, 1 if not.")]
    Rebuild(StoreRebuildArgs),

    /// Give the store another storage engine
    #[command(after_help = "Examples:\n  \
        backstory store migrate --to redb\n  \
        backstory store migrate --to sqlite          goes back\n\n\
        The runs are copied into a new database and compared with the old one. The old\n\
        database stays until then. Logs and contents stay as they are.")]
    Migrate(StoreMigrateArgs),

    /// Free space: remove old runs, and contents that no run refers to
    #[command(after_help = "Examples:\n  \
        backstory store gc                        only contents without a run\n  \
        backstory store gc --older-than 30d       also runs that began earlier\n  \
        backstory store gc --max-size 20G         the oldest runs, until the rest fits\n  \
        backstory store gc --older-than 4w --dry-run")]
    Gc(StoreGcArgs),

    /// Write runs, with the contents of their files, into one file
    #[command(after_help = "Examples:\n  \
        backstory store export nightly -o nightly.backstory\n  \
        backstory store export 7hx2k9qa 8jq0a3zz -o both.backstory")]
    Export(StoreExportArgs),

    /// Add runs from a file that `store export` wrote
    #[command(after_help = "Examples:\n  \
        backstory store import nightly.backstory\n\n\
        Runs that the store has already are skipped.")]
    Import(StoreImportArgs),

    /// Send runs to another store: in a directory, or over ssh
    #[command(after_help = exchange::PUSH)]
    Push(StorePushArgs),

    /// Fetch runs from another store: in a directory, or over ssh
    #[command(after_help = exchange::PULL)]
    Pull(StorePullArgs),

    /// Append runs to a lake: tables in Iceberg's format, for DuckDB and Spark
    #[command(after_help = "Examples:\n  \
        backstory store ship --to /srv/lake\n  \
        backstory store ship --to catalog:fleet --config ship.toml\n\n\
        Runs that the lake has already are skipped. This command needs the package\n\
        backstory-lake. See docs/howto/lake.md.")]
    Ship(StoreShipArgs),

    /// Exchange runs over stdin and stdout, for `push` and `pull` on the other side
    #[command(hide = true, after_help = exchange::SERVE_PEER)]
    ServePeer(StoreServePeerArgs),
}

/// `store stats`
#[derive(Debug, Args)]
pub struct StoreStatsArgs {
    /// Also read the deep logs, and count their bytes before compression and the bytes of I/O that
    /// they describe
    #[arg(long)]
    pub deep: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `store verify`
#[derive(Debug, Args)]
pub struct StoreVerifyArgs {
    /// Compare the sealed runs with their seals; with FILE, verify the seals that an exported
    /// document carries
    #[arg(long, value_name = "FILE", num_args = 0..=1, value_hint = clap::ValueHint::FilePath)]
    pub evidence: Option<Option<PathBuf>>,

    /// Only seals that a key of this file signed count (ALLOWED SIGNERS in ssh-keygen(1))
    #[arg(long, value_name = "FILE", requires = "evidence", alias = "allowed-signers", value_hint = clap::ValueHint::FilePath)]
    pub signers: Option<PathBuf>,

    /// FILE is a Sigstore bundle of `export --sigstore-key`, and this its public key (PEM)
    #[arg(long, value_name = "KEY", requires = "evidence", value_hint = clap::ValueHint::FilePath)]
    pub sigstore_key: Option<PathBuf>,

    /// Verify time stamps with these certificates (PEM)
    #[arg(long, value_name = "FILE", requires = "evidence", value_hint = clap::ValueHint::FilePath)]
    pub tsa_certificates: Option<PathBuf>,

    /// The chain must have this seal, as `store seal` printed it
    #[arg(long, value_name = "NUMBER:DIGEST", requires = "evidence")]
    pub expect: Option<Head>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `store seal`
#[derive(Debug, Args)]
pub struct StoreSealArgs {
    /// Runs to seal, by id or name
    #[arg(value_name = "RUN", required_unless_present = "all")]
    pub runs: Vec<String>,

    /// Seal all runs that are not sealed yet, the oldest first
    #[arg(long, conflicts_with = "runs")]
    pub all: bool,

    /// Seal runs again that are sealed already: with a key, or after `store rebuild` by a newer
    /// version
    #[arg(long)]
    pub again: bool,

    /// Sign with this SSH key; by default `key` in [evidence] of config.toml
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub key: Option<PathBuf>,

    /// Get time stamps from this authority (RFC 3161); by default `tsa` in [evidence]
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    pub tsa: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `store rebuild`
#[derive(Debug, Args)]
pub struct StoreRebuildArgs {
    /// Rebuild although some runs have no log any more, and forget these runs
    #[arg(long)]
    pub force: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The words of the engines. The help shows an engine that serves comparisons only if this program
/// has it.
fn engines() -> impl TypedValueParser<Value = StoreEngine> {
    let values = StoreEngine::ALL.iter().map(|engine| {
        let shown = engine.is_built() || !engine.is_for_comparison();
        PossibleValue::new(engine.word()).hide(!shown)
    });
    PossibleValuesParser::new(values).try_map(|word| StoreEngine::from_word(&word))
}

/// `store migrate`
#[derive(Debug, Args)]
pub struct StoreMigrateArgs {
    /// Engine to move to
    #[arg(long, value_name = "ENGINE", value_parser = engines())]
    pub to: StoreEngine,

    /// Database of a PostgreSQL server, with --to postgresql: postgresql://USER@HOST/DATABASE
    #[arg(long, value_name = "CONNECTION", required_if_eq("to", "postgresql"))]
    pub connection: Option<String>,

    /// Keep the old database beside the new one, under a name that ends in .old
    #[arg(long)]
    pub keep_old: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `store gc`
#[derive(Debug, Args)]
pub struct StoreGcArgs {
    /// Remove runs that began longer ago than AGE (30d, 12h, 4w)
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub older_than: Option<i64>,

    /// Remove the oldest runs until the store takes at most SIZE (500M, 20G)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,

    /// Keep to the limits in config.toml: noise, and what is large and old, goes first. What an
    /// existing file came from stays
    #[arg(long, conflicts_with_all = ["older_than", "max_size"])]
    pub limits: bool,

    /// Remove no run, only contents that no run refers to (the default)
    #[arg(long, conflicts_with_all = ["older_than", "max_size", "limits"])]
    pub unreferenced: bool,

    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `store export`
#[derive(Debug, Args)]
pub struct StoreExportArgs {
    /// Runs to export
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,

    /// File to write
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: PathBuf,
}

/// `store ship`
#[derive(Debug, Args)]
pub struct StoreShipArgs {
    /// Runs to ship; by default all
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,

    /// Directory of the lake, or catalog:NAME (see PyIceberg)
    #[arg(long, value_name = "LAKE", value_hint = clap::ValueHint::DirPath)]
    pub to: OsString,

    /// Also erase from the lake the runs that this store sent and no longer has
    #[arg(long)]
    pub forget: bool,

    /// Rules about what may leave this machine (TOML)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `store import`
#[derive(Debug, Args)]
pub struct StoreImportArgs {
    /// File that `store export` wrote
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
