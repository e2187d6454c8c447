//! `man --markdown`: the command line reference of the documentation site.
//!
//! In: clap's definition of the commands. Out: one Markdown page for each visible command, and
//! `index.md`, which lists them. Invariant: every text comes from the definition that `--help`
//! prints. Hidden commands and options have no page and no row.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Command};

/// Writes the pages into `dir`, which must exist.
pub fn write(dir: &Path, program: &Command) -> io::Result<()> {
    let mut list = String::from(
        "# Commands\n\nThis page is for users. It lists every command, with a link to its arguments, \
         options and examples. The pages are generated from the program's own definition.\n\n\
         | command | what it does |\n| --- | --- |\n",
    );
    for command in visible(program) {
        let name = full_name(command);
        let file = format!("{}.md", name.replace(' ', "-"));
        fs::write(dir.join(&file), page(command))?;
        let _ = writeln!(
            list,
            "| [`{name}`]({file}) | {} |",
            cell(command.get_about())
        );
        for nested in visible(command) {
            let anchor = full_name(nested).replace(' ', "-");
            let _ = writeln!(
                list,
                "| [`{}`]({file}#{anchor}) | {} |",
                full_name(nested),
                cell(nested.get_about())
            );
        }
    }
    list.push_str("\n## Options that every command has\n\n");
    list.push_str(&table(program, true));
    list.push_str(&after(program));
    fs::write(dir.join("index.md"), list)
}

/// One command with its subcommands.
fn page(command: &Command) -> String {
    let mut text = format!("# {}\n\n{}", full_name(command), body(command));
    for nested in visible(command) {
        let name = full_name(nested);
        let _ = write!(text, "\n## {name}\n\n{}", body(nested));
    }
    text
}

/// The purpose, usage, arguments, options and examples of one command.
fn body(command: &Command) -> String {
    let mut text = format!("{}\n", cell(command.get_about()));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let _ = write!(text, "\n```console\n$ {usage}\n```\n\n");
    text.push_str(&table(command, false));
    text.push_str(&after(command));
    text
}

/// The arguments and options that belong to this command alone, or to all commands.
fn table(command: &Command, global: bool) -> String {
    let mut rows = String::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if argument.is_hide_set() || argument.is_global_set() != global || id == "help" {
            continue;
        }
        let _ = writeln!(rows, "| {} | {} |", spelling(argument), meaning(argument));
    }
    if rows.is_empty() {
        return rows;
    }
    format!("| argument or option | meaning |\n| --- | --- |\n{rows}\n")
}

/// How an argument is written: `-o`, `--output` `OUT`.
fn spelling(argument: &Arg) -> String {
    let value = argument
        .get_value_names()
        .filter(|_| argument.get_action().takes_values())
        .map(|names| names.join(" "))
        .unwrap_or_default();
    let value = value.replace('|', "\\|");
    let mut words = Vec::new();
    if let Some(short) = argument.get_short() {
        words.push(format!("`-{short}`"));
    }
    if let Some(long) = argument.get_long() {
        words.push(format!("`--{long}`"));
    }
    if words.is_empty() {
        return format!("`{value}`");
    }
    let words = words.join(", ");
    if value.is_empty() {
        words
    } else {
        format!("{words} `{value}`")
    }
}

/// The help of an argument, with its possible values and its default.
fn meaning(argument: &Arg) -> String {
    let mut text = cell(argument.get_help());
    let values: Vec<_> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && argument.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        let _ = write!(text, ". Values: {}", values.join(", "));
    }
    if argument.get_action().takes_values() && !argument.get_default_values().is_empty() {
        let values: Vec<_> = argument
            .get_default_values()
            .iter()
            .map(|value| value.to_string_lossy())
            .collect();
        let _ = write!(text, ". Default: `{}`", values.join(" "));
    }
    text
}

/// The examples and notes that follow the options in `--help`.
fn after(command: &Command) -> String {
    let Some(text) = command.get_after_help() else {
        return String::new();
    };
    let text = text.to_string();
    let (examples, notes) = text.split_once("\n\n").unwrap_or((&text, ""));
    let examples = examples.trim_start_matches("Examples:\n");
    let examples: Vec<_> = examples
        .lines()
        .map(|line| line.trim_start_matches("  "))
        .collect();
    let examples = examples.join("\n");
    let mut out = format!("**Examples**\n\n```text\n{examples}\n```\n");
    if !notes.is_empty() {
        let _ = write!(out, "\n{}\n", plain(notes));
    }
    out
}

/// A help text in one line of a table.
fn cell(text: Option<&StyledStr>) -> String {
    plain(&text.map(ToString::to_string).unwrap_or_default())
        .replace('\n', " ")
        .replace('|', "\\|")
}

/// Text in which Markdown finds no tags and no emphasis, outside of backticks.
fn plain(text: &str) -> String {
    text.split('`')
        .enumerate()
        .map(|(place, part)| {
            if place % 2 == 1 {
                format!("`{part}`")
            } else {
                part.replace('<', "&lt;")
                    .replace('*', "\\*")
                    .replace('_', "\\_")
            }
        })
        .collect()
}

/// The commands that `--help` lists, without `help` itself.
fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|nested| !nested.is_hide_set() && nested.get_name() != "help")
}

/// `backstory store gc`.
fn full_name(command: &Command) -> String {
    command
        .get_bin_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned()
}
