//! Knowledge about tools by name: shells, builders, compilers, and the paths that belong to the
//! system or to a tool.
//!
//! In: `tools.toml`, which is embedded into the program, and the user's file of the same schema.
//! Out: [`ToolKnowledge`]. Every key is a list of strings, and the user's entries are added to the
//! embedded ones. `docs/tools.md` describes each key.
//!
//! A program calls [`install`] once, before its first look-up. Without that call, [`knowledge`] is
//! the embedded data. A mistake in the user's file becomes a warning that names file, line and key;
//! the rest of the file counts.

use backstory_ordering::SmallSort;
use std::path::Path;
use std::sync::OnceLock;

use serde::Deserialize;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// The embedded data, whose keys are the schema.
const EMBEDDED: &str = include_str!("../tools.toml");

/// Everything known about tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolKnowledge {
    /// Programs by what they do. Names have no directory; a version at the end of a program's name
    /// is ignored.
    pub programs: ProgramNames,
    /// Shells and their language.
    pub shell: ShellKnowledge,
    /// C and C++ compilers.
    pub compilers: CompilerKnowledge,
    /// Paths by owner.
    pub paths: PathKnowledge,
    /// Files that are judged by what a program took from them.
    pub derived: DerivedViews,
    /// Packages.
    pub packages: PackageKnowledge,
}

/// Names of programs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramNames {
    /// Shells.
    pub shells: Vec<String>,
    /// Shells that understand POSIX shell language and nothing else.
    pub posix_shells: Vec<String>,
    /// Programs that run the command they are given, and print nothing themselves. An entry of two
    /// words is a program and its subcommand, here and in `meters` and `wrappers`.
    pub launchers: Vec<String>,
    /// The launchers that give a command more rights, or pretend to.
    pub privileged: Vec<String>,
    /// Programs whose arguments are a compiler's command line, which they run or answer from a
    /// cache.
    pub compiler_launchers: Vec<String>,
    /// Programs that run the command they are given, and print about it as errors only.
    pub meters: Vec<String>,
    /// Other programs that run the command they are given.
    pub wrappers: Vec<String>,
    /// Programs that run commands by the user's rules.
    pub builders: Vec<String>,
    /// Programs that find out what a machine offers and write a builder's rules. Everything that
    /// they start is part of their command.
    pub configurers: Vec<String>,
    /// Programs that build a package from a whole source tree.
    pub packagers: Vec<String>,
    /// Programs that only look after the directory of a package. A name that ends with `*` is the
    /// beginning of names.
    pub housekeepers: Vec<String>,
    /// Interpreters of languages in which users write pipelines.
    pub interpreters: Vec<String>,
    /// Programs that write without libc's buffers, so that the recorder sees each write.
    pub unbuffered: Vec<String>,
    /// Programs that refuse to overwrite a file, and to read through a symbolic link.
    pub no_overwrite: Vec<String>,
    /// Programs that add to a former result: archivers.
    pub adds_to_output: Vec<String>,
    /// Programs that make an empty file and print its name.
    pub temporary_names: Vec<String>,
    /// Builders that also make files themselves.
    pub writing_builders: Vec<String>,
    /// Builders that compare times of files only. A change of a command's words executes nothing.
    pub time_comparing_builders: Vec<String>,
    /// Programs that open their output without truncation, and then cut it to nothing.
    pub cuts_output: Vec<String>,
    /// Programs that put the content of one file into one file.
    pub copiers: Vec<String>,
    /// Builders that read the output of their commands only to print it.
    pub printing_builders: Vec<String>,
    /// Programs that end with another status than 0 only after an error.
    pub fails_by_error: Vec<String>,
    /// Programs whose status 1 is an answer, and no failure.
    pub answers_by_status: Vec<String>,
    /// Programs of which the result depends on modes or times of files that they look at.
    pub uses_times: Vec<String>,
}

/// Shells and their language.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellKnowledge {
    /// Beginnings of the names of libraries that edit command lines; the builtins of a shell with
    /// such a library print through libc.
    pub line_editing_libraries: Vec<String>,
    /// Commands that bash does not share with every POSIX shell, or executes differently.
    pub bash_commands: Vec<String>,
    /// Variables that shells, `make` and launchers set for every command.
    pub noise_variables: Vec<String>,
    /// Parts of the names of libraries that launchers load into the programs they start.
    pub launcher_libraries: Vec<String>,
    /// Variables that the terminal, the desktop or the session sets; `*` at the end stands for
    /// anything.
    pub session_variables: Vec<String>,
}

