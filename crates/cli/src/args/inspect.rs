//! The arguments of `inspect`, `undo` and `redo`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

pub const INSPECT: &str = "Examples:\n  \
    backstory inspect report.xlsx            sheets, cells, authors\n  \
    backstory inspect model.safetensors@nightly\n  \
    backstory inspect a.ipynb b.ipynb        what changed from one to the other\n  \
    backstory inspect a.csv b.csv --key id   match rows by their column id\n\n\
    Inspectors know texts, CSV, notebooks, office documents, archives, ELF files,\n\
    pickles, tensors and git objects. They run in a sandbox: `backstory-inspect`,\n\
    which is installed beside this program. Inspectors of your own are listed in\n\
    ~/.config/backstory/inspectors.toml (docs/inspect.md).";

pub const UNDO: &str = "Examples:\n  \
    backstory undo notes.txt --dry-run       which version would come back?\n  \
    backstory undo notes.txt\n\n\
    The version comes from the stored contents. A file whose content is in no\n\
    recorded version is left alone. `backstory log -- PATH` lists all versions.";

pub const REDO: &str = "Examples:\n  \
    backstory redo notes.txt                 the version before `backstory undo`";

/// `inspect`
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The file as it is now, or a version of it: PATH, PATH@RUN or PATH@{DATE}
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub path: OsString,

    /// Tell what changed from PATH to this file or version
    #[arg(value_name = "PATH2", value_hint = clap::ValueHint::AnyPath)]
    pub other: Option<OsString>,

    /// Match the rows of both tables (CSV, TSV, Parquet, Arrow) by this column, not by the first
    /// one. For a key of several columns, give the option for each
    #[arg(long, value_name = "COLUMN", requires = "other")]
    pub key: Vec<String>,

    /// Print all parts of the file, not only the first of them
    #[arg(long)]
    pub full: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `undo` and `redo`
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// The file
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    pub path: PathBuf,

    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}
