//! Packages that the path itself names: `/nix/store/HASH-hello-2.10/bin/hello`.
//!
//! In: layouts as text, one for each directory convention. Out: the package that a path names. The
//! file system is not looked at, so that a package that is gone is still named.
//!
//! A layout is `LABEL PATTERN` or `LABEL:NAME PATTERN`:
//!
//! ```text
//! homebrew /Cellar/{name}/{version}/
//! pyenv:python /.pyenv/versions/{version}/
//! nix /nix/store/{}-{name}-{version}/
//! ```
//!
//! A pattern matches whole components at any depth of a path, and something must follow it. The
//! fields match text without a slash:
//!
//! | field | matches |
//! | --- | --- |
//! | `{}` | any text |
//! | `{name}` | any text: the package's name |
//! | `{version}` | a version: a digit, or `v` and a digit, and any text |
//! | `{release}` | any text: the version, for toolchains with names such as `stable` |
//!
//! The first layout that matches counts; a field takes as little text as possible.

use std::fmt;
use std::path::Path;

use crate::package_id::PackageId;

/// Layouts of directories whose paths name a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathLayouts {
    layouts: Vec<PathLayout>,
}

/// A layout that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutError(String);

impl fmt::Display for LayoutError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "`{}` is not a layout: it must be LABEL /PATTERN/ or LABEL:NAME /PATTERN/",
            self.0
        )
    }
}

impl std::error::Error for LayoutError {}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PathLayout {
    label: String,
    /// The package's name if the path does not have it.
    name: Option<String>,
    components: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Any,
    Name,
    Version,
    Release,
}

/// The texts that the fields of a layout matched.
#[derive(Default, Clone, Copy)]
struct Fields<'p> {
    name: Option<&'p str>,
    version: Option<&'p str>,
}

impl PathLayouts {
    /// Parses layouts.
    ///
    /// # Errors
    /// The first text that is not a layout.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<PathLayouts, LayoutError> {
        let layouts = texts.iter().map(|text| {
            let text = text.as_ref();
            PathLayout::parse(text).ok_or_else(|| LayoutError(text.to_owned()))
        });
        Ok(PathLayouts {
            layouts: layouts.collect::<Result<_, _>>()?,
        })
    }

    /// Adds layouts. The present ones come first.
    pub fn extend(&mut self, more: PathLayouts) {
        self.layouts.extend(more.layouts);
    }

    /// The package that the path names.
    pub fn package(&self, path: &Path) -> Option<PackageId> {
        let parts: Vec<&str> = path.to_str()?.split('/').skip(1).collect();
        self.layouts
            .iter()
            .find_map(|layout| layout.package(&parts))
    }
}

impl PathLayout {
    fn parse(text: &str) -> Option<PathLayout> {
        let (label, pattern) = text.split_once(" /")?;
        let (label, name) = match label.split_once(':') {
            Some((label, name)) => (label, Some(name.to_owned())),
            None => (label, None),
        };
        let inner = pattern.strip_suffix('/')?;
        let components: Option<Vec<_>> = inner.split('/').map(pieces).collect();
        let components = components?;
        let named = name.is_some()
            || components
                .iter()
                .flatten()
                .any(|piece| *piece == Piece::Name);
        (named && !label.is_empty()).then(|| PathLayout {
            label: label.to_owned(),
            name,
            components,
        })
    }

    fn package(&self, parts: &[&str]) -> Option<PackageId> {
        let count = self.components.len();
        // Something must follow: the directory itself is no file of the package.
        let found = parts.windows(count + 1).rev().find_map(|window| {
            let mut fields = Fields::default();
            for (pieces, part) in self.components.iter().zip(window) {
                fields = matched(pieces, part, fields)?;
            }
            Some(fields)
        })?;
        let name = self.name.as_deref().or(found.name)?;
        Some(PackageId::new(
            &self.label,
            name,
            found.version.unwrap_or_default(),
        ))
    }
}

/// The pieces of one component. `None` if a field is unknown.
fn pieces(component: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = component;
    while !rest.is_empty() {
        let (text, field) = match rest.find('{') {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        let Some(field) = field else { break };
        let (field, after) = field.split_once('}')?;
        pieces.push(match field {
            "" => Piece::Any,
            "name" => Piece::Name,
            "version" => Piece::Version,
            "release" => Piece::Release,
            _ => return None,
        });
        rest = after;
    }
    (!pieces.is_empty()).then_some(pieces)
}

/// The fields after `text` was matched, with as little text for each field as possible.
fn matched<'p>(pieces: &[Piece], text: &'p str, fields: Fields<'p>) -> Option<Fields<'p>> {
    let Some((piece, rest)) = pieces.split_first() else {
        return text.is_empty().then_some(fields);
    };
    if let Piece::Text(wanted) = piece {
        return matched(rest, text.strip_prefix(wanted.as_str())?, fields);
    }
    let ends = text.char_indices().skip(1).map(|(at, _)| at);
    ends.chain((!text.is_empty()).then_some(text.len()))
        .find_map(|end| {
            let (taken, after) = text.split_at(end);
            let fields = match piece {
                Piece::Name => Fields {
                    name: Some(taken),
                    ..fields
                },
                Piece::Version if !is_version(taken) => return None,
                Piece::Version | Piece::Release => Fields {
                    version: Some(
                        taken
                            .strip_prefix('v')
                            .filter(|_| is_version(taken))
                            .unwrap_or(taken),
                    ),
                    ..fields
                },
                Piece::Any | Piece::Text(_) => fields,
            };
            matched(rest, after, fields)
        })
}

fn is_version(text: &str) -> bool {
    let digits = text.strip_prefix('v').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(layout: &str, path: &str) -> Option<String> {
        let layouts = PathLayouts::parse(&[layout]).unwrap();
        layouts
            .package(path.as_ref())
            .map(|package| package.to_string())
    }

    #[test]
    fn a_path_names_its_package_by_a_layout() {
        let is = |text: &str| Some(text.to_owned());
        let nix = "nix /nix/store/{}-{name}-{version}/";
        assert_eq!(
            named(nix, "/nix/store/abc-gnu-hello-2.10/bin/hello"),
            is("gnu-hello 2.10 (nix)")
        );
        assert_eq!(named(nix, "/nix/store/abc-source/x"), None);
        assert_eq!(
            named(
                "pyenv:python /.pyenv/versions/{version}/",
                "/root/.pyenv/versions/3.11.7/bin/python"
            ),
            is("python 3.11.7 (pyenv)")
        );
        assert_eq!(
            named(
                "nvm:node /versions/node/{version}/",
                "/r/.nvm/versions/node/v20.1.0/bin/node"
            ),
            is("node 20.1.0 (nvm)")
        );
        assert_eq!(
            named(
                "rustup:rust /.rustup/toolchains/{release}/",
                "/r/.rustup/toolchains/stable-x86_64/bin/rustc"
            ),
            is("rust stable-x86_64 (rustup)")
        );
    }

    #[test]
    fn the_directory_of_a_layout_itself_is_no_file_of_the_package() {
        let layout = "homebrew /Cellar/{name}/{version}/";
        assert_eq!(named(layout, "/b/Cellar/jq/1.7"), None);
        assert_eq!(
            named(layout, "/b/Cellar/jq/1.7/bin/jq"),
            Some("jq 1.7 (homebrew)".to_owned())
        );
    }

    #[test]
    fn a_text_that_is_no_layout_is_named_in_the_error() {
        for text in [
            "nix",
            "nix /store/{}/",
            "x:y store/",
            "x:y /{what}/",
            " /{name}/",
        ] {
            let error = PathLayouts::parse(&[text]).unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
