//! A pattern of paths, and the runs that used a file with such a path.

use std::collections::HashMap;

use backstory_graph::model::Relation;
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};

use crate::{Error, Globs, Result};

/// A pattern of paths, as [`Globs`] has it. A pattern with a slash is relative to a directory.
#[derive(Debug, Clone)]
pub struct FilePattern {
    globs: Globs,
    /// The directory that each matching path is in: all components before the first with a star.
    below: Vec<u8>,
}

impl FilePattern {
    /// Parses a pattern. `base` is the directory of a relative one.
    ///
    /// Errors: [`Error::BadPattern`].
    pub fn new(pattern: &str, base: &str) -> Result<FilePattern> {
        let whole = match pattern.strip_prefix("./").unwrap_or(pattern) {
            absolute if absolute.starts_with('/') => absolute.to_owned(),
            relative if pattern.contains('/') => {
                format!("{}/{relative}", globset::escape(base.trim_end_matches('/')))
            }
            name => name.to_owned(),
        };
        if whole.split('/').any(|part| part == "..") {
            let why = "give a path without `..`".to_owned();
            return Err(Error::BadPattern(pattern.to_owned(), why));
        }
        Ok(FilePattern {
            globs: Globs::new(&[&whole])?,
            below: literal_directory(&whole),
        })
    }

    /// The entities of all runs with a path that matches.
    pub(crate) fn users(&self, store: &dyn Store) -> Result<FileUsers> {
        let mut by_run: HashMap<RunKey, Vec<EntityKey>> = HashMap::new();
        for key in store.below(&self.below, &|path| self.globs.matches(path))? {
            by_run.entry(key.run()).or_default().push(key);
        }
        Ok(FileUsers { by_run })
    }
}

/// Everything up to the last slash before the first character with a meaning.
fn literal_directory(pattern: &str) -> Vec<u8> {
    let special = |c: char| matches!(c, '*' | '?' | '[' | '{' | '\\');
    let literal = pattern.find(special).map_or(pattern, |at| &pattern[..at]);
    let end = literal.rfind('/').map_or(0, |slash| slash + 1);
    literal.as_bytes()[..end].to_vec()
}

/// The entities of each run whose paths match a pattern.
pub(crate) struct FileUsers {
    by_run: HashMap<RunKey, Vec<EntityKey>>,
}

impl FileUsers {
    /// True if a process of the run read, executed or changed such a file. A look-up is no use.
    pub fn include(&self, store: &dyn Store, run: RunKey) -> Result<bool> {
        for key in self.by_run.get(&run).into_iter().flatten() {
            for (activity, generated) in store.touching(*key)? {
                if generated {
                    return Ok(true);
                }
                let stream = store.stream(ActivityKey::new(run, activity))?;
                let mut edges = stream.edges.iter();
                let reads = |relation| matches!(relation, Relation::Read | Relation::Execute);
                if edges.any(|edge| edge.entity == key.local() && reads(edge.relation)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_pattern_with_a_slash_starts_from_the_directory() {
        let matches = |pattern: &str, path: &str| {
            let pattern = FilePattern::new(pattern, "/w[1]").unwrap();
            pattern.globs.matches(path.as_bytes()) && path.as_bytes().starts_with(&pattern.below)
        };
        assert!(matches("*.csv", "/any/where/a.csv"));
        assert!(matches("./a.csv", "/w[1]/a.csv") && !matches("./a.csv", "/any/a.csv"));
        assert!(matches("data/*.csv", "/w[1]/data/a.csv"));
        assert!(matches("/usr/**", "/usr/lib/x") && !matches("data/", "/w[1]/data2/x"));
        assert!(FilePattern::new("../a", "/w").is_err());
    }
}
