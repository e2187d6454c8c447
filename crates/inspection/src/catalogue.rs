//! The inspectors: those of `inspectors.toml`, which is part of the program, and the user's own.
//!
//! A user's inspector is a command or a WebAssembly component. It comes before the built-in ones.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::name_pattern;

/// The built-in inspectors.
const BUILT_IN: &str = include_str!("../inspectors.toml");

/// All inspectors, in the order in which they are tried.
#[derive(Debug, Clone)]
pub struct Catalogue {
    entries: Vec<InspectorEntry>,
}

/// One inspector.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InspectorEntry {
    /// Its name.
    pub name: String,
    /// Its version. Kept answers of another version are not used.
    pub version: u32,
    /// MIME types that it takes.
    #[serde(default)]
    pub types: Vec<String>,
    /// Patterns of names that it takes.
    #[serde(default)]
    pub globs: Vec<String>,
    /// Bytes that it takes, in hexadecimal, with an offset before a colon.
    #[serde(default)]
    magic: Vec<MagicBytes>,
    /// True if a file needs both a name and bytes that match.
    #[serde(default)]
    both: bool,
    /// The command of a plug-in. Empty for other inspectors.
    #[serde(default)]
    pub command: Vec<String>,
    /// The file of a WebAssembly component.
    pub component: Option<PathBuf>,
}

/// Bytes at a place of a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
struct MagicBytes {
    offset: usize,
    bytes: Vec<u8>,
}

impl TryFrom<String> for MagicBytes {
    type Error = String;

    fn try_from(text: String) -> Result<MagicBytes, String> {
        let wrong = || format!("{text:?} is not OFFSET:HEX or HEX");
        let (offset, hex) = text.split_once(':').unwrap_or(("0", &text));
        let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(hex.as_bytes());
        Ok(MagicBytes {
            offset: offset.parse().map_err(|_| wrong())?,
            bytes: bytes.map_err(|_| wrong())?,
        })
    }
}

/// The form of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[serde(default)]
    inspector: Vec<InspectorEntry>,
}

fn read(text: &str) -> Result<Vec<InspectorEntry>, String> {
    let listed: Listed = toml::from_str(text).map_err(|error| error.to_string())?;
    Ok(listed.inspector)
}

impl Catalogue {
    /// The built-in inspectors.
    pub fn built_in() -> Catalogue {
        // A test reads the same text.
        let entries = read(BUILT_IN).unwrap_or_default();
        Catalogue { entries }
    }

    /// The built-in inspectors, with the user's own before them. `text` is the content of the file
    /// `path`.
    ///
    /// # Errors
    /// The mistake in the file, in one line.
    pub fn extended(text: &str, path: &Path) -> Result<Catalogue, String> {
        let wrong = |why: &str| format!("{} is ignored: {why}", path.display());
        let mut entries = read(text).map_err(|error| wrong(&error.replace('\n', " ")))?;
        let built_in = Catalogue::built_in();
        for entry in &entries {
            let why = match (entry.command.is_empty(), &entry.component) {
                (true, None) => "no command and no component",
                (false, Some(_)) => "both a command and a component",
                (true, Some(component)) if !component.is_absolute() => {
                    "a component whose path is not absolute"
                }
                _ => "",
            };
            if !why.is_empty() {
                return Err(wrong(&format!("inspector {} has {why}", entry.name)));
            }
            if built_in
                .entries
                .iter()
                .any(|other| other.name == entry.name)
            {
                return Err(wrong(&format!(
                    "{} is the name of a built-in inspector",
                    entry.name
                )));
            }
        }
        entries.extend(built_in.entries);
        Ok(Catalogue { entries })
    }

    /// All inspectors, in the order in which they are tried.
    pub fn entries(&self) -> &[InspectorEntry] {
        &self.entries
    }

    /// The first inspector that takes a file with this name and content. `None` if no inspector
    /// does: a content with NUL bytes that no other inspector knows.
    pub fn choose(&self, name: &[u8], content: &[u8]) -> Option<&InspectorEntry> {
        let is_text = !content[..content.len().min(8000)].contains(&0);
        self.entries
            .iter()
            .find(|entry| entry.takes(name, content) && (is_text || entry.name != "text"))
    }
}

impl InspectorEntry {
    /// True if the inspector takes a file with this name and content.
    pub fn takes(&self, name: &[u8], content: &[u8]) -> bool {
        let by_name = self
            .globs
            .iter()
            .any(|glob| name_pattern::matches(glob.as_bytes(), name));
        let by_magic = self.magic.iter().any(|magic| {
            let rest = content.get(magic.offset..);
            rest.is_some_and(|rest| rest.starts_with(&magic.bytes))
        });
        match self.both {
            true => by_name && by_magic,
            false => by_name || by_magic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_inspectors_are_listed_once_each() {
        let entries = read(BUILT_IN).unwrap();
        let mut names: Vec<&str> = entries.iter().map(|entry| &*entry.name).collect();
        assert_eq!(names.last(), Some(&"text"));
        let number = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), number);
    }

    #[test]
    fn an_inspector_is_chosen_by_name_and_bytes() {
        let all = Catalogue::built_in();
        let chosen = |name: &str, content: &[u8]| {
            let entry = all.choose(name.as_bytes(), content);
            entry.map(|entry| entry.name.clone())
        };
        assert_eq!(chosen("a.csv", b"a,b\n").as_deref(), Some("csv"));
        assert_eq!(chosen("a.docx", b"PK\x03\x04").as_deref(), Some("docx"));
        assert_eq!(chosen("a.docx", b"a text").as_deref(), Some("text"));
        assert_eq!(chosen("a.jar", b"PK\x03\x04").as_deref(), Some("zip"));
        assert_eq!(chosen("prog", b"\x7fELF\0").as_deref(), Some("elf"));
        assert_eq!(chosen("notes", b"words").as_deref(), Some("text"));
        assert_eq!(chosen("notes", b"\0\x01"), None);
    }

    #[test]
    fn a_users_inspector_comes_before_the_built_in_ones() {
        let text = "[[inspector]]\nname = 'mesh'\nversion = 3\nglobs = ['*.csv']\ncommand = ['mesh-facts']\n";
        let all = Catalogue::extended(text, Path::new("/c/inspectors.toml")).unwrap();
        assert_eq!(all.choose(b"a.csv", b"").unwrap().name, "mesh");
        for (text, why) in [
            ("[[inspector]]\nname = 'x'\nversion = 1\n", "no command"),
            (
                "[[inspector]]\nname = 'csv'\nversion = 1\ncommand = ['c']\n",
                "built-in",
            ),
            (
                "[[inspector]]\nname = 'x'\nversion = 1\ncommand = ['c']\ncomponent = '/x.wasm'\n",
                "both a command and a component",
            ),
            (
                "[[inspector]]\nname = 'x'\nversion = 1\ncomponent = 'x.wasm'\n",
                "not absolute",
            ),
            (
                "[[inspector]]\nname = 'x'\nversion = 1\ncommand = ['c']\nmagic = ['z']\n",
                "HEX",
            ),
            ("inspector = 3", "ignored"),
        ] {
            let error = Catalogue::extended(text, Path::new("/c/inspectors.toml")).unwrap_err();
            assert!(
                error.contains(why) && error.starts_with("/c/inspectors.toml"),
                "{error}"
            );
        }
    }
}
