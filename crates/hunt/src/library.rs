//! The library of rules: those in the program, and those of the user.
//!
//! In: files with rules. Out: the rules that compile, and a line for each one that does not, with
//! file, line and column. The other rules still run. A rule of the user replaces one of the program
//! with the same id.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use backstory_files::regular;

use crate::rule::Rule;
use crate::yaml::{self, Mistake, Node};

/// The rules in the program: the name of the file, and its text.
pub const BUILT_IN: [(&str, &str); 9] = [
    (
        "startup-file-written.yml",
        include_str!("../rules/startup-file-written.yml"),
    ),
    (
        "download-run-by-shell.yml",
        include_str!("../rules/download-run-by-shell.yml"),
    ),
    ("secret-sent.yml", include_str!("../rules/secret-sent.yml")),
    (
        "shell-started-by-server.yml",
        include_str!("../rules/shell-started-by-server.yml"),
    ),
    (
        "build-input-from-network.yml",
        include_str!("../rules/build-input-from-network.yml"),
    ),
    (
        "install-script-reads-keys.yml",
        include_str!("../rules/install-script-reads-keys.yml"),
    ),
    (
        "deleted-after-sent.yml",
        include_str!("../rules/deleted-after-sent.yml"),
    ),
    (
        "rename-storm.yml",
        include_str!("../rules/rename-storm.yml"),
    ),
    (
        "output-changed-outside.yml",
        include_str!("../rules/output-changed-outside.yml"),
    ),
];

/// Longest file with rules, in bytes.
const LONGEST: u64 = 1 << 20;

/// Rules, and what is wrong with the others.
#[derive(Debug, Default)]
pub struct Library {
    /// The rules.
    pub rules: Vec<Rule>,
    /// A line for each rule or file that is left out: `FILE:LINE:COLUMN: CAUSE`.
    pub mistakes: Vec<String>,
    /// The files that have no rule, and not one with mistakes.
    pub empty: Vec<String>,
    /// How many rules were read so far, those with mistakes too.
    pub loaded: usize,
}

impl Library {
    /// The rules of the program.
    pub fn built_in() -> Library {
        let mut library = Library::default();
        for (name, text) in BUILT_IN {
            library.add(name, text);
        }
        library
    }

    /// Adds the rules of a file, or of the files `*.yml` and `*.yaml` of a directory.
    ///
    /// # Errors
    ///
    /// The file or directory cannot be read.
    pub fn load(&mut self, path: &Path) -> io::Result<()> {
        if !path.is_dir() {
            return self.load_file(path);
        }
        let entries = std::fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
        let mut files: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
        files.retain(|file| {
            let ending = file.extension().and_then(|ending| ending.to_str());
            matches!(ending, Some("yml" | "yaml"))
        });
        files.sort_unstable();
        for file in files {
            if let Err(error) = self.load_file(&file) {
                self.mistakes.push(format!("{}: {error}", file.display()));
            }
        }
        Ok(())
    }

    fn load_file(&mut self, path: &Path) -> io::Result<()> {
        let mut bytes = Vec::new();
        let file = regular::open(path)?;
        file.take(LONGEST + 1).read_to_end(&mut bytes)?;
        let name = path.display().to_string();
        let before = self.loaded;
        match std::str::from_utf8(&bytes) {
            Ok(text) => self.add(&name, text),
            Err(error) => {
                let before = &bytes[..error.valid_up_to()];
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
                let start = before.iter().rposition(|byte| *byte == b'\n');
                let column = before.len() - start.map_or(0, |at| at + 1) + 1;
                self.loaded += 1;
                self.mistakes
                    .push(format!("{name}:{line}:{column}: the text is not UTF-8"));
            }
        }
        if self.loaded == before {
            self.empty.push(name);
        }
        Ok(())
    }

    fn add(&mut self, file: &str, text: &str) {
        match yaml::documents(text) {
            Err(mistake) => {
                self.loaded += 1;
                self.leave_out(file, &mistake);
            }
            Ok(documents) => {
                self.loaded += documents.len();
                for document in &documents {
                    self.add_rule(file, document);
                }
            }
        }
    }

    fn add_rule(&mut self, file: &str, document: &Node) {
        match Rule::parse(document, file) {
            Err(mistake) => self.leave_out(file, &mistake),
            Ok(rule) => {
                self.rules.retain(|known| known.id != rule.id);
                self.rules.push(rule);
            }
        }
    }