/// C and C++ compilers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompilerKnowledge {
    /// Names without a target prefix and without a version.
    pub names: Vec<String>,
    /// Options whose value is the next argument.
    pub options_with_value: Vec<String>,
    /// Options that say where the compiler writes which headers it read.
    pub dependency_options: Vec<String>,
    /// Endings of the names of source files.
    pub source_endings: Vec<String>,
}

/// Paths by owner.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathKnowledge {
    /// Directories whose files the kernel makes up.
    pub kernel: Vec<String>,
    /// Sources of randomness.
    pub random: Vec<String>,
    /// Files of the kernel that are the same each time.
    pub constant: Vec<String>,
    /// Beginnings of paths that belong to the system.
    pub system: Vec<String>,
    /// Beginnings of paths that belong to the user although the system has what is above.
    pub not_system: Vec<String>,
    /// Parts of paths that belong to a tool.
    pub tools: Vec<String>,
    /// Parts of paths in which programs keep what they could make again.
    pub caches: Vec<String>,
    /// Endings of the names of such files.
    pub cache_endings: Vec<String>,
    /// Parts of paths of the histories of shells. Their contents are not stored.
    pub histories: Vec<String>,
    /// Directories in which programs put files that are not needed later.
    pub temporary_directories: Vec<String>,
    /// Patterns of the names of such files. `*` matches any text, `?` a letter, digit or
    /// underscore.
    pub scratch_names: Vec<String>,
    /// Parts of paths of files that builders make for themselves and name in their rules.
    pub option_files: Vec<String>,
    /// Parts of paths in which builders write down what they have done.
    pub records: Vec<String>,
}

/// Packages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageKnowledge {
    /// Layouts of directories whose paths name a package: see [`backstory_packages::PathLayouts`].
    pub layouts: Vec<String>,
    /// Parts of paths of files that programs read in passing. They are no sign that a build needs
    /// the package.
    pub incidental: Vec<String>,
}

/// Files that are judged by what a program took from them, and not by their whole content.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DerivedViews {
    /// Files that the C library opens in every program.
    pub everybody: Vec<String>,
    /// The dynamic loader's indexes of libraries.
    pub library_indexes: Vec<String>,
    /// Parts of paths of indexes that are made from files which are judged themselves.
    pub indexes: Vec<String>,
    /// Files of the user database.
    pub accounts: Vec<String>,
    /// Files that a program reads before it looks up single names in the user database.
    pub account_switches: Vec<String>,
    /// Programs that print the whole user database.
    pub account_listers: Vec<String>,
    /// Beginnings of the paths of the package manager's own files.
    pub package_lists: Vec<String>,
    /// Programs that look up single packages in those files.
    pub package_readers: Vec<String>,
    /// Programs that list a tool's directories to look up modules by name.
    pub module_finders: Vec<String>,
    /// Endings of the files in which builders note what a command read.
    pub dependency_files: Vec<String>,
}

static INSTALLED: OnceLock<ToolKnowledge> = OnceLock::new();

/// The knowledge of this process: the installed one, else the embedded one.
pub fn knowledge() -> &'static ToolKnowledge {
    INSTALLED.get_or_init(ToolKnowledge::embedded)
}

/// Makes this the process's knowledge. Has no effect once [`knowledge`] was called.
pub fn install(knowledge: ToolKnowledge) {
    let _ = INSTALLED.set(knowledge);
}

impl ToolKnowledge {
    /// The embedded knowledge.
    pub fn embedded() -> ToolKnowledge {
        let (knowledge, _) = ToolKnowledge::extended("", Path::new(""));
        knowledge
    }

