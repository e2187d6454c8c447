//! The user's policy for recorded shells and for stores: `config.toml` beside `tools.toml`.
//!
//! In: the table `[shell]` with the lists `private` and `noise` and the switch `remote`, and the
//! table `[limits]` with sizes. Out: the policy, and one warning for each mistake. A missing file
//! is no error. The rest of a file with a mistake counts.

use backstory_ordering::SmallSort;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use backstory_files::regular;
use backstory_session::LinePolicy;
use toml::de::{DeTable, DeValue};

use crate::args::amounts::size;
use crate::tool_file::in_configuration;

/// The variable with the path of a file that stops recording while it exists.
pub const PAUSED: &str = "BACKSTORY_PAUSED";

/// The configuration as it is in effect.
#[derive(Debug, Default)]
pub struct ShellPolicy {
    /// The file. `None` without a home directory.
    pub file: Option<PathBuf>,
    /// True if the file exists and can be read.
    pub exists: bool,
    /// The entries of `private`, as they were written.
    pub private: Vec<String>,
    /// The entries of `noise`.
    pub noise: Vec<String>,
    /// Whether commands on other machines are recorded, too.
    pub remote: bool,
    /// The entries of `[limits]`.
    pub limits: StoreLimits,
    /// The mistakes, each one line that begins with `PATH:LINE:`.
    pub warnings: Vec<String>,
}

/// The most bytes that stores take. `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreLimits {
    /// A whole store: logs, contents and database.
    pub store: Option<u64>,
    /// The runs of one day: their logs, and their part of the database.
    pub day: Option<u64>,
}

impl ShellPolicy {
    /// Reads the user's file.
    pub fn load() -> ShellPolicy {
        let Some(path) = in_configuration("config.toml") else {
            return ShellPolicy::default();
        };
        let mut text = String::new();
        let read = regular::open(&path).and_then(|mut file| file.read_to_string(&mut text));
        let mut policy = match &read {
            Ok(_) => ShellPolicy::parse(&text, &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => ShellPolicy::default(),
            Err(error) => ShellPolicy {
                warnings: vec![format!("{} is ignored: {error}", path.display())],
                ..ShellPolicy::default()
            },
        };
        policy.exists = read.is_ok();
        policy.file = Some(path);
        policy
    }

    fn parse(text: &str, path: &Path) -> ShellPolicy {
        let mut policy = ShellPolicy::default();
        let mut warnings: Vec<(usize, String)> = Vec::new();
        match DeTable::parse(text) {
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                let what = format!("{}; the file is ignored", error.message());
                warnings.push((at.min(text.len()), what));
            }
            Ok(file) => {
                for (name, table) in file.get_ref() {
                    match (&**name.get_ref(), table.get_ref()) {
                        ("shell", DeValue::Table(table)) => policy.add(table, &mut warnings),
                        ("limits", DeValue::Table(table)) => policy.limit(table, &mut warnings),
                        (known @ ("shell" | "limits"), _) => {
                            let what = format!("{known} is not a table: it is ignored");
                            warnings.push((name.span().start, what));
                        }
                        // `pipeline_file` reads these.
                        ("filter" | "store", DeValue::Array(_)) => {}
                        // `evidence_policy` reads this.
                        ("evidence", _) => {}
                        (other, _) => warnings.push((name.span().start, unknown(other))),
                    }
                }
            }
        }
        warnings.sort_small();
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        let warnings = warnings.into_iter();
        policy.warnings = warnings
            .map(|(at, what)| format!("{}:{}: {what}", path.display(), line(at)))
            .collect();
        policy
    }

    fn add(&mut self, table: &DeTable<'_>, warnings: &mut Vec<(usize, String)>) {
        for (key, value) in table {
            let at = key.span().start;
            let list = match &**key.get_ref() {
                "private" => &mut self.private,
                "noise" => &mut self.noise,
                "remote" => {
                    match value.get_ref() {
                        DeValue::Boolean(remote) => self.remote = *remote,
                        _ => warnings.push((at, "remote is not true or false".to_owned())),
                    }
                    continue;
                }
                other => {
                    warnings.push((at, unknown(&format!("shell.{other}"))));
                    continue;
                }
            };
            let DeValue::Array(entries) = value.get_ref() else {
                let what = format!("{} is not a list of strings: it is ignored", key.get_ref());
                warnings.push((at, what));
                continue;
            };
            for entry in entries.iter() {
                match entry.get_ref() {
                    DeValue::String(text) if !text.trim().is_empty() => {
                        list.push(text.trim().to_owned());
                    }
                    _ => warnings.push((
                        entry.span().start,
                        "an entry is not a string, or is empty: it is ignored".to_owned(),
                    )),
                }
            }
        }
    }

