//! The statements of a shell's text: the programs that each may start, and the state of the shell
//! that each may use and set.
//!
//! In: a text, and how the shell was started. Out: its top-level statements. `None` if the text has
//! something whose effects are not understood. Names are found by words of the text, so a statement
//! may seem to use a variable that it only prints as text, and never the other way round.

use std::collections::{HashMap, HashSet};

use brush_parser::ast::CompoundList;
use brush_parser::{Parser, ParserOptions, SourceInfo};

use super::reader::{Reader, functions_of_list};

/// The directory of the shell, as a name of its state.
pub const DIRECTORY: &str = "/";
/// The positional parameters.
pub const POSITIONAL: &str = "@";
/// The status of the last command.
pub const STATUS: &str = "?";
/// The commands in the background, and their statuses.
pub const BACKGROUND: &str = "&";

/// Words after which a text is not understood: other names of commands, and options that change
/// what commands mean.
const REFUSED: [&str; 9] = [
    "alias",
    "unalias",
    "coproc",
    "allexport",
    "lastpipe",
    "expand_aliases",
    "extdebug",
    "errtrace",
    "functrace",
];

/// Signs after which a text is not understood: indirect names, and the last word.
const REFUSED_SIGNS: [&str; 4] = ["${!", "$_", "${_", "BASH_COMMAND"];

/// Signs that dash takes for something else than bash does.
const BASH_SIGNS: [&str; 9] = [
    "&>",
    "<(",
    ">(",
    "|&",
    "$'",
    "$\"",
    "[[",
    "<<<",
    "function ",
];

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
    /// It opens descriptors for later statements.
    pub opens: bool,
    /// It may start a program with any words.
    pub starts_any: bool,
    /// It may start a process that executes no program.
    pub forks: bool,
    /// What it may set.
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

/// Reads a text. `options`: the letters of the options with which the shell was started.
pub fn parse(text: &str, dialect: Dialect, options: &str) -> Option<ShellText> {
    let words = words(text);
    let has = |word: &&str| words.contains(*word);
    if REFUSED.iter().any(has)
        || REFUSED_SIGNS.iter().any(|sign| text.contains(sign))
        || dialect == Dialect::Sh && BASH_SIGNS.iter().any(|sign| text.contains(sign))
    {
        return None;
    }
    let mut found = ShellText::default();
    found.take_options(options)?;
    let program = parsed(text, dialect)?;
    let mut functions = HashMap::new();
    for list in &program {
        functions_of_list(list, &mut functions);
    }
    let mut read = |text: String, read: &dyn Fn(&mut Reader<'_, '_>) -> Option<()>| {
        let mut reader = Reader::of(text, dialect, &functions, &mut found.exported);
        read(&mut reader)?;
        Some((reader.statement, reader.options?, reader.actions))
    };
    let (mut statements, mut letters, mut actions) = (Vec::new(), String::new(), Vec::new());
    for item in program.iter().flat_map(|list| &list.0) {
        let (statement, options, traps) =
            read(item.0.to_string(), &|reader| reader.item(&item.0, &item.1))?;
        statements.push(statement);
        letters.push_str(&options);
        actions.extend(traps);
    }
    for action in actions {
        let lists = parsed(&action, dialect)?;
        let all = |reader: &mut Reader<'_, '_>| lists.iter().try_for_each(|list| reader.list(list));
        statements.push(read(action, &all)?.0);
    }
    found.statements = statements;
    found.take_options(&letters)?;
    Some(found)
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
    fn take_options(&mut self, letters: &str) -> Option<()> {
        for letter in letters.chars() {
            match letter {
                'e' => self.is_errexit = true,
                'u' => self.is_nounset = true,
                'x' | 'v' | 'f' | 'C' | 'c' => {}
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

#[cfg(test)]
mod tests {
    use super::{Dialect, ShellText, option_letters, parse};

    fn text(text: &str) -> ShellText {
        parse(text, Dialect::Bash, "").unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn each_statement_has_its_programs_with_their_words() {
        let text = text(
            "head -n $(cat n) 'a b' > out\nif grep -q x f; then sort < l; fi\n\
             perl -e 'open F, \"n\"; exit <F>'; echo $?\n( exec > o6; cat l10 )\n\
             case $(cat w) in a*) cat l5;; esac\n\"$BIN\"/go look m5",
        );
        let programs = |at: usize| -> Vec<String> {
            let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "*".to_owned());
            let words = |words: &Vec<_>| words.iter().map(word).collect::<Vec<_>>().join("|");
            text.statements[at].programs.iter().map(words).collect()
        };
        assert_eq!(programs(0), ["cat|n", "head|-n|*|a b"]);
        assert_eq!(programs(1), ["grep|-q|x|f", "sort"]);
        assert_eq!(programs(2), ["perl|-e|open F, \"n\"; exit <F>"]);
        assert_eq!(programs(3), [""; 0]);
        assert_eq!(programs(4), ["cat|l10"]);
        assert_eq!(programs(5), ["cat|w", "cat|l5"]);
        assert_eq!(programs(6), ["*|look|m5"]);
    }

    #[test]
    fn what_a_copy_of_the_shell_sets_is_lost() {
        for (one, sets) in [
            ("x=$(cat n)", true),
            ("read x < n", true),
            ("for x in a b; do :; done", true),
            ("f() { x=1; }; f", true),
            ("export x=1", true),
            ("echo ${x:=1}", true),
            ("echo $((x = 1))", true),
            ("mapfile -t x < n", true),
            ("printf -v x %s 1", true),
            ("set x; eval \"$a\"", true),
            ("(x=1)", false),
            ("x=1 | cat", false),
            ("x=1 &", false),
            ("echo $(x=1)", false),
            ("x=1 cat", false),
            ("echo x", false),
        ] {
            let text = text(one);
            let sets_x = |names: &super::Names| names.all || names.names.contains("x");
            let is_set = text.statements.iter().any(|one| sets_x(&one.sets));
            assert_eq!(is_set, sets, "{one}");
        }
    }

    #[test]
    fn a_text_is_refused_if_its_commands_may_be_others() {
        for one in [
            "alias cat=tac; cat a",
            "declare -n x=y",
            "echo ${!x}",
            "trap 'cat a' ERR; b",
            "set -a; x=1",
            "if true",
        ] {
            assert!(parse(one, Dialect::Bash, "").is_none(), "{one}");
        }
        assert!(parse("cat <(b)", Dialect::Sh, "").is_none());
        assert!(parse("trap 'rm -f a' EXIT; b", Dialect::Sh, "").is_some());
        let script = "(trap 'echo $? > o1' EXIT; grep -q yes f2; exit $?)\ns=$(cat w4); sed \"1s/.*/$s/\" l5 > o2";
        assert!(parse(script, Dialect::Sh, "").is_some());
        let script = "tr a-m \"$(cut -c 1 w4)\" < l5 > o5\ncp o3 m7; ar rcD o4.a m7 2>/dev/null; ar p o4.a > o4; rm m7";
        assert!(parse(script, Dialect::Sh, "").is_some());
    }

    #[test]
    fn options_are_read_with_their_names() {
        for (words, letters) in [
            ("-e", Some("e")),
            ("-eu", Some("eu")),
            ("-euo pipefail", Some("eu")),
            ("-o errexit -x", Some("ex")),
            ("-a", None),
            ("-o emacs", None),
            ("-- a", None),
            ("", None),
        ] {
            let found = option_letters(words.split_whitespace());
            assert_eq!(found.as_deref(), letters, "{words}");
        }
    }
}
