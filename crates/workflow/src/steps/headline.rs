//! Writes a line for a reader, who looks for the program first.
//!
//! In: a [`Line`], or shell language. Out: the text from the program on, without the directory and
//! the variables before it. The result is for display; only [`Line::shell`] can be executed.

use super::compose::as_written;
use super::line::{Line, Word};
use crate::paths::base_name;

impl Line {
    /// The line without its directory, its exit status, and the variables that are set for its
    /// programs.
    pub fn headline(&self) -> String {
        let mut words = Vec::new();
        for stage in self.words.split(|word| *word == Word::Operator("|")) {
            if !words.is_empty() {
                words.push(Word::Operator("|"));
            }
            words.extend(as_written(called(stage).to_vec()));
        }
        let line = Line {
            words,
            ..self.clone()
        };
        let text = line.command();
        match line.is_shell() {
            true => headline(&text).to_owned(),
            false => text,
        }
    }
}

/// A command of a pipeline without the variables before its program: `A=1 cmd`, `env A=1 cmd`.
fn called(stage: &[Word]) -> &[Word] {
    let set = |word: &&Word| matches!(word, Word::Set(..));
    let stage = &stage[stage.iter().take_while(set).count()..];
    let [Word::Program(env), rest @ ..] = stage else {
        return stage;
    };
    if base_name(env) != b"env" {
        return stage;
    }
    let mut rest = rest;
    loop {
        rest = match rest {
            [Word::Text(unset), Word::Text(_), more @ ..] if **unset == *b"-u" => more,
            [Word::Text(pair), more @ ..] if is_assignment(pair) => more,
            [Word::Program(_), ..] => return rest,
            [Word::Text(name), ..] if !name.starts_with(b"-") => return rest,
            _ => return stage,
        }
    }
}

/// True for `NAME=value`.
fn is_assignment(word: &[u8]) -> bool {
    let end = word.iter().position(|&byte| byte == b'=');
    let name = &word[..end.unwrap_or(0)];
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !name.is_empty() && name.iter().all(is_letter) && !name[0].is_ascii_digit()
}

/// Shell language from its first program on: without `cd DIRECTORY &&` and `NAME=value` at its
/// begin. The whole text if nothing else is in it.
fn headline(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(next) = without_directory(rest).or_else(|| without_assignment(rest)) {
        rest = next;
    }
    if rest.is_empty() { text } else { rest }
}

/// The text behind `cd DIRECTORY &&`, `cd DIRECTORY;` or `cd DIRECTORY || exit 1;`.
fn without_directory(text: &str) -> Option<&str> {
    let text = text.strip_prefix("cd ")?.trim_start();
    let rest = text[word_length(text)?..].trim_start();
    let failing = || {
        let rest = rest.strip_prefix("||")?.trim_start().strip_prefix("exit")?;
        let status = |c: char| c == ' ' || c.is_ascii_digit();
        rest.trim_start_matches(status).strip_prefix(';')
    };
    let rest = rest.strip_prefix("&&").or_else(|| rest.strip_prefix(';'));
    Some(rest.or_else(failing)?.trim_start())
}

/// The text behind `NAME=value`, unless the variable lasts: `NAME=value; command`.
fn without_assignment(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at(word_length(text)?);
    let rest = rest.trim_start();
    let lasts = rest.starts_with([';', '&', '|', '\n']);
    (is_assignment(word.as_bytes()) && !lasts).then_some(rest)
}

/// The length of the first word of shell language, with its quotes. `None` if a quote is open, or
/// the word holds a command.
fn word_length(text: &str) -> Option<usize> {
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in text.char_indices() {
        let escaped = before == '\\' && quote != Some('\'');
        match (quote, c) {
            (Some('"') | None, '`') => return None,
            (Some('"') | None, '(') if before == '$' => return None,
            _ if escaped => {}
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if c.is_whitespace() || ";&|<>()".contains(c) => return Some(at),
            (None, _) => {}
        }
        before = if escaped { ' ' } else { c };
    }
    quote.is_none().then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_of_shell_language_begins_with_the_program_that_a_person_would_name() {
        for (text, expected) in [
            ("cd po && make install", "make install"),
            ("cd 'a b' || exit 1; A=1 B='x y' make; true", "make; true"),
            ("LC_ALL=C sort in | uniq", "sort in | uniq"),
            ("cd po", "cd po"),
            ("A=1; make $A", "A=1; make $A"),
            ("A=$(date) make", "A=$(date) make"),
            ("A=\"$(date)\" make", "A=\"$(date)\" make"),
            ("A=\\  make", "make"),
            ("test -d x || mkdir x", "test -d x || mkdir x"),
            ("A='open", "A='open"),
            ("cd a && cd b; make", "make"),
        ] {
            assert_eq!(headline(text), expected);
        }
    }

    #[test]
    fn a_headline_of_words_begins_with_the_program_that_a_person_would_name() {
        let text = |text: &str| Word::Text(text.as_bytes().into());
        let program = |name: &str| Word::Program(name.as_bytes().into());
        let of = |words: Vec<Word>| {
            let line = Line {
                cwd: b"/w/x".as_slice().into(),
                words,
                exit: 3,
            };
            line.headline()
        };
        let set = || Word::Set(b"A".as_slice().into(), b"1".as_slice().into());
        let through_env = [program("env"), text("-u"), text("LANG"), text("B=2")];
        let mut pipe = vec![set(), program("sort"), text("in"), Word::Operator("|")];
        pipe.extend(through_env);
        pipe.push(program("uniq"));
        assert_eq!(of(pipe), "sort in | uniq");
        let env = || vec![program("env"), text("B=2")];
        assert_eq!(of([env(), vec![text("make")]].concat()), "make");
        assert_eq!(of(env()), "env B=2");
        assert_eq!(
            of(vec![Word::Shell(b"cd po && make".as_slice().into())]),
            "make"
        );
        let called = vec![program("/bin/sh"), text("-c"), text("cd po && make")];
        assert_eq!(of(called), "make");
    }
}
