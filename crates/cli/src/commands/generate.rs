//! `completions` and `man`: generated from the same definition as the parser.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::{Outcome, answer};
use crate::args::Cli;
use crate::args::program::{CompletionsArgs, ManArgs};
use crate::error::Failure;

/// Prints a completion script.
pub fn completions(args: CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut offered(), "backstory", &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = match args.shell {
        Shell::Bash => bash_with_words(&script),
        Shell::Zsh => zsh_with_words(&script),
        Shell::Fish => format!("{script}{FISH_WORDS}"),
        _ => script.into_owned(),
    };
    answer(|out| out.write_all(script.as_bytes()))
}

/// The program with the commands that a user types. The generators would offer the others, too.
fn offered() -> Command {
    let whole = Cli::command();
    let commands = whole.get_subcommands().filter(|one| !one.is_hide_set());
    Command::new("backstory")
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments().cloned())
        .subcommands(commands.cloned())
}

/// After the generated function: words of the user's store replace the names of arguments. Bash
/// splits words at `@`, `=` and `:`, and replaces the last part only.
const BASH_WORDS: &str = r#"
_backstory_words() {
    local program="${COMP_WORDS[0]}" rest="$COMP_LINE" typed=() parts=() part word at
    for ((at = 0; at <= COMP_CWORD; at++)); do
        part="${COMP_WORDS[at]}"
        if ((at > 0)) && [[ -n "$part" && "$rest" == "$part"* ]]; then
            typed[${#typed[@]}-1]+="$part"
        else
            typed+=("$part")
        fi
        rest="${rest#*"$part"}"
    done
    word="${typed[${#typed[@]}-1]}"
    for part in "${typed[@]}"; do
        case "$part" in
            --*=*) parts+=("${part%%=*}" "${part#*=}") ;;
            *) parts+=("$part") ;;
        esac
    done
    local COMP_WORDS=("${parts[@]}") COMP_CWORD=$((${#parts[@]} - 1))
    local last="${parts[COMP_CWORD]}"
    _backstory "$1" "$last" "${parts[COMP_CWORD-1]}"
    [[ "$last" == -* ]] && return 0
    local IFS=$'\n'
    local found=($("$program" complete-words -- "${parts[@]:1}" 2>/dev/null))
    [[ ${#found[@]} -eq 0 ]] && return 0
    COMPREPLY=("${found[@]#"${word%"$2"}"}")
    [[ ${#found[@]} -eq 1 && "${found[0]}" == */ ]] && compopt -o nospace 2>/dev/null
    return 0
}
"#;

/// The function below a subcommand has the words from the subcommand on.
const ZSH_TYPED: &str = r#"
    local -a backstory_typed=("${(@)words[1,CURRENT]}")"#;

const ZSH_WORDS: &str = r#"
_backstory_words() {
    local -a found=(${(f)"$("${(Q)backstory_typed[1]}" complete-words -- "${(@Q)backstory_typed[2,-1]}" 2>/dev/null)"})
    if (( ${#found} )); then
        compadd -S '' -- ${(M)found:#*/}
        compadd -- ${found:#*/}
    else
        _files
    fi
}
"#;

const FISH_WORDS: &str = r#"
complete -c backstory -a "(backstory complete-words -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)"
"#;

fn bash_with_words(script: &str) -> String {
    let register = script
        .find("\nif [[ \"${BASH_VERSINFO[0]}\" -eq 4")
        .unwrap_or(script.len());
    let (functions, register) = script.split_at(register);
    let register = register.replace("complete -F _backstory ", "complete -F _backstory_words ");
    format!("{functions}{BASH_WORDS}{register}")
}

/// Arguments that are a file, or anything, are completed with words of the store, too.
fn zsh_with_words(script: &str) -> String {
    let with_words = script
        .replace(":_default' ", ":_backstory_words' ")
        .replace(":_files' ", ":_backstory_words' ")
        .replacen(
            "\n_backstory() {",
            &format!("\n_backstory() {{{ZSH_TYPED}"),
            1,
        );
    match with_words.find('\n') {
        // The first line says which command the file is for.
        Some(end) => format!("{}\n{ZSH_WORDS}{}", &with_words[..end], &with_words[end..]),
        None => with_words,
    }
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
    for command in commands {
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone()).render(&mut page)?;
        let name = command
            .get_display_name()
            .unwrap_or_else(|| command.get_name());
        fs::write(dir.join(format!("{name}.1")), page)?;
    }
    fs::write(dir.join("backstory.1"), main_page(&command)?)
}

/// The commands by what they are for. A command that is in no group is a question.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Record", &["record", "index"]),
    ("Ask", &[]),
    ("Act", &["replay", "rerun"]),
    ("Hand on", &["export"]),
    (
        "Keep house",
        &["name", "note", "tag", "rm", "store", "completions", "man"],
    ),
];

/// The visible commands of a group.
fn members(command: &Command, group: usize) -> impl Iterator<Item = &Command> {
    let of = |name: &str| GROUPS.iter().position(|(_, names)| names.contains(&name));
    command.get_subcommands().filter(move |command| {
        let shown = !command.is_hide_set() && command.get_name() != "help";
        shown && of(command.get_name()).unwrap_or(1) == group
    })
}

/// The page of the program: each command with its arguments, by groups.
fn main_page(command: &Command) -> io::Result<Vec<u8>> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    writeln!(page, ".SH SYNOPSIS")?;
    for (group, (title, _)) in GROUPS.iter().enumerate() {
        writeln!(page, ".SS \"{title}\"\n.nf")?;
        for member in members(command, group) {
            let usage = member.clone().render_usage().to_string();
            for line in usage.trim_start_matches("Usage:").trim().lines() {
                let (program, arguments) = split_usage(line.trim(), member.get_name());
                writeln!(page, "\\fB{}\\fR{}", roff(program), roff(arguments))?;
            }
        }
        writeln!(page, ".fi")?;
    }
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    writeln!(page, ".SH COMMANDS")?;
    for (group, (title, _)) in GROUPS.iter().enumerate() {
        writeln!(page, ".SS \"{title}\"")?;
        for member in members(command, group) {
            let about = member.get_about().map(ToString::to_string);
            let name = roff(member.get_name());
            let about = about.unwrap_or_default();
            writeln!(page, ".TP\n\\fBbackstory\\-{name}\\fR(1)\n{}", roff(&about))?;
        }
    }
    man.render_extra_section(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// The name of a command and its arguments: `backstory show` and ` [OPTIONS] [RUN]`.
fn split_usage<'l>(line: &'l str, name: &str) -> (&'l str, &'l str) {
    let end = line.find(&format!(" {name}")).map(|at| at + 1 + name.len());
    line.split_at(end.unwrap_or(0))
}

/// Text as roff shows it unchanged.
fn roff(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}
