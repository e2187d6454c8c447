//! The user's policy for recorded shells and for stores: `config.toml` beside `tools.toml`.
//!
//! In: tables of the file. `[shell]` has the lists `private` and `noise` and the switch `remote`,
//! `[limits]` has sizes, and `[inspection]` has the switch `each_run`. Out: the policy, and one
//! warning for each mistake. A missing file is no error. The rest of a file with a mistake counts.

use backstory_ordering::SmallSort;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use backstory_files::regular;
use backstory_query::Globs;
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
    /// The entries `store` and `day` of `[limits]`.
    pub limits: StoreLimits,
    /// The other entries of `[limits]`.
    pub contents: ContentLimits,
    /// Inspectors are asked about the files of each run after it was indexed.
    pub inspects_each_run: bool,
    /// The mistakes, each one line that begins with `PATH:LINE:`.
    pub warnings: Vec<String>,
    /// A mistake hides entries of `private`. So no line may be recorded.
    pub hides_private: bool,
}

/// The most bytes that stores take. `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreLimits {
    /// A whole store: logs, contents and database.
    pub store: Option<u64>,
    /// The runs of one day: their logs, and their part of the database.
    pub day: Option<u64>,
}

/// The most bytes of contents that are stored. `None` for no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentLimits {
    /// All contents of a store, as they are on the disk.
    pub store: ContentBudget,
    /// Contents that one run stores.
    pub run: Option<u64>,
    /// One file.
    pub file: Option<u64>,
    /// Contents that one run stores of the files whose paths match a pattern. `~` is written out.
    pub directories: Vec<(String, u64)>,
}

/// The most bytes that the contents of a store take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContentBudget {
    /// As a small disk bears it: 10 GiB or a twentieth of the file system, whichever is less.
    #[default]
    Default,
    /// So many bytes.
    Bytes(u64),
    /// As much as there is.
    Unlimited,
}

/// The most bytes that [`ContentBudget::Default`] allows.
const DEFAULT_BUDGET: u64 = 10 << 30;

/// The part of the file system that it allows at most.
const DEFAULT_PART: u64 = 20;

impl ContentBudget {
    /// The bytes that this is on the file system of a directory. `None` for no limit.
    pub fn bytes_at(self, directory: &Path) -> Option<u64> {
        match self {
            ContentBudget::Unlimited => None,
            ContentBudget::Bytes(bytes) => Some(bytes),
            ContentBudget::Default => {
                let size = rustix::fs::statvfs(directory)
                    .map(|disk| disk.f_blocks.saturating_mul(disk.f_frsize));
                Some(Self::default_of(size.unwrap_or(u64::MAX)))
            }
        }
    }

