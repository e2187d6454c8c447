//! Reads the text of a shell as its statements.
//!
//! In: a text, and how the shell was started. Out: its top-level statements. `None` if the text has
//! something whose effects are not understood.

use std::collections::HashMap;

use super::reader::{Reader, functions_of_list};
use super::statements::{Dialect, ShellText, parsed, words};

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

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::shell_flow::statements::{Dialect, Names, ShellText, option_letters};

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
            ("set y; . ./settings", true),
            ("(x=1)", false),
            ("x=1 | cat", false),
            ("x=1 &", false),
            ("echo $(x=1)", false),
            ("x=1 cat", false),
            ("echo x", false),
        ] {
            let text = text(one);
            let sets_x = |names: &Names| names.all || names.names.contains("x");
            let is_set = text.statements.iter().any(|one| sets_x(&one.sets));
            assert_eq!(is_set, sets, "{one}");
        }
    }

    #[test]
    fn a_text_is_refused_if_its_commands_may_be_others() {
        for one in [
            "alias cat=tac; cat a",
            "eval \"$a\"",
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
