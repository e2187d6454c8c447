//! `complete-words`: prints what a shell can complete beside commands and options: formats, runs,
//! names and tags of runs, and paths of recorded files.
//!
//! In: the words of the command line up to the cursor. Out: one candidate a line, none if the word
//! is of another kind. Which argument the word is comes from the definition of the command line.
//! The store is read as it is, and no run is indexed. Names with characters that a shell interprets
//! are left out.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_store::{AnnotationKind, DatabaseFiles, Home, Store, StoreEngine, open_store};
use clap::{Arg, ArgAction, Command, CommandFactory};

use super::Outcome;
use crate::args::Cli;
use crate::args::program::CompleteWordsArgs;

/// No more candidates than this are printed.
const MOST: usize = 200;

/// Prints the candidates. A failure prints no candidate: the user has asked nothing yet.
pub fn run(args: CompleteWordsArgs, store: Option<&Path>) -> Outcome {
    let words: Vec<String> = args.words.into_iter().filter_map(text).collect();
    let mut stdout = std::io::stdout().lock();
    for candidate in candidates(&words, store).iter().take(MOST) {
        // The shell may not wait for all of them.
        let _ = writeln!(stdout, "{candidate}");
    }
    Ok(0)
}

fn text(word: OsString) -> Option<String> {
    word.into_string().ok()
}

/// The candidates for the last of the words.
fn candidates(words: &[String], store: Option<&Path>) -> BTreeSet<String> {
    let mut cli = Cli::command();
    cli.build();
    let Some((word, before)) = words.split_last() else {
        return BTreeSet::new();
    };
    let (mut word, mut before) = (word.as_str(), before.to_vec());
    if let Some((option, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        before.push(option.to_owned());
        word = value;
    }
    let place = CommandPlace::of(&cli, &before);
    let store = store.map(Path::to_owned).or(place.store);
    let Some(expected) = place.expected.filter(|_| !word.starts_with('-')) else {
        return BTreeSet::new();
    };
    let kinds = expected.value_name;
    let mut all = BTreeSet::new();
    if kinds.contains("FORMAT") {
        all.extend(
            backstory_export::ALL
                .iter()
                .map(|format| format.name().to_owned()),
        );
    }
    let wants = |kind: &str| kinds.split('|').any(|part| part == kind);
    if let Some(store) = opened(store.as_deref()) {
        if wants("RUN") || wants("A") || wants("B") {
            all.extend(runs(&store));
        }
        if wants("PATH") || wants("A") || wants("B") {
            all.extend(paths(&store, word));
            if let Some((path, _)) = word.split_once('@') {
                let runs = runs(&store).into_iter();
                all.extend(runs.map(|run| format!("{path}@{run}")));
            }
        }
        match (expected.id.as_str(), kinds.as_str()) {
            ("name", "GLOB") => all.extend(names(&store)),
            ("tag" | "tags", _) => all.extend(tags(&store)),
            _ => {}
        }
    }
    all.retain(|candidate| candidate.starts_with(word) && is_plain(candidate));
    all
}

/// A value of the command line.
struct ExpectedValue {
    /// The argument's name in the definition of the command line.
    id: String,
    /// The name in the help.
    value_name: String,
}

/// Where on the command line a word stands.
struct CommandPlace {
    /// The value that is expected there.
    expected: Option<ExpectedValue>,
    /// The value of `--store` before it.
    store: Option<std::path::PathBuf>,
}

impl CommandPlace {
    /// The place after these words.
    fn of(cli: &Command, before: &[String]) -> CommandPlace {
        let (mut command, mut positionals, mut store) = (cli, 0, None);
        let mut expected: Option<&Arg> = None;
        for word in before {
            if let Some(option) = expected.take() {
                if option.get_id() == "store" {
                    store = Some(word.into());
                }
                continue;
            }
            if word.starts_with('-') {
                expected = option(command, word).filter(|option| takes_value(option));
            } else if let Some(inner) = command.find_subcommand(word) {
                (command, positionals) = (inner, 0);
            } else {
                positionals += 1;
            }
        }
        let positional = || {
            let last = command.get_positionals().last();
            let repeated = last.filter(|arg| matches!(arg.get_action(), ArgAction::Append));
            command.get_positionals().nth(positionals).or(repeated)
        };
        let value = |arg: &Arg| {
            Some(ExpectedValue {
                id: arg.get_id().to_string(),
                value_name: arg.get_value_names()?.first()?.to_string(),
            })
        };
        CommandPlace {
            expected: expected.or_else(positional).and_then(value),
            store,
        }
    }
}

/// The option that a word names.
fn option<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    let mut options = command.get_arguments();
    match word.strip_prefix("--") {
        Some(long) => options.find(|arg| arg.get_long() == Some(long)),
        None => options.find(|arg| {
            arg.get_short()
                .is_some_and(|short| word == format!("-{short}"))
        }),
    }
}

fn takes_value(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Set | ArgAction::Append)
}

fn opened(store: Option<&Path>) -> Option<Box<dyn Store>> {
    let home = Home::open_to_read(&Home::directory(store).ok()?).ok()?;
    let database = DatabaseFiles::of(&home, StoreEngine::of(&home).ok()?);
    database.exists().then_some(())?;
    open_store(&home).ok()
}

/// Names and ids of runs.
fn runs(store: &dyn Store) -> Vec<String> {
    let runs = store.runs().unwrap_or_default().into_iter();
    runs.flat_map(|run| [Some(run.header.id), run.name])
        .flatten()
        .collect()
}

/// Names of runs.
fn names(store: &dyn Store) -> Vec<String> {
    let runs = store.runs().unwrap_or_default().into_iter();
    runs.filter_map(|run| run.name).collect()
}

/// Tags of runs, as `KEY=VALUE`.
fn tags(store: &dyn Store) -> Vec<String> {
    let tags = store.annotations_of(AnnotationKind::Tag, None);
    let tags = tags.unwrap_or_default().into_iter();
    tags.map(|tag| format!("{}={}", tag.key, tag.value.unwrap_or_default()))
        .collect()
}

/// Paths of recorded files that begin with the word, up to their next slash.
fn paths(store: &dyn Store, word: &str) -> BTreeSet<String> {
    let Ok(here) = std::env::current_dir() else {
        return BTreeSet::new();
    };
    let directory = &word[..word.rfind('/').map_or(0, |at| at + 1)];
    let whole = here.join(directory);
    let top = backstory_workflow::paths::absolute(whole.as_os_str().as_bytes(), b"/");
    let found = RefCell::new(BTreeSet::new());
    let prefix = match top.as_slice() {
        b"/" => top,
        top => [top, b"/"].concat(),
    };
    let collect = |path: &[u8]| {
        let rest = path.strip_prefix(prefix.as_slice());
        if let Some(rest) = rest.and_then(|rest| std::str::from_utf8(rest).ok()) {
            let end = rest.find('/').map_or(rest.len(), |at| at + 1);
            found
                .borrow_mut()
                .insert(format!("{directory}{}", &rest[..end]));
        }
        // The names are all that is needed.
        false
    };
    // An error leaves the names that were found before it.
    let _ = store.below(&prefix, &collect);
    found.into_inner()
}

/// True if no shell interprets a character of it.
fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "_-+.,/@%=".contains(c);
    !word.is_empty() && word.chars().all(plain)
}