    /// The default for a file system of this size.
    fn default_of(size: u64) -> u64 {
        DEFAULT_BUDGET.min(size / DEFAULT_PART)
    }
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
                hides_private: true,
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
                policy.hides_private = true;
            }
            Ok(file) => {
                for (name, table) in file.get_ref() {
                    match (&**name.get_ref(), table.get_ref()) {
                        ("shell", DeValue::Table(table)) => policy.add(table, &mut warnings),
                        ("limits", DeValue::Table(table)) => policy.limit(table, &mut warnings),
                        ("inspection", DeValue::Table(table)) => {
                            policy.inspect(table, &mut warnings);
                        }
                        (known @ ("shell" | "limits" | "inspection"), _) => {
                            let what = format!("{known} is not a table: it is ignored");
                            warnings.push((name.span().start, what));
                            policy.hides_private |= known == "shell";
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
            let is_private = &**key.get_ref() == "private";
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
                self.hides_private |= is_private;
                continue;
            };
            for entry in entries.iter() {
                match entry.get_ref() {
                    DeValue::String(text) if !text.trim().is_empty() => {
                        list.push(text.trim().to_owned());
                    }
                    _ => {
                        let what = "an entry is not a string, or is empty: it is ignored";
                        warnings.push((entry.span().start, what.to_owned()));
                        self.hides_private |= is_private;
                    }
                }
            }
        }
    }

    fn inspect(&mut self, table: &DeTable<'_>, warnings: &mut Vec<(usize, String)>) {
        for (key, value) in table {
            match (&**key.get_ref(), value.get_ref()) {
                ("each_run", DeValue::Boolean(each)) => self.inspects_each_run = *each,
                ("each_run", _) => {
                    let what = "each_run is not true or false".to_owned();
                    warnings.push((value.span().start, what));
                }
                (other, _) => {
                    let what = unknown(&format!("inspection.{other}"));
                    warnings.push((key.span().start, what));
                }
            }
        }
    }

    fn limit(&mut self, table: &DeTable<'_>, warnings: &mut Vec<(usize, String)>) {
        for (key, value) in table {
            let name = &**key.get_ref();
            let bytes = |value: &DeValue<'_>| match value {
                DeValue::String(text) => size(text),
                _ => Err("it is not a string such as \"5G\"".to_owned()),
            };
            let ignored = |name: &str, why: &str| format!("{name} is ignored: {why}");
            let limit = match name {
                "store" => &mut self.limits.store,
                "day" => &mut self.limits.day,
                "run" => &mut self.contents.run,
                "file" => &mut self.contents.file,
                "contents" => {
                    match value.get_ref() {
                        DeValue::String(text) if text == "none" => {
                            self.contents.store = ContentBudget::Unlimited;
                        }
                        other => match bytes(other) {
                            Ok(bytes) => self.contents.store = ContentBudget::Bytes(bytes),
                            Err(why) => warnings.push((value.span().start, ignored(name, &why))),
                        },
                    }
                    continue;
                }
                "directories" => {
                    let DeValue::Table(table) = value.get_ref() else {
                        let what = "directories is not a table: it is ignored".to_owned();
                        warnings.push((value.span().start, what));
                        continue;
                    };
                    for (pattern, value) in table {
                        let pattern = &**pattern.get_ref();
                        let limit = bytes(value.get_ref());
                        match limit.and_then(|limit| Ok((whole_pattern(pattern)?, limit))) {
                            Ok(entry) => self.contents.directories.push(entry),
                            Err(why) => warnings.push((value.span().start, ignored(pattern, &why))),
                        }
                    }
                    continue;
                }
                other => {
                    warnings.push((key.span().start, unknown(&format!("limits.{other}"))));
                    continue;
                }
            };
            match bytes(value.get_ref()) {
                Ok(bytes) => *limit = Some(bytes),
                Err(why) => warnings.push((value.span().start, ignored(name, &why))),
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

/// A pattern of paths with the user's home written out, if it is one.
fn whole_pattern(pattern: &str) -> Result<String, String> {
    let whole = match (pattern.strip_prefix("~/"), std::env::var("HOME")) {
        (Some(below), Ok(home)) => format!("{home}/{below}"),
        _ => pattern.to_owned(),
    };
    match Globs::new(&[&whole]) {
        Ok(_) => Ok(whole),
        Err(error) => Err(error.to_string()),
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
    fn inspectors_are_asked_about_each_run_if_the_file_says_so() {
        assert!(!parsed("").inspects_each_run);
        assert!(parsed("[inspection]\neach_run = true\n").inspects_each_run);
        for wrong in [
            "[inspection]\neach_run = 1\n",
            "[inspection]\nall = true\n",
            "inspection = 1\n",
        ] {
            let wrong = parsed(wrong);
            assert_eq!((wrong.inspects_each_run, wrong.warnings.len()), (false, 1));
        }
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
    fn contents_have_limits_of_their_own() {
        let text = "[limits]\ncontents = \"2G\"\nrun = \"1G\"\nfile = \"100M\"\n\
                    [limits.directories]\n\"/data/**\" = \"1M\"\n\"*.iso\" = \"0\"\n";
        let policy = parsed(text);
        assert!(policy.warnings.is_empty(), "{:?}", policy.warnings);
        assert_eq!(policy.limits, StoreLimits::default());
        let expected = ContentLimits {
            store: ContentBudget::Bytes(2 << 30),
            run: Some(1 << 30),
            file: Some(100 << 20),
            directories: vec![("/data/**".to_owned(), 1 << 20), ("*.iso".to_owned(), 0)],
        };
        let mut found = policy.contents;
        found
            .directories
            .sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        assert_eq!(found, expected);
        let none = parsed("[limits]\ncontents = \"none\"\n").contents;
        assert_eq!(none.store.bytes_at(Path::new("/")), None);
        let wrong =
            parsed("[limits]\ncontents = 5\n[limits.directories]\n\"[\" = \"1\"\n\"/a\" = 1\n");
        assert_eq!(wrong.contents, ContentLimits::default());
        assert_eq!(wrong.warnings.len(), 3, "{:?}", wrong.warnings);
    }

    #[test]
    fn the_default_budget_is_ten_gigabytes_or_a_twentieth_of_the_disk() {
        assert_eq!(ContentBudget::default_of(100 << 30), 5 << 30);
        assert_eq!(ContentBudget::default_of(4 << 40), 10 << 30);
        let here = ContentBudget::Default.bytes_at(Path::new("/"));
        assert!(here.is_some_and(|bytes| bytes <= 10 << 30), "{here:?}");
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

    #[test]
    fn a_mistake_that_can_hide_a_private_line_is_known() {
        for text in [
            "[shell]\nprivate = [",
            "shell = 7",
            "[shell]\nprivate = \"pass *\"",
            "[shell]\nprivate = [\"pass *\", 7]",
        ] {
            assert!(parsed(text).hides_private, "{text}");
        }
        for text in ["", "[shell]\nnoise = 7", "[more]", "[limits]\nstore = 7"] {
            assert!(!parsed(text).hides_private, "{text}");
        }
    }
}
