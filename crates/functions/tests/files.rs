//! Functions of compiled programs.
#![allow(clippy::unwrap_used)]

use backstory_functions::{CodeFile, FunctionPatterns};
use std::path::Path;
use std::process::Command;

/// The functions of a C or C++ program that match, as `name location`. `None` if there is no
/// compiler.
fn functions(
    source: &str,
    language: &str,
    options: &[&str],
    patterns: &[&str],
) -> Option<Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(format!("plot.{language}"));
    std::fs::write(&file, source).unwrap();
    let program = directory.path().join("plot");
    let compiler = if language == "c" { "cc" } else { "c++" };
    let built = Command::new(compiler)
        .args(options)
        .args([file.as_path(), Path::new("-o"), &program])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        backstory_testkit::need::skipped(
            "functions of a program",
            &format!("{compiler} does not compile"),
        );
        return None;
    }
    let patterns: Vec<String> = patterns.iter().map(|&one| one.to_owned()).collect();
    let patterns = FunctionPatterns::parse(&patterns).unwrap();
    let bytes = std::fs::read(program).unwrap();
    let code = CodeFile::read(&bytes, "plot", &patterns).unwrap();
    let text = code
        .functions
        .iter()
        .map(|one| format!("{} {}", one.name, one.location));
    let mut all: Vec<String> = text.map(|one| one.trim().to_owned()).collect();
    all.sort();
    Some(all)
}

const C: &str = "int parse_line(int a) { return a; }\nint parse_file(int a) { return a; }\n\
                 int main(void) { return parse_line(0) + parse_file(0); }\n";

#[test]
fn functions_have_the_file_and_the_line_that_dwarf_has() {
    let Some(all) = functions(C, "c", &["-g"], &["parse_*"]) else {
        return;
    };
    assert_eq!(all, ["parse_file plot.c:2", "parse_line plot.c:1"]);
    let Some(one) = functions(C, "c", &["-g"], &["plot:main", "other:parse_line"]) else {
        return;
    };
    assert_eq!(one, ["main plot.c:3"]);
}

#[test]
fn without_debugging_information_there_are_symbols_and_without_these_nothing() {
    let Some(all) = functions(C, "c", &["-g0"], &["parse_*"]) else {
        return;
    };
    assert_eq!(all, ["parse_file", "parse_line"]);
    let Some(none) = functions(C, "c", &["-g0", "-s"], &["parse_*"]) else {
        return;
    };
    assert_eq!(none, Vec::<String>::new());
}

#[test]
fn functions_of_cpp_are_found_by_their_qualified_names() {
    let source = "namespace data { struct Parser { int parse(int); }; }\n\
                  int data::Parser::parse(int a) { return a; }\n\
                  int main() { data::Parser p; return p.parse(0); }\n";
    let Some(all) = functions(source, "cc", &["-g"], &["data::Parser::*"]) else {
        return;
    };
    assert_eq!(all, ["data::Parser::parse plot.cc:2"]);
    // With line numbers alone, the debugging information has no classes.
    let few = functions(source, "cc", &["-g1"], &["data::Parser::*"]);
    assert_eq!(few.unwrap(), ["data::Parser::parse plot.cc:2"]);
}

#[test]
fn a_damaged_file_has_fewer_functions() {
    let patterns = FunctionPatterns::parse(&["*".to_owned(), "x:*".to_owned()]).unwrap();
    let patterns = patterns.with_arguments();
    assert_eq!(CodeFile::read(b"\x7fELF", "x", &patterns), None);
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    for end in [64, 100, 1000, own.len() / 2, own.len() - 100] {
        let _ = CodeFile::read(&own[..end], "x", &patterns);
    }
}
