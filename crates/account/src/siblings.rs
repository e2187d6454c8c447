//! Joins commands that differ in the names of files only: `gcc -c lib/*.c -o lib/*.o`, 34 times.
//!
//! In: an account. Out: groups of commands in the order of the chain. A group stands where its
//! first command stands.

use std::collections::HashMap;

use backstory_eventlog::event::Bytes;
use backstory_workflow::paths::{absolute, base_name, is_system, parent};
use backstory_workflow::shell::quote;
use backstory_workflow::steps::{Line, Word, is_one, names_shell};
use backstory_workflow::tools::knowledge;

use crate::Direction;
use crate::account::{Account, Command};
use crate::named_files::NamedFile;
use crate::patterns::{near, pattern_text};

/// Commands of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Siblings {
    /// The indexes of the commands, in the order of the chain.
    pub commands: Vec<usize>,
    /// The words of the common command, quoted for a shell. Files that differ are patterns.
    pub words: Vec<CommonWord>,
    /// The directory in which the commands ran.
    pub cwd: Bytes,
}

/// A word of the common command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CommonWord {
    /// The word for a reader.
    pub text: String,
    /// Whether it names files, and not an option.
    pub files: bool,
}

/// A word without the name of its file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum TemplateWord {
    Word(Word),
    /// The text of `sh -c`, whatever it says.
    Script,
    /// One or more files behind this beginning of a word: `-o`, `--output=`. True: the command
    /// made them.
    Files(Bytes, bool),
}

/// The facts that siblings share: run, directory, the program that started them, template.
type GroupKey = (usize, Bytes, Option<usize>, Vec<TemplateWord>);

/// Joins the commands of a chain.
pub fn siblings(account: &Account, chain: &[usize]) -> Vec<Siblings> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut places: HashMap<GroupKey, usize> = HashMap::new();
    for &at in chain {
        let command = &account.commands[at];
        let words = template(account, at);
        // Texts that the same program gave to shells are alike: the lines of one makefile.
        let text = words.contains(&TemplateWord::Script);
        let starter = command.drivers.first().copied().filter(|_| text);
        let key = (command.run, command.line.cwd.clone(), starter, words);
        let next = groups.len();
        let place = places.entry(key).or_insert(next);
        if groups
            .get(*place)
            .is_some_and(|group| follows(account, group, at))
        {
            *place = next;
        }
        match groups.get_mut(*place) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    // The same command in several runs is one.
    let mut all: Vec<Siblings> = Vec::new();
    let mut known: HashMap<(Bytes, Vec<CommonWord>), usize> = HashMap::new();
    for commands in groups {
        let words = common(account, &commands);
        let cwd = account.commands[commands[0]].line.cwd.clone();
        let next = all.len();
        let place = *known.entry((cwd.clone(), words.clone())).or_insert(next);
        match all.get_mut(place) {
            Some(step) => step.commands.extend(commands),
            None => all.push(Siblings {
                commands,
                words,
                cwd,
            }),
        }
    }
    all
}

/// True if the command uses a file of the group, or the group one of its files. The same command
/// may: LaTeX reads what it wrote the time before.
fn follows(account: &Account, group: &[usize], at: usize) -> bool {
    let command = &account.commands[at];
    let meets = |made: &[usize], used: &[usize]| made.iter().any(|file| used.contains(file));
    group
        .iter()
        .map(|&other| &account.commands[other])
        .any(|other| {
            other.line.words != command.line.words
                && (meets(&other.writes, &command.reads) || meets(&command.writes, &other.reads))
        })
}

/// The file that a word names. `None` if the word names no file that the command used or made, and
/// none that is called like one that it made.
fn file_of(account: &Account, command: &Command, word: &Word) -> Option<NamedFile> {
    let Word::Text(text) = word else {
        return None;
    };
    let after = |byte: u8| text.iter().position(|&b| b == byte).map(|at| at + 1);
    let attached = (text.starts_with(b"-") && text.len() > 2).then_some(2);
    let starts = [Some(0), after(b'='), after(b':'), attached];
    starts.into_iter().flatten().find_map(|start| {
        let name = &text[start..];
        if name.is_empty() || name.contains(&b' ') || name.contains(&b'\n') {
            return None;
        }
        let path = absolute(name, &command.line.cwd);
        let is = |files: &[usize]| files.iter().any(|&file| *account.files[file].path == *path);
        let made = is(&command.writes);
        let named = made
            || is(&command.reads)
            || is_called_alike(account, command, &path)
            || is_beside_one(account, command, &path);
        named.then_some(NamedFile { start, made })
    })
}

/// True for `.deps/a.Tpo` beside an output `a.o`: its name without endings is the same.
fn is_called_alike(account: &Account, command: &Command, path: &[u8]) -> bool {
    let stem = |path: &[u8]| {
        let name = base_name(path);
        let name = name.strip_prefix(b".").unwrap_or(name);
        let end = name.iter().position(|&byte| byte == b'.').unwrap_or(0);
        name[..end].to_vec()
    };
    let own = stem(path);
    let mut made = command
        .writes
        .iter()
        .map(|&file| stem(&account.files[file].path));
    !own.is_empty() && made.any(|made| made == own)
}

