//! `compile_commands.json`: how each source was compiled, for clangd, clang-tidy and editors.
//!
//! The entries come from the compilers that ran, whichever program started them: make, a script,
//! ccache.

use backstory_eventlog::event::Bytes;
use serde_json::{Value, json};

use crate::family::Family;
use crate::format::{Format, Target};
use crate::{Error, Result, View};
use backstory_workflow::paths::{absolute, base_name};
use backstory_workflow::tools::knowledge;

/// `compile-commands`
pub struct CompileCommands;

impl Format for CompileCommands {
    fn name(&self) -> &'static str {
        "compile-commands"
    }
    fn about(&self) -> &'static str {
        "compile_commands.json"
    }
    fn family(&self) -> Family {
        Family::Data
    }
    fn proven_by(&self) -> &'static str {
        "clang-tidy"
    }
    fn hint(&self) -> Option<&'static str> {
        Some("clang-tidy -p DIR FILE.c")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let mut entries: Vec<Value> = Vec::new();
        for command in &view.programs {
            if is_compiler(command.argv.first()) && command.argv.iter().any(|arg| **arg == *b"-c") {
                entries.extend(compiled(&command.argv, &command.cwd));
            }
        }
        if entries.is_empty() {
            return Err(Error::Nothing {
                subject: view.subject.clone(),
                what: "call of a C or C++ compiler with -c",
                advice: "record the build from clean: what is up to date is not compiled",
            });
        }
        let out = target.stream();
        serde_json::to_writer_pretty(&mut *out, &entries).map_err(std::io::Error::from)?;
        writeln!(out)?;
        Ok(())
    }
}

/// True for names of compilers: `cc`, `gcc-12`, `x86_64-linux-gnu-g++`, `clang++`.
fn is_compiler(name: Option<&Bytes>) -> bool {
    let Some(name) = name else { return false };
    let name = String::from_utf8_lossy(base_name(name)).into_owned();
    let version = |tail: &str| tail.chars().all(|c| c.is_ascii_digit() || c == '.');
    let plain = match name.rsplit_once('-') {
        Some((head, tail)) if version(tail) => head,
        _ => &name,
    };
    let last = plain.rsplit('-').next().unwrap_or(plain);
    knowledge().compilers.names.iter().any(|name| name == last)
}

/// An entry for each source that a command names.
fn compiled(argv: &[Bytes], cwd: &[u8]) -> Vec<Value> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let takes = |arg: &[u8]| {
        let mut options = knowledge().compilers.options_with_value.iter();
        options.any(|option| option.as_bytes() == arg)
    };
    let mut sources = Vec::new();
    let mut output = None;
    let mut args = argv.iter().skip(1);
    while let Some(arg) = args.next() {
        if takes(arg) {
            let value = args.next();
            output = value.filter(|_| **arg == *b"-o").or(output);
        } else if !arg.starts_with(b"-") && is_source(arg) {
            sources.push(arg);
        }
    }
    let arguments: Vec<String> = argv.iter().map(|arg| text(arg)).collect();
    let entry = |source: &&Bytes| {
        let file = absolute(source, cwd);
        let mut entry =
            json!({"directory": text(cwd), "file": text(&file), "arguments": arguments});
        if let Some(output) = output {
            entry["output"] = text(&absolute(output, cwd)).into();
        }
        entry
    };
    sources.iter().map(entry).collect()
}

fn is_source(arg: &[u8]) -> bool {
    let mut endings = knowledge().compilers.source_endings.iter();
    endings.any(|ending| arg.ends_with(ending.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_is_known_by_any_of_its_names() {
        for (name, is) in [
            ("cc", true),
            ("/usr/bin/gcc-12", true),
            ("x86_64-linux-gnu-g++", true),
            ("cc1", false),
            ("clang-tidy", false),
        ] {
            assert_eq!(is_compiler(Some(&name.as_bytes().into())), is, "{name}");
        }
    }

    #[test]
    fn each_source_of_a_command_has_an_entry() {
        let argv: Vec<Bytes> = ["cc", "-c", "-o", "x.c", "-I", "i.c", "a.c", "../b.c"]
            .map(|arg| arg.as_bytes().into())
            .into();
        let entries = compiled(&argv, b"/w/d");
        let files: Vec<&str> = entries
            .iter()
            .map(|entry| entry["file"].as_str().unwrap())
            .collect();
        assert_eq!(files, ["/w/d/a.c", "/w/b.c"]);
        assert_eq!(entries[0]["output"], "/w/d/x.c");
    }
}
