//! `completions` and `man`: generated from the same definition as the parser.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use super::{Outcome, answer};
use crate::args::Cli;
use crate::args::program::{CompletionsArgs, ManArgs};
use crate::error::Failure;

/// Prints a completion script.
pub fn completions(args: CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "backstory", &mut script);
    answer(|out| std::io::Write::write_all(out, &script))
}

/// Writes one page for the program and one for each command.
pub fn man(args: ManArgs) -> Outcome {
    let written = if args.markdown {
        write_reference(&args.dir)
    } else {
        write_pages(&args.dir)
    };
    written.map_err(|error| {
        Failure::not_found(format!(
            "cannot write the man pages to {}: {error}",
            args.dir.display()
        ))
    })?;
    Ok(0)
}

fn write_reference(dir: &Path) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    let mut command = Cli::command();
    command.build();
    super::reference::write(dir, &command)
}

fn write_pages(dir: &Path) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    let mut command = Cli::command();
    command.build();
    let commands = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help");
    for command in std::iter::once(&command).chain(commands) {
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone()).render(&mut page)?;
        let name = command
            .get_display_name()
            .unwrap_or_else(|| command.get_name());
        fs::write(dir.join(format!("{name}.1")), page)?;
    }
    Ok(())
}
