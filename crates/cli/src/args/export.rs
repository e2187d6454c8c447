//! Arguments of `export` and `contents`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The text after the options in the help of `export`.
pub const EXPORT: &str = "Examples:\n  \
    backstory export                               list the formats\n  \
    backstory export make -o Makefile              the latest run as rules\n  \
    backstory export shell report.txt -o again.sh  all that report.txt came from\n  \
    backstory export dot nightly --level process -o - | dot -Tsvg > nightly.svg\n  \
    backstory export make --exclude '**/*.log' --no-patterns -o Makefile\n\n\
    The output appears completely or not at all. A run whose record is not complete\n\
    is exported with a warning.";

/// The text after the options in the help of `contents`.
pub const CONTENTS: &str = "Examples:\n  \
    backstory contents report.txt -o report.old\n  \
    backstory contents report.txt --run nightly | diff - report.txt\n  \
    backstory contents report.txt@nightly    as that run left or used it\n  \
    backstory contents 'report.txt@{2 days ago}'\n  \
    backstory contents 5a1f09c2 -o input.csv   by the beginning of its digest\n\n\
    A date is written as for git: '2 days ago', 'yesterday 14:00', 2026-11-20.\n\
    A digest is BLAKE3 or SHA-256, in full or an unambiguous beginning of it.\n\
    `record` stores contents, except with --contents=off.";

/// `export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The format; without it the formats are listed
    #[arg(value_name = "FORMAT")]
    pub format: Option<String>,

    /// A run (id or name), or a file for all that it came from, over all runs; by default the
    /// latest run
    #[arg(value_name = "RUN|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub subject: Option<OsString>,

    /// Where to write; `-` is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-", value_hint = clap::ValueHint::AnyPath)]
    pub output: PathBuf,

    /// The nodes of pictures and data: each command that a person would write, each process, or
    /// everything. The default is `command`, and `all` for `cdm`, `ecs` and `ocsf`
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<Level>,

    /// Leave out files whose paths match GLOB (repeatable; `*` stays within a directory, `**`
    /// crosses directories)
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,

    /// In `spdx`: also list every file, with its checksums and the files that it was made from. In
    /// `in-toto`: also list every file of a package that was used, with its checksums
    #[arg(long)]
    pub files: bool,

    /// In `in-toto`: also list the inputs that the build did not declare. This asks the build tool
    /// for its rules, in the directory of the run
    #[arg(long)]
    pub undeclared: bool,

    /// In `opm`: write each recorded call of a function with its arguments and its result, as
    /// SPADE's LLVMTrace does, instead of the graph. The subject is a run of `record --functions`
    #[arg(long)]
    pub calls: bool,

    /// In `in-toto`: sign the attestation with this private key (PEM, ECDSA or RSA). The result is
    /// a Sigstore bundle, which is verified offline with the public key
    #[arg(long, value_name = "KEY", value_hint = clap::ValueHint::FilePath)]
    pub sigstore_key: Option<PathBuf>,

    /// With `--sigstore-key`: get a time stamp of the signature from this authority (RFC 3161)
    #[arg(long, value_name = "URL", requires = "sigstore_key", value_hint = clap::ValueHint::Url)]
    pub tsa: Option<String>,

    /// Write one rule for each step of a workflow, even if several steps differ in a name only
    #[arg(long)]
    pub no_patterns: bool,
}

/// `--level`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Level {
    Command,
    Process,
    All,
}

/// `contents`
#[derive(Debug, Args)]
pub struct ContentsArgs {
    /// The file: PATH, PATH@RUN or PATH@{DATE}; or the digest of a content
    #[arg(value_name = "PATH|PATH@RUN|PATH@{DATE}|DIGEST", value_hint = clap::ValueHint::AnyPath)]
    pub what: OsString,

    /// The last version that this run used or wrote
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}
