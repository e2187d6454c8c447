//! The kinds of programs that ran, for the advice about a pattern that recorded nothing.

use std::collections::BTreeMap;

/// A program that runs functions of its own language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interpreter {
    /// `node`.
    Node,
    /// `python3.11`.
    Python,
    /// `R`.
    R,
}

impl Interpreter {
    /// The interpreter that an executable file with this name is.
    pub(crate) fn of_file(name: &str) -> Option<Interpreter> {
        let is_version = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        match name {
            "node" | "nodejs" => Some(Interpreter::Node),
            "R" => Some(Interpreter::R),
            _ => name
                .strip_prefix("python")
                .filter(|version| is_version(version))
                .map(|_| Interpreter::Python),
        }
    }

    /// Why it recorded no function of a pattern, and what helps.
    fn advice(self, path: &str, name: &str) -> String {
        match self {
            Interpreter::Node => format!(
                "{path} called no such function that a file defines; for a file in node_modules, name it: FILE:{name}"
            ),
            Interpreter::Python => {
                format!("{path} called no such function, or cannot import the package `backstory`")
            }
            Interpreter::R => format!(
                "{path} called no such function of the global environment; if it is one of a package, name the package: PACKAGE:{name}"
            ),
        }
    }
}

/// The programs that ran.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RanPrograms {
    /// The path of the first one of each interpreter.
    interpreters: BTreeMap<Interpreter, String>,
    /// Others ran that are not the system's.
    has_others: bool,
}

/// Directories of the system's programs.
const OF_SYSTEM: [&str; 6] = ["/usr/", "/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/"];
/// The one among them for programs of the machine's users.
const OF_USERS: &str = "/usr/local/";

fn is_of_system(path: &str) -> bool {
    OF_SYSTEM.iter().any(|one| path.starts_with(one)) && !path.starts_with(OF_USERS)
}

impl RanPrograms {
    /// Adds a program by its path and its file's name.
    pub(crate) fn add(&mut self, path: &str, name: &str) {
        match Interpreter::of_file(name) {
            Some(interpreter) => {
                let known = self.interpreters.entry(interpreter);
                known.or_insert_with(|| path.to_owned());
            }
            None => self.has_others |= !is_of_system(path),
        }
    }

    /// The remedies, for functions of this name: one for each kind of program that ran.
    pub(crate) fn advice(&self, name: &str) -> String {
        let interpreters = self.interpreters.iter();
        let mut advice: Vec<String> = interpreters
            .map(|(interpreter, path)| interpreter.advice(path, name))
            .collect();
        if self.has_others || advice.is_empty() {
            advice.push(format!(
                "no instrumented program has this function; a program must be compiled with `backstory cc`, be linked dynamically and have its symbols; or name its library: libNAME.so:{name}"
            ));
        }
        advice.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(programs: &[&str]) -> String {
        let mut ran = RanPrograms::default();
        for path in programs {
            ran.add(path, path.rsplit('/').next().unwrap());
        }
        ran.advice("write_*")
    }

    #[test]
    fn the_advice_fits_the_programs_that_ran() {
        const COMPILED: &str = "`backstory cc`";
        for (programs, words, is_compiled) in [
            (&["/usr/bin/dash"][..], &["libNAME.so:write_*"][..], true),
            (
                &["/usr/bin/dash", "/opt/bin/node"],
                &["/opt/bin/node called", "FILE:write_*"],
                false,
            ),
            (&["/usr/bin/python3.11"], &["package `backstory`"], false),
            (&["/usr/lib/R/bin/exec/R"], &["PACKAGE:write_*"], false),
            (
                &["/usr/bin/node", "/home/ann/plot"],
                &["FILE:write_*"],
                true,
            ),
            (&["/usr/bin/python3-config"], &[], true),
            (&["/usr/bin/node", "/lib/systemd/systemd"], &[], false),
            (&["/usr/bin/node", "/library/plot"], &[], true),
            (&["/usr/bin/node", "/usr/local/bin/plot"], &[], true),
        ] {
            let text = advice(programs);
            for word in words {
                assert!(text.contains(word), "{programs:?}: {text}");
            }
            assert_eq!(text.contains(COMPILED), is_compiled, "{programs:?}: {text}");
        }
    }
}
