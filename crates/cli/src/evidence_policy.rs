//! The table `[evidence]` of the user's `config.toml`: the key of seals, and when they are made.
//!
//! In: the keys `key`, `tsa` and `each_run`. Out: the policy, and one warning for each mistake. A
//! missing file or table is no error: then no run is sealed by itself.

use std::io::Read;
use std::path::Path;

use backstory_evidence::Signing;
use backstory_files::regular;
use backstory_pipeline::configuration::position;
use toml::de::{DeTable, DeValue};

use crate::pipeline_file::{FILE, expanded};
use crate::tool_file::in_configuration;

/// The policy for seals.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EvidencePolicy {
    /// The key and the authority of seals.
    pub signing: Signing,
    /// Each run is sealed when it is indexed.
    pub each_run: bool,
    /// The mistakes, each one line that begins with `PATH:LINE:COLUMN:`.
    pub warnings: Vec<String>,
}

impl EvidencePolicy {
    /// Reads the user's file.
    pub fn load() -> EvidencePolicy {
        let Some(path) = in_configuration(FILE) else {
            return EvidencePolicy::default();
        };
        let mut text = String::new();
        match regular::open(&path).and_then(|mut file| file.read_to_string(&mut text)) {
            Ok(_) => EvidencePolicy::parse(&text, &path),
            // `shell` and `pipeline` report a file that cannot be read.
            Err(_) => EvidencePolicy::default(),
        }
    }

    fn parse(text: &str, path: &Path) -> EvidencePolicy {
        let mut policy = EvidencePolicy::default();
        let Ok(file) = DeTable::parse(text) else {
            return policy;
        };
        let Some(table) = file.get_ref().get("evidence") else {
            return policy;
        };
        let mut warnings = Vec::new();
        match table.get_ref() {
            DeValue::Table(keys) => {
                for (key, value) in keys {
                    let at = value.span().start;
                    if let Err(what) = policy.set(key.get_ref(), value.get_ref()) {
                        warnings.push((at, what));
                    }
                }
            }
            _ => warnings.push((table.span().start, "evidence is not a table".to_owned())),
        }
        warnings.sort_unstable();
        let line = |(at, what): (usize, String)| {
            let (line, column) = position(text, at);
            format!("{}:{line}:{column}: {what}", path.display())
        };
        policy.warnings = warnings.into_iter().map(line).collect();
        policy
    }

    fn set(&mut self, key: &str, value: &DeValue<'_>) -> Result<(), String> {
        match (key, value) {
            ("key", DeValue::String(path)) => self.signing.key = Some(expanded(path)),
            ("tsa", DeValue::String(address)) => self.signing.tsa = Some(address.to_string()),
            ("each_run", DeValue::Boolean(each)) => self.each_run = *each,
            ("key" | "tsa", _) => return Err(format!("evidence.{key} is not a string")),
            ("each_run", _) => return Err("evidence.each_run is not true or false".to_owned()),
            _ => return Err(format!("unknown key evidence.{key}: it is ignored")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_who_signs_and_a_mistake_has_line_and_column() {
        let parse = |text: &str| EvidencePolicy::parse(text, Path::new("/c/config.toml"));
        let policy = parse("[evidence]\nkey = \"/k\"\ntsa = \"http://t/\"\neach_run = true\n");
        let signing = Signing {
            key: Some("/k".into()),
            tsa: Some("http://t/".to_owned()),
        };
        assert_eq!((policy.signing, policy.each_run), (signing, true));
        assert!(policy.warnings.is_empty());
        let wrong = parse("[evidence]\nkey = 7\nkeys = \"x\"\neach_run = \"no\"\n");
        let begins: Vec<&str> = wrong.warnings.iter().map(|line| &line[..20]).collect();
        assert_eq!(wrong.warnings.len(), 3, "{begins:?}");
        assert!(begins[0].starts_with("/c/config.toml:2:7:"), "{begins:?}");
        assert_eq!(parse("[limits]\n"), EvidencePolicy::default());
    }
}
