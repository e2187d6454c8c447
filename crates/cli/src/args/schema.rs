//! Arguments of `schema` and its commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The text after the options in the help of `schema`.
pub const EXAMPLES: &str = "Examples:\n  \
    backstory schema add org.example.metric metric.json\n  \
    backstory schema add org.example.metric@2 metric-2.json\n  \
    backstory schema list\n\n\
    Programs add extended records with `backstory emit record`, or in C, Rust or\n\
    Python. A record is compared with the schema of its type when its run enters the\n\
    store. A record that violates its schema stays, and `backstory show` lists it.\n\
    `backstory store rebuild` compares all again.";

/// `schema`
#[derive(Debug, Subcommand)]
pub enum SchemaCommand {
    /// Register a JSON Schema for a type of extended records
    #[command(after_help = "Examples:\n  \
        backstory schema add org.example.metric metric.json\n  \
        backstory schema add org.example.metric@2 metric-2.json\n\n\
        Without a version, the next one is taken. A version that is registered is never\n\
        changed: remove it first. A schema may refer to its own parts only.")]
    Add(SchemaAddArgs),

    /// Print the registered types and versions
    #[command(after_help = "Examples:\n  \
        backstory schema list\n  \
        backstory schema list --json")]
    List(SchemaListArgs),

    /// Print a registered schema
    #[command(after_help = "Examples:\n  \
        backstory schema show org.example.metric\n  \
        backstory schema show org.example.metric@1\n\n\
        Without a version, the newest is printed.")]
    Show(SchemaNameArgs),

    /// Remove a registered schema
    #[command(after_help = "Examples:\n  \
        backstory schema remove org.example.metric@1\n\n\
        Without a version, all versions are removed. Runs that are in the store stay as\n\
        they are.")]
    Remove(SchemaNameArgs),
}

/// `schema add`
#[derive(Debug, Args)]
pub struct SchemaAddArgs {
    /// Type of the records, perhaps with a version: `org.example.metric` or `org.example.metric@2`
    #[arg(value_name = "TYPE[@VERSION]")]
    pub name: String,

    /// File with the schema; `-` for standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
}

/// `schema list`
#[derive(Debug, Args)]
pub struct SchemaListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `schema show` and `schema remove`
#[derive(Debug, Args)]
pub struct SchemaNameArgs {
    /// Type of the records, perhaps with a version
    #[arg(value_name = "TYPE[@VERSION]")]
    pub name: String,
}