    /// The embedded knowledge with the entries of a user's file added. `text`: the file's text;
    /// `path`: its path, for the warnings. A warning is one line that begins with `PATH:LINE:`.
    pub fn extended(text: &str, path: &Path) -> (ToolKnowledge, Vec<String>) {
        #[allow(clippy::expect_used)] // The embedded file is a constant; a test reads it.
        let mut all: Table = EMBEDDED.parse().expect("the embedded tools.toml is valid");
        let mut warnings = Vec::new();
        let mut warn = |at: usize, what: String| {
            let line = text[..at].matches('\n').count() + 1;
            warnings.push((line, format!("{}:{line}: {what}", path.display())));
        };
        match DeTable::parse(text) {
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                warn(
                    at.min(text.len()),
                    format!("{}; the file is ignored", error.message()),
                );
            }
            Ok(file) => {
                for (name, table) in file.get_ref() {
                    let (at, name) = (name.span().start, name.get_ref());
                    match (all.get_mut(&**name), table.get_ref()) {
                        (Some(Value::Table(known)), DeValue::Table(given)) => {
                            add(known, name, given, &mut warn);
                        }
                        (Some(_), _) => warn(at, format!("{name} is not a table: it is ignored")),
                        (None, _) => warn(at, unknown(name)),
                    }
                }
            }
        }
        #[allow(clippy::expect_used)] // As above: what was added are strings in known lists.
        let knowledge = all.try_into().expect("tools.toml has every key");
        // The parser gives keys in the order of their names.
        warnings.sort_small();
        (
            knowledge,
            warnings.into_iter().map(|(_, text)| text).collect(),
        )
    }
}

fn unknown(key: &str) -> String {
    format!("unknown key {key}: it is ignored")
}

/// Adds the lists of one table of the user's file.
fn add(known: &mut Table, name: &str, given: &DeTable<'_>, warn: &mut impl FnMut(usize, String)) {
    for (key, value) in given {
        let (at, key) = (key.span().start, key.get_ref());
        let full = format!("{name}.{key}");
        let Some(Value::Array(list)) = known.get_mut(&**key) else {
            warn(at, unknown(&full));
            continue;
        };
        let DeValue::Array(entries) = value.get_ref() else {
            warn(
                at,
                format!("{full} is not a list of strings: it is ignored"),
            );
            continue;
        };
        for entry in entries.iter() {
            match entry.get_ref() {
                DeValue::String(text) if !text.is_empty() => {
                    list.push(Value::String(text.to_string()))
                }
                _ => warn(
                    entry.span().start,
                    format!("an entry of {full} is not a string, or is empty: it is ignored"),
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extended(text: &str) -> (ToolKnowledge, Vec<String>) {
        ToolKnowledge::extended(text, Path::new("/c/tools.toml"))
    }

    #[test]
    fn the_embedded_file_has_every_key_and_no_other() {
        assert!(
            ToolKnowledge::embedded()
                .programs
                .shells
                .contains(&"bash".to_owned())
        );
    }

    #[test]
    fn entries_of_a_user_are_added_to_the_embedded_ones() {
        let before = ToolKnowledge::embedded();
        let (after, warnings) = extended("[programs]\nbuilders = [\"bazel\", 'buck2']\n");
        assert_eq!(warnings, [""; 0]);
        let (old, new) = (before.programs.builders, after.programs.builders);
        assert_eq!(new[..old.len()], old);
        assert_eq!(new[old.len()..], ["bazel", "buck2"]);
        assert_eq!(after.paths, before.paths);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_file_and_line_and_the_rest_counts() {
        let (known, warnings) = extended(
            "colour = 'red'\n[programs]\nbuildres = ['x']\nbuilders = ['bazel', 7]\nshells = 'fish'\n[nonsense]\nx = []\n",
        );
        assert!(known.programs.builders.contains(&"bazel".to_owned()));
        assert_eq!(
            warnings,
            [
                "/c/tools.toml:1: unknown key colour: it is ignored",
                "/c/tools.toml:3: unknown key programs.buildres: it is ignored",
                "/c/tools.toml:4: an entry of programs.builders is not a string, or is empty: it is ignored",
                "/c/tools.toml:5: programs.shells is not a list of strings: it is ignored",
                "/c/tools.toml:6: unknown key nonsense: it is ignored",
            ]
        );
    }

    #[test]
    fn a_file_that_is_no_toml_is_ignored_with_the_line_of_the_mistake() {
        let (known, warnings) = extended("[programs]\nbuilders = [\n");
        assert_eq!(known, ToolKnowledge::embedded());
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("/c/tools.toml:"), "{warnings:?}");
        assert!(
            warnings[0].ends_with("; the file is ignored"),
            "{warnings:?}"
        );
    }

    #[test]
    fn the_page_about_tools_describes_every_key() {
        let page = include_str!("../../../docs/tools.md");
        let all: Table = EMBEDDED.parse().unwrap();
        for (name, table) in &all {
            for key in table.as_table().unwrap().keys() {
                assert!(
                    page.contains(&format!("| `{name}.{key}` |")),
                    "{name}.{key}"
                );
            }
        }
    }
}
