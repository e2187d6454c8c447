//! Tests that the command lines in the documents are valid.

use std::path::{Path, PathBuf};

use super::*;

/// Every Markdown file below a directory.
fn pages(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            into.push(path);
        }
    }
}

/// The words of a shell command, up to the first operator. Quotes are removed; nothing is expanded.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '|' | '>' | ';' | '&') => break,
            (None, ' ') => words.push(String::new()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_command_line_in_the_documents_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md")];
    pages(&root.join("docs"), &mut files);
    let mut count = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let commands = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("$ backstory "));
        for command in commands {
            let line = words(&format!("backstory {command}"));
            if let Err(error) = Cli::try_parse_from(&line) {
                panic!("{}: {command}\n{error}", file.display());
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count} commands");
}
