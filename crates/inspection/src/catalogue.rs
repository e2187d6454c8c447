//! The inspectors: those of `inspectors.toml`, which is part of the program, and the user's own.
//!
//! A user's inspector is a command or a WebAssembly component. It comes before the built-in ones.
//! The user's file also names the key columns of tables.

use std::path::{Path, PathBuf};

use backstory_comparison::{is_text, is_utf16};
use serde::Deserialize;

use crate::media_types::MediaTypes;
use crate::name_pattern::{self, MagicBytes};
use crate::table_keys::{ListedTable, TableKeys};

/// The built-in inspectors.
const BUILT_IN: &str = include_str!("../inspectors.toml");

/// All inspectors, in the order in which they are tried.
#[derive(Debug, Clone)]
pub struct Catalogue {
    entries: Vec<InspectorEntry>,
    media_types: MediaTypes,
    keys: TableKeys,
}

/// One inspector.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InspectorEntry {
    /// Its name.
    pub name: String,
    /// Its version. Kept answers of another version are not used.
    pub version: u32,
    /// MIME types that it takes, if it is a user's: `text/csv`, `image/*`.
    #[serde(default)]
    pub types: Vec<String>,
    /// Patterns of names that it takes.
    #[serde(default)]
    pub globs: Vec<String>,
    /// Bytes that it takes, in hexadecimal, with an offset before a colon.
    #[serde(default)]
    magic: Vec<MagicBytes>,
    /// True if a file needs a match of each kind that is given: type, name and bytes.
    #[serde(default)]
    both: bool,
    /// The command of a plug-in. Empty for other inspectors.
    #[serde(default)]
    pub command: Vec<String>,
    /// The file of a WebAssembly component.
    pub component: Option<PathBuf>,
}

/// The form of the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[serde(default)]
    inspector: Vec<InspectorEntry>,
    #[serde(default)]
    table: Vec<ListedTable>,
}

fn read(text: &str) -> Result<Listed, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

impl Catalogue {
    /// The built-in inspectors.
    pub fn built_in() -> Catalogue {
        // A test reads the same text.
        let listed = read(BUILT_IN).unwrap_or_default();
        Catalogue {
            entries: listed.inspector,
            media_types: MediaTypes::default(),
            keys: TableKeys::default(),
        }
    }

    /// The built-in inspectors, with the user's own before them. `text` is the content of the file
    /// `path`.
    ///
    /// # Errors
    /// The mistake in the file, in one line.
    pub fn extended(text: &str, path: &Path) -> Result<Catalogue, String> {
        let wrong = |why: &str| format!("{} is ignored: {why}", path.display());
        let listed = read(text).map_err(|error| wrong(&error.replace('\n', " ")))?;
        let keys = TableKeys::listed(listed.table).map_err(|why| wrong(&why))?;
        let mut entries = listed.inspector;
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
        Ok(Catalogue {
            entries,
            media_types: MediaTypes::built_in(),
            keys,
        })
    }

    /// The key columns of the user's tables.
    pub fn keys(&self) -> &TableKeys {
        &self.keys
    }

    /// True if a user's inspector chooses by MIME type. [`Catalogue::add_media_names`] then helps.
    pub fn needs_media_types(&self) -> bool {
        let mut users = self.entries.iter().filter(|entry| entry.is_users());
        users.any(|entry| !entry.types.is_empty())
    }

    /// Adds the MIME types that a list of the system (`globs2`) gives to names.
    pub fn add_media_names(&mut self, globs2: &str) {
        self.media_types.add_names(globs2);
    }

    /// All inspectors, in the order in which they are tried.
    pub fn entries(&self) -> &[InspectorEntry] {
        &self.entries
    }

    /// The first inspector that takes a file with this name and content. `None` if no inspector
    /// does: a content with NUL bytes that no other inspector knows.
    pub fn choose(&self, name: &[u8], content: &[u8]) -> Option<&InspectorEntry> {
        let path = name_pattern::absolute(name);
        let mut entries = self.entries.iter();
        entries.find(|entry| self.takes_path(entry, &path, content))
    }

