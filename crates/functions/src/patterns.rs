//! The patterns of `record --functions`.
//!
//! A pattern is `NAME`, or `FILE:NAME`. `*` matches anything, `?` one byte. `FILE` is the last
//! part of the path of an executable file or a library, or the module of an interpreted function.
//! The SONAME of a library is a name of its file, too, and so is either up to its `.so`.

/// A pattern that no function can match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{pattern}' names no function: write NAME or FILE:NAME, as 'parse_*' or 'libm.so*:exp'")]
pub struct BadPattern {
    /// The pattern.
    pub pattern: String,
}

/// The patterns of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FunctionPatterns {
    all: Vec<(Option<String>, String)>,
    arguments: bool,
}

impl FunctionPatterns {
    /// Reads patterns.
    ///
    /// # Errors
    /// One of them names no function.
    pub fn parse(patterns: &[String]) -> Result<FunctionPatterns, BadPattern> {
        let all = patterns.iter().map(|pattern| {
            let (file, name) = split(pattern);
            match name.is_empty() || file.is_some_and(str::is_empty) {
                true => Err(BadPattern {
                    pattern: pattern.clone(),
                }),
                false => Ok((file.map(str::to_owned), name.to_owned())),
            }
        });
        Ok(FunctionPatterns {
            all: all.collect::<Result<_, _>>()?,
            arguments: false,
        })
    }

    /// The same patterns. Arguments and results of the functions are recorded, too.
    #[must_use]
    pub fn with_arguments(self) -> FunctionPatterns {
        FunctionPatterns {
            arguments: true,
            ..self
        }
    }

    pub(crate) fn has_arguments(&self) -> bool {
        self.arguments
    }

    /// The patterns for names in a file with these names. Each has its index.
    pub(crate) fn of_file(&self, files: &[String]) -> Vec<FilePattern<'_>> {
        let all = self.all.iter().enumerate();
        let fitting = all.filter_map(|(index, (file, name))| {
            let fits = |wanted: &str| files.iter().any(|file| matches(wanted, file));
            file.as_deref().is_none_or(fits).then_some(FilePattern {
                index,
                name,
                names_file: file.is_some(),
            })
        });
        fitting.collect()
    }

    /// The patterns of files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.all.iter().filter_map(|(file, _)| file.as_deref())
    }

    /// All patterns: each with its index, its file and its function.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, Option<&str>, &str)> {
        let all = self.all.iter().enumerate();
        all.map(|(index, (file, name))| (index, file.as_deref(), name.as_str()))
    }

    /// Indices of the patterns that can mean an interpreted function of this name. The file is not
    /// compared: a record of the function does not have all names of its module.
    pub fn of_interpreted(&self, name: &str) -> impl Iterator<Item = usize> {
        let all = self.all.iter().enumerate();
        all.filter_map(move |(index, (_, wanted))| matches(wanted, name).then_some(index))
    }
}

/// A pattern for the functions of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilePattern<'a> {
    pub index: usize,
    pub name: &'a str,
    /// True if the pattern says the file.
    pub names_file: bool,
}

/// True if the pattern of a file means a shared library.
pub(crate) fn is_of_library(file: &str) -> bool {
    file.contains(".so")
}

/// The names of a file: its own, its SONAME, and both up to their `.so`.
pub(crate) fn names_of_file(file: &str, soname: Option<&str>) -> Vec<String> {
    let mut names = Vec::new();
    for name in [Some(file), soname].into_iter().flatten() {
        names.push(name.to_owned());
        if let Some(at) = name.find(".so.") {
            names.push(name[..at + 3].to_owned());
        }
    }
    names
}

/// Splits a pattern at its first colon that is not a part of `::`.
fn split(pattern: &str) -> (Option<&str>, &str) {
    let bytes = pattern.as_bytes();
    let is = |at: usize| bytes.get(at) == Some(&b':');
    let mut at = 0;
    while at < bytes.len() {
        match (is(at), is(at + 1)) {
            (true, true) => at += 2,
            (true, false) => return (Some(&pattern[..at]), &pattern[at + 1..]),
            (false, _) => at += 1,
        }
    }
    (None, pattern)
}

/// True if a pattern with `*` and `?` matches a name.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    backstory_wildcards::matches(pattern.as_bytes(), name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_a_file_if_a_single_colon_says_so() {
        assert_eq!(split("parse_*"), (None, "parse_*"));
        assert_eq!(split("libfoo.so:parse_*"), (Some("libfoo.so"), "parse_*"));
        assert_eq!(split("Parser::parse"), (None, "Parser::parse"));
        assert_eq!(split("plot:Parser::*"), (Some("plot"), "Parser::*"));
        assert_eq!(split("a::b:c"), (Some("a::b"), "c"));
    }

    #[test]
    fn a_library_has_its_soname_and_the_names_without_versions() {
        let names = names_of_file("libz.so.1.2.13", Some("libz.so.1"));
        assert_eq!(names, ["libz.so.1.2.13", "libz.so", "libz.so.1", "libz.so"]);
        assert_eq!(names_of_file("plot", None), ["plot"]);
    }

    #[test]
    fn a_pattern_without_a_name_is_refused() {
        for bad in ["", "plot:", ":main"] {
            let read = FunctionPatterns::parse(&[bad.to_owned()]);
            assert!(read.is_err(), "{bad}");
        }
    }
}
