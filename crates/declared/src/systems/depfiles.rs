//! Depfiles: the rules that compilers write with `-MD`, in the language of makefiles.
//!
//! In: the files `*.d` that the run made. A depfile names what the compiler read, so it matters for
//! builds that have no other rules; Make and ninja read it themselves.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{BuildSystem, located};
use crate::build_run::BuildRun;
use crate::error::Result;
use crate::rules::DeclaredRules;

/// Depfiles.
pub struct Depfiles;

impl BuildSystem for Depfiles {
    fn name(&self) -> &'static str {
        "depfiles"
    }

    fn rules(&self, run: &BuildRun) -> Result<DeclaredRules> {
        let mut rules = DeclaredRules::default();
        for step in &run.steps {
            let made = step.outputs.iter().filter(|path| path.ends_with(b".d"));
            let base = step
                .lines
                .first()
                .map_or(&*run.directory, |line| &*line.cwd);
            for path in made {
                // A depfile that is gone declares nothing any more.
                if let Ok(text) = fs::read_to_string(Path::new(OsStr::from_bytes(path))) {
                    parse(&text, base, &mut rules);
                }
            }
        }
        Ok(rules)
    }
}

/// Adds the rules of a depfile. A backslash joins lines, and keeps a space in a name.
fn parse(text: &str, base: &[u8], rules: &mut DeclaredRules) {
    let joined = text.replace("\\\n", " ");
    for line in joined.lines() {
        let Some((targets, inputs)) = line.split_once(": ").or(line.split_once(':')) else {
            continue;
        };
        let inputs = located(words(inputs).iter().map(String::as_str), base);
        for target in located(words(targets).iter().map(String::as_str), base) {
            if !inputs.is_empty() {
                rules.add(target, inputs.iter().cloned());
            }
        }
    }
}

fn words(text: &str) -> Vec<String> {
    let marked = text.replace("\\ ", "\u{0}");
    let words = marked.split_whitespace();
    words.map(|word| word.replace('\u{0}', " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depfile_joins_lines_and_keeps_spaces_in_names() {
        let mut rules = DeclaredRules::default();
        parse("m.o: m.c \\\n a\\ b.h\n\na\\ b.h:\n", b"/w", &mut rules);
        let inputs: Vec<&[u8]> = rules.inputs(b"/w/m.o").map(|path| &**path).collect();
        assert_eq!(inputs, [b"/w/a b.h".as_slice(), b"/w/m.c"]);
        assert_eq!(rules.len(), 1);
    }
}