/// True if the command used a file of the same directory and ending. Towards the results, the other
/// inputs of a command are not known.
fn is_beside_one(account: &Account, command: &Command, path: &[u8]) -> bool {
    let ending = |path: &[u8]| {
        let name = base_name(path);
        let dot = name
            .iter()
            .rposition(|&byte| byte == b'.')
            .filter(|&at| at > 0);
        dot.map(|at| name[at..].to_vec())
    };
    let own = ending(path);
    let mut read = command.reads.iter().map(|&file| &*account.files[file].path);
    own.is_some()
        && account.direction == Direction::Forth
        && read.any(|other| parent(other) == parent(path) && ending(other) == own)
}

/// The words of a command, each with the file that it names.
fn words_and_files(
    account: &Account,
    at: usize,
) -> impl Iterator<Item = (&Word, Option<NamedFile>)> {
    let command = &account.commands[at];
    let files = account.named[at].get_or_init(|| named_files(account, command));
    command.line.words.iter().zip(files.iter().copied())
}

/// A word before the name of its file, and the name.
fn split(word: &Word, file: NamedFile) -> (&[u8], &[u8]) {
    match word {
        Word::Text(text) => text.split_at(file.start),
        _ => (b"", b""),
    }
}

/// The file that each word of a command names. The script of an interpreter is the program, and not
/// one of the files: only options stand before it.
fn named_files(account: &Account, command: &Command) -> Vec<Option<NamedFile>> {
    let mut script_comes = false;
    let mut all = Vec::new();
    for word in &command.line.words {
        let mut file = file_of(account, command, word);
        match word {
            Word::Program(program) => {
                let interpreters = &knowledge().programs.interpreters;
                script_comes = names_shell(program) || is_one(program, interpreters);
            }
            Word::Text(text) if script_comes && !text.starts_with(b"-") => {
                script_comes = false;
                file = None;
            }
            _ => {}
        }
        all.push(file);
    }
    all
}

fn template(account: &Account, at: usize) -> Vec<TemplateWord> {
    let is_part = account.commands[at].is_part;
    let mut words = Vec::new();
    for (word, file) in words_and_files(account, at) {
        match file {
            Some(file) => {
                let (before, _) = split(word, file);
                let files = TemplateWord::Files(before.into(), file.made);
                // Any number of files in a row.
                if words.last() != Some(&files) {
                    words.push(files);
                }
            }
            // The text of a part is its name.
            None if !is_part && is_script(&words, word) => words.push(TemplateWord::Script),
            None => words.push(TemplateWord::Word(word.clone())),
        }
    }
    words
}

/// True for the text behind `sh -c`.
fn is_script(before: &[TemplateWord], word: &Word) -> bool {
    let [
        TemplateWord::Word(Word::Program(shell)),
        ..,
        TemplateWord::Word(Word::Text(option)),
    ] = before
    else {
        return matches!(word, Word::Shell(_)) && before.is_empty();
    };
    names_shell(shell) && option.starts_with(b"-") && option.ends_with(b"c")
}

/// The words that commands with one template share.
fn common(account: &Account, commands: &[usize]) -> Vec<CommonWord> {
    // For each place of files in the template, the names of all commands.
    let mut names: Vec<Vec<&[u8]>> = Vec::new();
    for &at in commands {
        let mut place = 0;
        let mut earlier = None;
        for (word, file) in words_and_files(account, at) {
            let Some(file) = file else {
                earlier = None;
                continue;
            };
            let (before, name) = split(word, file);
            let kind = Some((before, file.made));
            place += usize::from(earlier != kind);
            earlier = kind;
            if names.len() < place {
                names.push(Vec::new());
            }
            names[place - 1].push(name);
        }
    }
    let mut names = names.into_iter();
    let mut words = Vec::new();
    let cwd = &account.commands[commands[0]].line.cwd;
    for word in template(account, commands[0]) {
        match word {
            TemplateWord::Word(word) => {
                let files = false;
                words.push(CommonWord {
                    text: text_of(&word, cwd),
                    files,
                });
            }
            TemplateWord::Script => {
                let mut all = account.commands[commands[0]].line.words.iter();
                let script = all.find(|word| match word {
                    Word::Text(text) => text.contains(&b' ') || text.contains(&b'\n'),
                    Word::Shell(_) => true,
                    _ => false,
                });
                let text = match script.filter(|_| commands.len() == 1) {
                    Some(word) => text_of(word, cwd),
                    None => "'…'".to_owned(),
                };
                words.push(CommonWord { text, files: true });
            }
            TemplateWord::Files(before, _) => {
                let names = names.next().unwrap_or_default();
                let names: Vec<Vec<u8>> = names.iter().map(|name| near(name, cwd)).collect();
                let before = String::from_utf8_lossy(&before);
                let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
                let alone = commands.len() == 1 && names.len() <= FEW;
                let names = match alone {
                    true => names.iter().map(|name| quote(name)).collect(),
                    false => vec![pattern_text(&names)],
                };
                words.extend(names.into_iter().map(|name| CommonWord {
                    text: format!("{before}{name}"),
                    files: true,
                }));
            }
        }
    }
    words
}

/// A word for a reader. A program of the system is called by its name alone, and a path below the
/// command's directory is named from there.
fn text_of(word: &Word, cwd: &[u8]) -> String {
    let word = match word {
        Word::Program(path) if is_system(path) => Word::Program(base_name(path).into()),
        Word::Program(path) => Word::Program(near(path, cwd).into()),
        Word::Text(path) => Word::Text(near(path, cwd).into()),
        other => other.clone(),
    };
    let line = Line {
        cwd: Bytes::default(),
        words: vec![word],
        exit: 0,
    };
    line.command()
}

/// The most files in a row that a command names one by one.
const FEW: usize = 4;
