//! Which files of a run, and which processes, an answer is about.

use backstory_graph::model::Activity;

use crate::answer::Access;
use crate::{Globs, TextPattern};

/// Conditions on the files of a run and on the processes that used them. Without any, all are
/// accepted.
#[derive(Debug, Clone, Default)]
pub struct FileFilter {
    /// A file was used in one of these manners. Empty: in any.
    pub access: Vec<Access>,
    /// The program of the process: its base name, or its path if the pattern has a slash.
    pub by: Option<TextPattern>,
    /// The file is one of these directories or below one. Empty: anywhere.
    pub under: Vec<Vec<u8>>,
    /// Files to leave out.
    pub exclude: Globs,
}

impl FileFilter {
    /// True if the path lies where it should.
    pub fn accepts_path(&self, path: &[u8]) -> bool {
        let below = |dir: &Vec<u8>| {
            let dir = dir.strip_suffix(b"/").unwrap_or(dir);
            let rest = path.strip_prefix(dir);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        (self.under.is_empty() || self.under.iter().any(below)) && !self.exclude.matches(path)
    }

    /// True if one of the accesses is wanted.
    pub fn accepts_access(&self, access: &[Access]) -> bool {
        self.access.is_empty() || access.iter().any(|one| self.access.contains(one))
    }

    /// True if the process executes the wanted program. A script counts as the program, too: the
    /// first argument of its interpreter.
    pub fn accepts_program(&self, activity: &Activity) -> bool {
        let Some(wanted) = &self.by else {
            return true;
        };
        let names = [
            activity.exec_path.as_deref(),
            activity.argv.first().map(|name| &**name),
            activity.argv.get(1).map(|script| &**script),
        ];
        names.into_iter().flatten().any(|name| {
            let name = String::from_utf8_lossy(name);
            wanted.matches(&name) || wanted.matches(name.rsplit('/').next().unwrap_or(&name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_holds_what_is_below_it_and_not_its_namesakes() {
        let filter = FileFilter {
            under: vec![b"/w/src/".to_vec()],
            ..FileFilter::default()
        };
        assert!(filter.accepts_path(b"/w/src/a.c") && filter.accepts_path(b"/w/src"));
        assert!(!filter.accepts_path(b"/w/src2/a.c") && !filter.accepts_path(b"/w"));
    }
}
