//! The commands whose command line is parsed without the definitions of all others.
//!
//! `record` is started for each recorded command, and starts `index` afterwards. The definitions of
//! all commands take about a millisecond of each.
//!
//! Invariant: a command line means the same as with all definitions. A line that is wrong, or asks
//! for help, is parsed with these.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use super::program::IndexArgs;
use super::record::RecordArgs;
use super::{Cli, Command, CommonArgs};

/// A command line with one of these commands.
#[derive(Parser)]
struct Direct {
    #[command(flatten)]
    common: CommonArgs,
    #[command(subcommand)]
    command: DirectCommand,
}

/// The commands.
#[derive(Subcommand)]
enum DirectCommand {
    Record(Box<RecordArgs>),
    Index(IndexArgs),
}

impl Cli {
    /// Parses a command line, of which the first word is the program.
    ///
    /// # Errors
    ///
    /// The mistake in it, or the help that it asks for.
    pub fn of(words: &[OsString]) -> Result<Cli, clap::Error> {
        let command = words.get(1).and_then(|word| word.to_str());
        if let Some("record" | "index") = command
            && let Ok(Direct { common, command }) = Direct::try_parse_from(words)
        {
            let command = match command {
                DirectCommand::Record(args) => Command::Record(*args),
                DirectCommand::Index(args) => Command::Index(args),
            };
            return Ok(Cli { common, command });
        }
        Cli::try_parse_from(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_means_the_same_as_with_the_definitions_of_all_commands() {
        let lines = [
            "record make",
            "record -- make -j 4",
            "record --store here --contents lazy make --store there",
            "record --no-pager --guard=auto -n a -- sh -c x",
            "record help",
            "record --help",
            "record",
            "record --nonsense make",
            "record --version",
            "index",
            "index --store here",
            "index --wait more",
            "index -h",
            "--store here record make",
            "recor make",
        ];
        for line in lines {
            let words = format!("backstory {line}");
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            let text = |parsed: Result<Cli, clap::Error>| match parsed {
                Ok(cli) => format!("{cli:?}"),
                Err(error) => error.to_string(),
            };
            let whole = text(Cli::try_parse_from(&words));
            assert_eq!(text(Cli::of(&words)), whole, "{line}");
        }
    }
}
