//! Shortens a command to the width of a line.

use backstory_account::CommonWord;
use backstory_eventlog::event::Bytes;
use backstory_workflow::paths::{base_name, is_system};
use backstory_workflow::shell;
use backstory_workflow::steps::{Line, Word};
use backstory_workflow::tools::knowledge;

use super::line::{excerpt, width};

/// The words as a line of at most this many columns.
///
/// Options are left out first: the long ones and those about dependencies, then the short ones.
/// The program and the names of files stay as long as possible.
pub fn shortened(words: &[CommonWord], columns: usize) -> String {
    if let [only] = words
        && let Some(label) = label(&only.text)
    {
        return excerpt(label, columns);
    }
    let mut text = String::new();
    for longest in [usize::MAX, 3, 2] {
        text = without_options(words, longest);
        if width(&text) <= columns {
            break;
        }
    }
    excerpt(&text, columns)
}

/// The name that a document gives to an activity, without its quotes: a single word with spaces. No
/// shell finds such a program by its name alone.
fn label(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let is_path = inner.starts_with(['/', '.', '~']);
    (inner.contains(' ') && !inner.contains('\'') && !is_path).then_some(inner)
}

/// The words without options of more than this many characters.
fn without_options(words: &[CommonWord], longest: usize) -> String {
    let compilers = &knowledge().compilers;
    let mut shown: Vec<&str> = Vec::new();
    let mut words = words.iter().enumerate().peekable();
    while let Some((at, word)) = words.next() {
        let plain = word.text.trim_start_matches('\'');
        let name = plain.rsplit_once('=').map_or(plain, |(name, _)| name);
        let is = |option: &String| option == plain || option == name;
        let minor = longest < usize::MAX && compilers.dependency_options.iter().any(is);
        let option = at > 0 && plain.starts_with('-') && (!word.files || minor);
        if !option || word.text.len() <= longest && !minor {
            shown.push(&word.text);
            continue;
        }
        if compilers.options_with_value.contains(&word.text) {
            words.next();
        }
        if shown.last() != Some(&"…") {
            shown.push("…");
        }
    }
    shown.join(" ")
}

/// A command for a reader, in full. A program of the system is called by its name alone.
pub fn text_of(line: &Line) -> String {
    let mut line = line.clone();
    for word in &mut line.words {
        if let Word::Program(path) = word
            && is_system(path)
        {
            *path = base_name(path).into();
        }
    }
    line.command()
}

/// Arguments as a line of at most this many columns. If they are longer, the program is named
/// without its directory, so that more of its arguments stay.
pub fn program_line(argv: &[Bytes], columns: usize) -> String {
    let whole = shell::line(argv);
    match argv.split_first() {
        Some((program, rest)) if width(&whole) > columns => {
            let rest = rest.iter().map(|word| &**word);
            let words = std::iter::once(base_name(program)).chain(rest);
            excerpt(&shell::line(words), columns)
        }
        _ => excerpt(&whole, columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_a_long_path_keeps_its_arguments() {
        let argv = ["/opt/tools/3.11/bin/python3", "encrypt.py", "docs"];
        let argv = argv.map(|word| Bytes::from(word.as_bytes()));
        let whole = "/opt/tools/3.11/bin/python3 encrypt.py docs";
        assert_eq!(program_line(&argv, 60), whole);
        assert_eq!(program_line(&argv, 30), "python3 encrypt.py docs");
        assert_eq!(program_line(&argv, 12), "python3 enc…");
        assert_eq!(program_line(&[], 12), "");
    }

    fn words(line: &str) -> Vec<CommonWord> {
        let word = |text: &str| CommonWord {
            text: text.to_owned(),
            files: text.contains('.'),
        };
        line.split(' ').map(word).collect()
    }

    #[test]
    fn a_long_command_keeps_its_program_and_its_files() {
        let line = words("gcc -DHAVE_CONFIG_H -O2 -Wall -MF .deps/a.Po -c -o a.o a.c");
        assert_eq!(shortened(&line, 40), "gcc … -O2 … -c -o a.o a.c");
        assert_eq!(shortened(&line, 25), "gcc … -O2 … -c -o a.o a.c");
        assert_eq!(shortened(&line, 23), "gcc … -c -o a.o a.c");
        assert_eq!(shortened(&line, 12), "gcc … -c -o…");
    }

    #[test]
    fn a_name_of_several_words_has_no_quotes_and_a_path_has() {
        let shown = |text: &str| {
            let files = false;
            let text = text.to_owned();
            shortened(&[CommonWord { text, files }], 80)
        };
        assert_eq!(shown("'Run of main'"), "Run of main");
        assert_eq!(shown("'./my program'"), "'./my program'");
        assert_eq!(shown("'it'\\''s mine'"), "'it'\\''s mine'");
    }

    #[test]
    fn a_long_command_loses_the_option_for_the_list_of_read_files_first() {
        let line = words("cc -Wl,--dependency-file=p.dir/link.d p.dir/main.c.o -o p lib.a");
        assert_eq!(shortened(&line, 40), "cc … p.dir/main.c.o -o p lib.a");
    }
}
