//! Arguments of `inputs`.

use std::path::PathBuf;

use clap::Args;

use super::runs::RunArgs;

/// The text after the options in the help of `inputs`.
pub const INPUTS: &str = "Examples:\n  \
    backstory inputs                          own files that the latest run read\n  \
    backstory inputs --undeclared             what the build's rules forget\n  \
    backstory inputs --undeclared --declared inputs.txt nightly\n\n\
    Declarations come from Make, ninja, CMake, Snakemake, depfiles and\n\
    Build-Depends. Make is run with -pn, which executes no recipe but evaluates\n\
    the makefile.\n\n\
    Exit status of --undeclared: 0 if all is declared, 1 if an undeclared file was\n\
    read, 2 if the run has no declarations.";

/// `inputs`
#[derive(Debug, Args)]
pub struct InputsArgs {
    /// Which run, and how to print
    #[command(flatten)]
    pub run: RunArgs,

    /// Compare what was read with what the build declared: list files that no rule names for
    /// their target, and named files that were not read
    #[arg(long)]
    pub undeclared: bool,

    /// A list of declared inputs: one path or GLOB a line, relative to the run's directory
    #[arg(long, value_name = "FILE", requires = "undeclared", value_hint = clap::ValueHint::FilePath)]
    pub declared: Option<PathBuf>,

    /// List every file and package that differs, and not the first of each kind only
    #[arg(long, requires = "undeclared")]
    pub all: bool,
}
