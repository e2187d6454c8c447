//! The MIME types of a file, by its name and bytes.
//!
//! In: the list `media_types.toml`, which is part of the program, and the text of the system's
//! lists of names (`globs2`). Out: the types of a file. Absent: reading files.

use backstory_comparison::{is_text, is_utf16};
use backstory_wildcards::matches_in_any_case;
use serde::Deserialize;

use crate::name_pattern::{self, MagicBytes};

/// The types that the program knows itself.
const BUILT_IN: &str = include_str!("../media_types.toml");

/// The type of a text that has no other one.
const TEXT: &str = "text/plain";

/// The types that are known.
#[derive(Debug, Clone, Default)]
pub struct MediaTypes {
    known: Vec<MediaType>,
    /// Types with the pattern of a name each.
    named: Vec<(String, String)>,
}

/// Some types that mean the same, and their files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct MediaType {
    types: Vec<String>,
    #[serde(default)]
    globs: Vec<String>,
    #[serde(default)]
    magic: Vec<MagicBytes>,
    /// Bytes that are needed as well.
    begins: Option<MagicBytes>,
    #[serde(default)]
    both: bool,
}

/// The form of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    media: Vec<MediaType>,
}

fn read(text: &str) -> Result<Vec<MediaType>, String> {
    let listed: Listed = toml::from_str(text).map_err(|error| error.to_string())?;
    Ok(listed.media)
}

impl MediaTypes {
    /// The types that the program knows itself.
    pub fn built_in() -> MediaTypes {
        MediaTypes {
            // A test reads the same text.
            known: read(BUILT_IN).unwrap_or_default(),
            named: Vec::new(),
        }
    }

    /// Adds the types of a file `globs2`: lines such as `50:text/x-python:*.py`. Other lines are
    /// left out.
    pub fn add_names(&mut self, globs2: &str) {
        let lines = globs2.lines().filter(|line| !line.starts_with('#'));
        self.named.extend(lines.filter_map(|line| {
            let mut fields = line.splitn(4, ':').skip(1);
            let (media, glob) = (fields.next()?, fields.next()?);
            (!glob.is_empty()).then(|| (media.to_owned(), glob.to_owned()))
        }));
    }

    /// True if the file has a type that one of the patterns names: `text/csv`, `image/*`.
    pub fn are(&self, patterns: &[String], name: &[u8], content: &[u8]) -> bool {
        let wanted = |media: &str| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| matches_in_any_case(pattern.as_bytes(), media.as_bytes()))
        };
        let mut is_typed = false;
        let known = self.known.iter().filter(|media| media.has(name, content));
        for media in known {
            is_typed = true;
            if media.types.iter().any(|media| wanted(media)) {
                return true;
            }
        }
        let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        let named = self.named.iter();
        for (media, _) in named.filter(|(_, glob)| matches_in_any_case(glob.as_bytes(), base)) {
            is_typed = true;
            if wanted(media) {
                return true;
            }
        }
        !is_typed && (is_text(content) || is_utf16(content)) && wanted(TEXT)
    }
}

impl MediaType {
    fn has(&self, name: &[u8], content: &[u8]) -> bool {
        let by_name = name_pattern::matches_any(&self.globs, name);
        let by_magic = self.magic.iter().any(|magic| magic.matches(content));
        let begins = self.begins.as_ref();
        begins.is_none_or(|begin| begin.matches(content))
            && match self.both {
                true => by_name && by_magic,
                false => by_name || by_magic,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;

    fn are(types: &MediaTypes, pattern: &str, name: &str, content: &[u8]) -> bool {
        types.are(&[pattern.to_owned()], name.as_bytes(), content)
    }

    #[test]
    fn a_file_has_the_types_of_its_name_and_bytes() {
        let mut types = MediaTypes {
            known: read(BUILT_IN).unwrap(),
            named: Vec::new(),
        };
        let png = b"\x89PNG\r\n\x1a\n\0";
        assert!(are(&types, "image/png", "plot", png));
        assert!(are(&types, "image/*", "plot", png));
        assert!(!are(&types, "image/jpeg", "plot.jpg", png));
        assert!(are(&types, "image/tiff", "scan", b"MM\0*\0\0\0\x08"));
        assert!(are(
            &types,
            "image/webp",
            "photo",
            b"RIFF\x1a\0\0\0WEBPVP8L"
        ));
        assert!(!are(
            &types,
            "image/webp",
            "x.webp",
            b"RIFF\x1a\0\0\0WAVEfmt "
        ));
        assert!(are(&types, "TEXT/CSV", "dir/A.CSV", b"a,b\n"));
        assert!(!are(&types, "text/csv", "a.tsv", b"a\tb\n"));
        assert!(are(&types, "text/plain", "notes", b"words"));
        assert!(!are(&types, "text/plain", "a.csv", b"a,b\n"));
        assert!(!are(&types, "model/obj", "part.obj", b"v 0 0 0"));
        types.add_names(
            "# a comment\n50:model/obj:*.obj\n50:text/x-makefile:makefile:cs\nnonsense\n",
        );
        assert!(are(&types, "model/obj", "d/part.obj", b"v 0 0 0"));
        assert!(are(&types, "text/x-makefile", "d/makefile", b"all:\n"));
        let elf = |kind: u8| [&b"\x7fELF"[..], &[0; 12], &[kind, 0]].concat();
        assert!(are(&types, "application/x-sharedlib", "p", &elf(3)));
        assert!(!are(&types, "application/x-object", "p", &elf(3)));
    }

    #[test]
    fn each_type_of_a_built_in_inspector_is_known() {
        let types = MediaTypes::built_in();
        let all = Catalogue::built_in();
        for media in all.entries().iter().flat_map(|entry| &entry.types) {
            let known = types.known.iter().any(|one| one.types.contains(media));
            assert!(known || media == TEXT, "{media}");
        }
    }
}
