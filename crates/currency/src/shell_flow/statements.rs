//! The statements of a shell's text: the programs that each may start, and the state of the shell
//! that each may use and set.
//!
//! Names are found by words of the text. So a statement may seem to use a variable whose name it
//! only prints. Invariant: each name that a statement can use or set is among its own.

use std::collections::HashSet;

use brush_parser::ast::CompoundList;
use brush_parser::{Parser, ParserOptions, SourceInfo};

/// The directory of the shell, as a name of its state.
pub const DIRECTORY: &str = "/";
/// The positional parameters.
pub const POSITIONAL: &str = "@";
/// The status of the last command.
pub const STATUS: &str = "?";
/// The commands in the background, and their statuses.
pub const BACKGROUND: &str = "&";

/// Options of a shell that are understood.
const OPTIONS: [&str; 8] = [
    "errexit",
    "nounset",
    "xtrace",
    "verbose",
    "noglob",
    "noclobber",
    "pipefail",
    "posix",
];

/// A part of the state of a shell.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// All names.
    pub all: bool,
    /// These names.
    pub names: HashSet<String>,
}

/// A statement at the top level of a text.
#[derive(Debug, Clone, Default)]
pub struct Statement {
    /// Its text, with the texts of the functions that it may call.
    pub text: String,
    /// The words of the programs that it may start. `None` stands for any number of words.
    pub programs: Vec<Vec<Option<String>>>,
    /// It is one program, which is the last of `programs`: with its start, all words are expanded.
    pub is_program: bool,
    /// The files to which it may redirect. `None` stands for any file.
    pub targets: Vec<Option<String>>,
    /// It interprets another file.
    pub interprets: bool,
    /// It opens descriptors for later statements.
    pub opens: bool,
    /// It may start a program with any words.
    pub starts_any: bool,
    /// It may start a process that executes no program.
    pub forks: bool,
    /// The names that it may set.
    pub sets: Names,
    /// It may use everything.
    pub uses_all: bool,
    /// It may end the shell.
    pub ends: bool,
    /// It has a condition on values, whose status may end the shell under `-e`.
    pub tests: bool,
}

/// A text that is understood.
#[derive(Debug, Clone, Default)]
pub struct ShellText {
    /// Its statements, in order.
    pub statements: Vec<Statement>,
    /// A status may end the shell: `set -e`.
    pub is_errexit: bool,
    /// An unset variable may end the shell: `set -u`.
    pub is_nounset: bool,
    /// Names that statements put into the environment of programs.
    pub exported: HashSet<String>,
}

/// Which shell reads a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// dash(1), or `sh`.
    Sh,
    /// bash(1).
    Bash,
}

/// The lists of commands in a text, if it has no error.
pub fn parsed(text: &str, dialect: Dialect) -> Option<Vec<CompoundList>> {
    let mut parser = Parser::new(text.as_bytes(), &syntax(dialect), &SourceInfo::default());
    Some(parser.parse_program().ok()?.complete_commands)
}

/// How a dialect is read.
pub fn syntax(dialect: Dialect) -> ParserOptions {
    ParserOptions {
        sh_mode: dialect == Dialect::Sh,
        ..ParserOptions::default()
    }
}

/// The words of letters, digits and underscores in a text.
pub fn words(text: &str) -> HashSet<&str> {
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    text.split(is_end).filter(|word| !word.is_empty()).collect()
}

impl ShellText {
    /// Notes options by their letters. `None`: one is not understood.
    pub fn take_options(&mut self, letters: &str) -> Option<()> {
        for letter in letters.chars() {
            match letter {
                'e' => self.is_errexit = true,
                'u' => self.is_nounset = true,
                'x' | 'v' | 'f' | 'C' => {}
                _ => return None,
            }
        }
        Some(())
    }
}

impl Names {
    /// Adds a name.
    pub fn add(&mut self, name: &str) {
        self.names.insert(name.to_owned());
    }
}

/// The letters for options of `set`, or of a shell's own words. `None`: these are no options, or
/// not only options that are understood.
pub fn option_letters<'w>(words: impl Iterator<Item = &'w str>) -> Option<String> {
    let (mut letters, mut words) = (String::new(), words.peekable());
    words.peek()?;
    while let Some(option) = words.next() {
        match option {
            "-o" | "+o" => {
                let name = words.next().filter(|name| OPTIONS.contains(name))?;
                letters.push(match name {
                    "errexit" => 'e',
                    "nounset" => 'u',
                    _ => 'v',
                });
            }
            _ => {
                let all = option.strip_prefix(['-', '+'])?;
                let is_known = |c: char| "euxvfC".contains(c);
                if all.is_empty() {
                    return None;
                }
                match all.strip_suffix('o') {
                    // `-euo pipefail`
                    Some(rest) if rest.chars().all(is_known) => {
                        words.next().filter(|name| OPTIONS.contains(name))?;
                        letters.push_str(rest);
                    }
                    None if all.chars().all(is_known) => letters.push_str(all),
                    _ => return None,
                }
            }
        }
    }
    Some(letters)
}

/// The words of a text, each with its own memory.
pub fn words_of(text: &str) -> Vec<String> {
    words(text).into_iter().map(str::to_owned).collect()
}