    /// True if an inspector takes a file with this name and content.
    pub fn takes(&self, entry: &InspectorEntry, name: &[u8], content: &[u8]) -> bool {
        self.takes_path(entry, &name_pattern::absolute(name), content)
    }

    fn takes_path(&self, entry: &InspectorEntry, path: &[u8], content: &[u8]) -> bool {
        // The first bytes of an image of the type BMP are letters.
        let fits = match entry.name.as_str() {
            "text" => is_text(content) || is_utf16(content),
            "image" => !is_text(content),
            "json" | "toml" => is_text(content),
            _ => true,
        };
        // The types of a built-in inspector say no more than its names and bytes.
        let types = (entry.is_users() && !entry.types.is_empty())
            .then(|| self.media_types.are(&entry.types, path, content));
        fits && entry.is_fit(types, path, content)
    }
}

impl InspectorEntry {
    /// True for an inspector of the user's own.
    pub fn is_users(&self) -> bool {
        !self.command.is_empty() || self.component.is_some()
    }

    /// `by_type`: whether the file has one of the types. `None` if types do not count.
    fn is_fit(&self, by_type: Option<bool>, name: &[u8], content: &[u8]) -> bool {
        let by_name =
            (!self.globs.is_empty()).then(|| name_pattern::matches_any(&self.globs, name));
        let by_magic =
            (!self.magic.is_empty()).then(|| self.magic.iter().any(|magic| magic.matches(content)));
        let mut conditions = [by_type, by_name, by_magic]
            .into_iter()
            .flatten()
            .peekable();
        match self.both {
            true => conditions.peek().is_some() && conditions.all(|is_met| is_met),
            false => conditions.any(|is_met| is_met),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_inspectors_are_listed_once_each() {
        let entries = read(BUILT_IN).unwrap().inspector;
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
        assert_eq!(chosen("notes", b"\xff\xfea\0").as_deref(), Some("text"));
        assert_eq!(chosen("notes", b"BMW, Audi").as_deref(), Some("text"));
    }

    #[test]
    fn a_users_inspector_is_chosen_by_mime_type_and_by_glob() {
        let text = "[[inspector]]\nname = 'plots'\nversion = 1\ntypes = ['image/*']\n\
            globs = ['*.plot']\ncommand = ['plot-facts']\n";
        let both = [text, "both = true\n"].concat();
        let png = b"\x89PNG\r\n\x1a\n\0";
        let chosen = |text: &str, name: &str, content: &[u8]| {
            let all = Catalogue::extended(text, Path::new("/c/inspectors.toml")).unwrap();
            all.choose(name.as_bytes(), content)
                .map(|entry| entry.name.clone())
        };
        for (name, content, any, all) in [
            ("a.png", &png[..], "plots", "image"),
            ("a.plot", b"text", "plots", "text"),
            ("a.plot", png, "plots", "plots"),
            ("a.csv", b"a,b\n", "csv", "csv"),
        ] {
            assert_eq!(chosen(text, name, content).as_deref(), Some(any), "{name}");
            assert_eq!(chosen(&both, name, content).as_deref(), Some(all), "{name}");
        }
    }

    #[test]
    fn a_pattern_with_directories_matches_a_path_from_the_current_directory() {
        let text = "[[inspector]]\nname = 'mesh'\nversion = 1\nglobs = ['*/sub/*.fb']\n\
            command = ['mesh-facts']\n";
        let all = Catalogue::extended(text, Path::new("/c/inspectors.toml")).unwrap();
        for (name, content, chosen) in [
            ("sub/a.fb", &b"text"[..], "mesh"),
            ("./sub/a.fb", b"text", "mesh"),
            ("/p/sub/a.fb", b"text", "mesh"),
            ("a.fb", b"text", "text"),
            (".git/refs/heads/master", b"0123\n", "git"),
            (".git/objects/f7/f5e0", b"x\x01\0", "git"),
        ] {
            let entry = all.choose(name.as_bytes(), content);
            assert_eq!(entry.map(|entry| &*entry.name), Some(chosen), "{name}");
            assert!(
                all.takes(entry.unwrap(), name.as_bytes(), content),
                "{name}"
            );
        }
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
