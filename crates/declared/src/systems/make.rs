//! Make. `make -pn` prints its database after it has read the makefiles and has found out, without
//! running recipes, how each target is made.
//!
//! Each call of `make` in the run is repeated so, in its directory and with its arguments. Recipes
//! that call `$(MAKE)` run also with `-n`, so the databases of makefiles in other directories are
//! printed, too; `-w` prints the directory of each.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use backstory_eventlog::event::Bytes;

use super::{BuildSystem, located, output_of};
use crate::build_run::{BuildRun, ToolCall};
use crate::error::Result;
use crate::rules::DeclaredRules;

/// Make.
pub struct Make;

impl BuildSystem for Make {
    fn name(&self) -> &'static str {
        "make"
    }

    fn rules(&self, run: &BuildRun) -> Result<DeclaredRules> {
        let mut rules = DeclaredRules::default();
        for call in &run.calls {
            if call.is_of(&["make", "gmake"]) {
                parse(&database(call)?, &call.directory, &mut rules);
            }
        }
        Ok(rules)
    }
}

fn database(call: &ToolCall) -> Result<String> {
    let directory = Path::new(OsStr::from_bytes(&call.directory));
    let arguments = call
        .arguments
        .iter()
        .skip(1)
        .map(|word| OsStr::from_bytes(word));
    let mut command = Command::new("make");
    command
        .arg("-pnw")
        .args(arguments.filter(|word| !is_noisy(word)))
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .env("LC_ALL", "C");
    output_of(&mut command, directory)
}

/// Arguments that would change what is printed, or where.
fn is_noisy(argument: &OsStr) -> bool {
    let bytes = argument.as_bytes();
    matches!(
        bytes,
        b"-s" | b"--silent" | b"--quiet" | b"-B" | b"--always-make" | b"--no-print-directory"
    ) || bytes.starts_with(b"-j")
        || bytes.starts_with(b"-O")
        || bytes.starts_with(b"--output-sync")
        || bytes.starts_with(b"--jobserver")
}

/// Adds the rules of databases in the output of `make -pnw`, whose outermost directory is
/// `directory`.
fn parse(output: &str, directory: &[u8], rules: &mut DeclaredRules) {
    let mut directories: Vec<Bytes> = vec![directory.into()];
    let (mut in_files, mut no_target) = (false, false);
    for line in output.lines() {
        if let Some(entered) = quoted(line, ": Entering directory ") {
            directories.push(entered.as_bytes().into());
        } else if quoted(line, ": Leaving directory ").is_some() {
            directories.pop();
        }
        match line {
            "# Files" => in_files = true,
            "# Not a target:" => no_target = true,
            _ if line.starts_with("# files hash-table stats") => in_files = false,
            _ => {}
        }
        let is_rule = in_files && !line.starts_with(['#', '\t', ' ']) && !line.is_empty();
        let Some((target, inputs)) = line.split_once(':').filter(|_| is_rule) else {
            continue;
        };
        if std::mem::take(&mut no_target)
            || target.starts_with('.') && !target.contains('/') && target.to_uppercase() == target
        {
            continue;
        }
        let base = directories.last().cloned().unwrap_or_default();
        // Behind `|` are prerequisites whose change does not make the target again.
        let inputs = inputs
            .trim_start_matches(':')
            .split('|')
            .next()
            .unwrap_or_default();
        let target = located([target], &base).remove(0);
        rules.add(target, located(inputs.split_whitespace(), &base));
    }
}

/// The text in quotation marks behind `words`.
fn quoted<'l>(line: &'l str, words: &str) -> Option<&'l str> {
    let (before, rest) = line.split_once(words)?;
    let by_make = before.starts_with("make") || before.starts_with("gmake");
    rest.strip_prefix(['\'', '`'])?
        .strip_suffix('\'')
        .filter(|_| by_make)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_the_database_are_rules_and_other_files_are_not() {
        let output = "make: Entering directory '/w'\n# Files\n\n# Not a target:\nm.h:\n#  x\n\n\
            m.o: m.c m.h | dir\n#  recipe\n\tgcc -c m.c\n\n.PHONY: all\n\nall:: m.o\n\n\
            # files hash-table stats:\nmake[1]: Entering directory '/w/d'\n# Files\n\na: b\n# files hash-table stats:\n\
            make[1]: Leaving directory '/w/d'\nmake: Leaving directory '/w'\n";
        let mut rules = DeclaredRules::default();
        parse(output, b"/w", &mut rules);
        let inputs = |target: &str| -> Vec<String> {
            let inputs = rules.inputs(target.as_bytes());
            inputs
                .map(|path| String::from_utf8_lossy(path).into_owned())
                .collect()
        };
        assert_eq!(inputs("/w/m.o"), ["/w/m.c", "/w/m.h"]);
        assert_eq!(inputs("/w/all"), ["/w/m.o"]);
        assert_eq!(inputs("/w/d/a"), ["/w/d/b"]);
        assert_eq!(rules.len(), 3);
    }
}