    fn leave_out(&mut self, file: &str, mistake: &Mistake) {
        let (line, column) = (mistake.at.line, mistake.at.column);
        let cause = &mistake.cause;
        self.mistakes
            .push(format!("{file}:{line}:{column}: {cause}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_the_program_compile_and_say_what_matches_harmlessly() {
        let library = Library::built_in();
        assert_eq!(library.mistakes, [""; 0]);
        assert_eq!(library.rules.len(), BUILT_IN.len());
        for (rule, (file, _)) in library.rules.iter().zip(BUILT_IN) {
            assert_eq!(format!("{}.yml", rule.id), file);
            assert!(
                !rule.description.is_empty() && !rule.falsepositives.is_empty(),
                "{file}"
            );
        }
    }

    /// The lines about a rule whose detection is `detection`.
    fn mistakes(detection: &str) -> Vec<String> {
        let mut library = Library::default();
        let good = "---\ntitle: t\nid: good\ndetection: {s: {Image: x}, condition: s}\n";
        library.add("r.yml", &format!("title: t\nid: bad\n{detection}\n{good}"));
        assert_eq!(library.rules.len(), 1, "the other rule still runs");
        library.mistakes
    }

    #[test]
    fn a_rule_that_does_not_compile_has_line_column_and_cause() {
        for (detection, line) in [
            (
                "detection: {s: {Imag: x}, condition: s}",
                "r.yml:3:17: unknown field `Imag`: the fields are Operation, ",
            ),
            (
                "detection: {s: {TargetFileName: x}, condition: s}",
                "r.yml:3:17: unknown field `TargetFileName`: did you mean `TargetFilename`?",
            ),
            (
                "detection:\n  s:\n    Image|begins: x\n  condition: s",
                "r.yml:5:5: unknown modifier `begins`: the modifiers are contains, startswith",
            ),
            (
                "detection:\n  s: {Image: x}\n  condition: s and t",
                "r.yml:5:20: no selection is named `t`",
            ),
            (
                "detection:\n  s: {Image|re: '('}\n  condition: s",
                "r.yml:4:17: not a regular expression",
            ),
            (
                "detection:\n  s: {Operation: raed}\n  condition: s",
                "r.yml:4:18: expected one of start",
            ),
            (
                "detection:\n  s: [word]\n  condition: s",
                "r.yml:4:7: expected fields",
            ),
            (
                "detection:\n  s: {Image|re: 'a{1000}{1000}{1000}'}\n  condition: s",
                "r.yml:4:17: not a regular expression",
            ),
            (
                "level: huge\ndetection: {s: {Image: x}, condition: s}",
                "r.yml:3:8: expected one of informational",
            ),
            (
                "detection: {s: {Image: x}}",
                "r.yml:1:1: `detection` has no `condition`",
            ),
            ("detectoin: {}", "r.yml:3:1: unknown key `detectoin`"),
            (
                "detection: {s: {Image: x}}\ncorrelation: {type: event_count, rules: s, group-by: run, timespan: 5}",
                "r.yml:4:69: expected a time",
            ),
        ] {
            let found = mistakes(detection);
            assert!(
                found.len() == 1 && found[0].starts_with(line),
                "{detection}: {found:?}"
            );
        }
    }

    #[test]
    fn the_keys_that_sigma_s_own_rules_have_are_known() {
        let mut library = Library::default();
        library.add(
            "r.yml",
            "title: t\nid: 6eb23a2a-0d60-4c8b-a0c2-6fd5a2b4b5a1\n\
             related:\n    - id: 0326c3c8-7803-4a0f-8c5c-368f747f7c3e\n      type: similar\n\
             status: test\ndescription: d\nreferences:\n    - https://example.org\n\
             author: a\ndate: 2026-01-01\nmodified: 2026-01-02\ntags:\n    - attack.execution\n\
             license: MIT\nlogsource:\n    product: linux\n    category: process_creation\n\
             detection:\n    s:\n        Image|endswith: /x\n    condition: s\n\
             falsepositives:\n    - Unknown\nlevel: high\n\
             simulation:\n    - type: atomic-red-team\n      technique: T1059\n",
        );
        assert_eq!(library.mistakes, [""; 0]);
        assert_eq!(library.rules.len(), 1);
    }

    #[test]
    fn a_file_that_is_no_yaml_is_left_out_with_its_place() {
        let mut library = Library::built_in();
        let rules = library.rules.len();
        for text in [
            "a: [",
            "a: &x 1\nb: *x",
            &"[".repeat(100_000),
            "a: 1\na: 2",
            "- x",
        ] {
            library.add("r.yml", text);
            let last = library.mistakes.last().unwrap();
            assert!(last.starts_with("r.yml:"), "{last}");
        }
        assert_eq!((library.rules.len(), library.mistakes.len()), (rules, 5));
    }
}
