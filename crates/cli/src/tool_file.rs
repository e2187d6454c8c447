//! Reads the user's knowledge about tools, `tools.toml`, before a command looks any of it up.
//!
//! In: `$XDG_CONFIG_HOME/backstory/tools.toml`, else `~/.config/backstory/tools.toml`. Out: the
//! process's [`backstory_workflow::tools::knowledge`]. A missing file is no error. A mistake in the
//! file is a line on stderr, and the rest of the file counts.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;

use backstory_files::regular;
use backstory_workflow::tools::{ToolKnowledge, install};

use crate::error::complain;

/// Installs the user's file, if there is one.
pub fn load() {
    let Some(path) = in_configuration("tools.toml") else {
        return;
    };
    let mut text = String::new();
    match regular::open(&path).and_then(|mut file| file.read_to_string(&mut text)) {
        Ok(_) => {
            let (knowledge, warnings) = ToolKnowledge::extended(&text, &path);
            install(knowledge);
            warnings.iter().for_each(|warning| complain(warning));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => complain(&format!("{} is ignored: {error}", path.display())),
    }
}

/// The path of a file in the user's configuration. `None` without a home directory.
pub fn in_configuration(file: &str) -> Option<PathBuf> {
    path(file, |name| std::env::var_os(name))
}

/// The file's path by the XDG Base Directory Specification: a relative `XDG_CONFIG_HOME` counts as
/// unset.
fn path(file: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(variable(name)?);
        path.is_absolute().then_some(path)
    };
    let home = || Some(absolute("HOME")?.join(".config"));
    let config = absolute("XDG_CONFIG_HOME").or_else(home)?;
    Some(config.join("backstory").join(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_lies_in_the_configuration_directory() {
        let of = |config: Option<&str>, home: Option<&str>| {
            let found = path("tools.toml", |name| match name {
                "XDG_CONFIG_HOME" => config.map(OsString::from),
                _ => home.map(OsString::from),
            });
            found.map(|path| path.into_os_string().into_string().unwrap())
        };
        let file = |text: &str| Some(text.to_owned());
        assert_eq!(of(Some("/c"), Some("/h")), file("/c/backstory/tools.toml"));
        assert_eq!(
            of(Some("c"), Some("/h")),
            file("/h/.config/backstory/tools.toml")
        );
        assert_eq!(
            of(None, Some("/h")),
            file("/h/.config/backstory/tools.toml")
        );
        assert_eq!(of(Some(""), None), None);
    }
}