    fn limit(&mut self, table: &DeTable<'_>, warnings: &mut Vec<(usize, String)>) {
        for (key, value) in table {
            let limit = match &**key.get_ref() {
                "store" => &mut self.limits.store,
                "day" => &mut self.limits.day,
                other => {
                    warnings.push((key.span().start, unknown(&format!("limits.{other}"))));
                    continue;
                }
            };
            let bytes = match value.get_ref() {
                DeValue::String(text) => size(text),
                _ => Err("it is not a string such as \"5G\"".to_owned()),
            };
            match bytes {
                Ok(bytes) => *limit = Some(bytes),
                Err(why) => {
                    let what = format!("{} is ignored: {why}", key.get_ref());
                    warnings.push((value.span().start, what));
                }
            }
        }
    }

    /// The policy of a shell. `paused` is the file that stops recording while it exists.
    pub fn of_lines(&self, paused: Option<PathBuf>) -> LinePolicy {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let directory = |entry: &String| match (entry.strip_prefix("~/"), &home) {
            (Some(below), Some(home)) => Some(home.join(below.trim_end_matches('/'))),
            (None, Some(home)) if entry == "~" => Some(home.clone()),
            _ if entry.starts_with('/') => Some(entry.trim_end_matches('/').into()),
            _ => None,
        };
        let is_command = |entry: &&String| !entry.starts_with(['/', '~']);
        LinePolicy {
            private_directories: self.private.iter().filter_map(directory).collect(),
            private_commands: self.private.iter().filter(is_command).cloned().collect(),
            noise: self.noise.clone(),
            home,
            paused,
        }
    }
}

fn unknown(key: &str) -> String {
    format!("unknown key {key}: it is ignored")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> ShellPolicy {
        ShellPolicy::parse(text, Path::new("/c/config.toml"))
    }

    #[test]
    fn the_file_has_two_lists() {
        let text = "[shell]\nprivate = [\"/secret/\", \"pass *\"]\nnoise = [\"ls\"]\n";
        let policy = parsed(text);
        assert!(policy.warnings.is_empty(), "{:?}", policy.warnings);
        let lines = policy.of_lines(None);
        assert_eq!(lines.private_directories, [Path::new("/secret")]);
        assert_eq!(lines.private_commands, ["pass *"]);
        assert_eq!(lines.noise, ["ls"]);
        assert!(!policy.remote && parsed("[shell]\nremote = true\n").remote);
        assert_eq!(parsed("[shell]\nremote = \"yes\"\n").warnings.len(), 1);
    }

    #[test]
    fn the_limits_have_units() {
        let limits = parsed("[limits]\nstore = \"5G\"\nday = \"200M\"\n").limits;
        assert_eq!((limits.store, limits.day), (Some(5 << 30), Some(200 << 20)));
        let wrong = parsed("[limits]\nstore = 5\nday = \"much\"\nweek = \"1G\"\n");
        assert_eq!(wrong.limits, StoreLimits::default());
        assert_eq!(wrong.warnings.len(), 3, "{:?}", wrong.warnings);
    }

    #[test]
    fn a_mistake_names_its_line_and_the_rest_counts() {
        let text = "[shell]\nnoisy = [\"ls\"]\nnoise = [\"ls\", 7]\nprivate = \"x\"\n[more]\n";
        let policy = parsed(text);
        assert_eq!(policy.noise, ["ls"]);
        let found: Vec<&str> = policy.warnings.iter().map(|w| &w[..17]).collect();
        let lines = [2, 3, 4, 5].map(|line| format!("/c/config.toml:{line}:"));
        assert_eq!(found, lines, "{:?}", policy.warnings);
        let broken = parsed("[shell]\nnoise = [");
        assert_eq!(broken.warnings.len(), 1, "{:?}", broken.warnings);
    }
}
