//! How much of a run's contents may be stored: the limits of the user, and the default budget.
//!
//! In: the sizes of contents that are about to be stored. Out: whether they may be, or a sentence
//! that says why not, for `show`.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_query::Globs;

use crate::shell_policy::ContentLimits;
use crate::text::when::size as shown;

/// Why a content may not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// The budget of the store is used up. Less valuable contents may make room.
    Full(String),
    /// A limit that no other content changes.
    OverLimit(String),
}

/// The rest of the limits.
#[derive(Debug)]
pub struct Allowance {
    file: Option<u64>,
    run: Option<u64>,
    /// Bytes that the run has stored.
    of_run: u64,
    directories: Vec<DirectoryAllowance>,
    budget: Option<u64>,
    /// Bytes that all contents of the store took when they were measured.
    used: u64,
    /// Bytes that were stored since, before they were compressed.
    unmeasured: u64,
}

#[derive(Debug)]
struct DirectoryAllowance {
    globs: Globs,
    limit: u64,
    stored: u64,
}

impl Allowance {
    /// The limits of one run in the store at a directory. `used`: the bytes that the store's
    /// contents take on the disk.
    pub fn of(limits: &ContentLimits, store: &Path, used: u64) -> Allowance {
        let directories = limits.directories.iter().filter_map(|(pattern, limit)| {
            Some(DirectoryAllowance {
                globs: Globs::new(&[pattern]).ok()?,
                limit: *limit,
                stored: 0,
            })
        });
        Allowance {
            file: limits.file,
            run: limits.run,
            of_run: 0,
            directories: directories.collect(),
            budget: limits.store.bytes_at(store),
            used,
            unmeasured: 0,
        }
    }

    /// Whether a content of `size` bytes may be stored. `measured` gives the bytes that the store's
    /// contents take now: what was added counts uncompressed until then.
    ///
    /// # Errors
    /// The limit that forbids it, or the error of `measured`.
    pub fn check<E: From<Denial>>(
        &mut self,
        path: Option<&Path>,
        size: u64,
        measured: impl FnOnce() -> Result<u64, E>,
    ) -> Result<(), E> {
        let over = |what: &str, limit: u64| {
            let limit = shown(limit);
            Denial::OverLimit(format!("{what} is over the limit of {limit} (config.toml)"))
        };
        if let Some(limit) = self.file.filter(|limit| size > *limit) {
            return Err(over(&format!("its size of {}", shown(size)), limit).into());
        }
        if let Some(limit) = self.run.filter(|limit| self.of_run + size > *limit) {
            return Err(over("what its run stores", limit).into());
        }
        for one in self.matching(path) {
            if one.stored + size > one.limit {
                let pattern = one.globs.patterns().concat();
                let what = format!("what its run stores of {pattern}");
                return Err(over(&what, one.limit).into());
            }
        }
        let Some(budget) = self.budget else {
            return Ok(());
        };
        let fits = |used: u64| used.saturating_add(size) <= budget;
        if !fits(self.used + self.unmeasured) && fits(self.used) {
            (self.used, self.unmeasured) = (measured()?, 0);
        }
        match !fits(self.used + self.unmeasured) {
            true => Err(Denial::Full(format!(
                "the store's contents have reached their limit of {} (`backstory config --help`)",
                shown(budget)
            ))
            .into()),
            false => Ok(()),
        }
    }

    /// Counts a content that was stored.
    pub fn add(&mut self, path: Option<&Path>, size: u64) {
        self.of_run += size;
        self.unmeasured += size;
        for one in self.matching(path) {
            one.stored += size;
        }
    }

    fn matching(&mut self, path: Option<&Path>) -> impl Iterator<Item = &mut DirectoryAllowance> {
        let path = path.map(|path| path.as_os_str().as_bytes());
        let all = self.directories.iter_mut();
        all.filter(move |one| path.is_some_and(|path| one.globs.matches(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell_policy::ContentBudget;

    fn allowance(limits: &ContentLimits, used: u64) -> Allowance {
        Allowance::of(limits, &std::env::temp_dir(), used)
    }

    fn check(allowance: &mut Allowance, path: &str, size: u64, used: u64) -> Result<(), Denial> {
        allowance.check(Some(Path::new(path)), size, || Ok(used))
    }

    #[test]
    fn each_limit_names_itself() {
        let limits = ContentLimits {
            file: Some(100),
            run: Some(250),
            directories: vec![("/data/**".to_owned(), 60)],
            ..ContentLimits::default()
        };
        let mut left = allowance(&limits, 0);
        let mut store = |path: &str, size| {
            check(&mut left, path, size, 0)?;
            left.add(Some(Path::new(path)), size);
            Ok(())
        };
        let over = |result: Result<(), Denial>, words: &str| {
            assert!(
                matches!(&result, Err(Denial::OverLimit(why)) if why.contains(words)),
                "{result:?}"
            );
        };
        over(store("/a", 101), "its size of 101");
        assert_eq!(store("/a", 100), Ok(()));
        assert_eq!(store("/data/x/y", 50), Ok(()));
        over(store("/data/z", 11), "stores of /data/**");
        assert_eq!(store("/data/z", 10), Ok(()));
        over(store("/b", 91), "what its run stores is");
        assert_eq!(store("/b", 90), Ok(()));
    }

    #[test]
    fn the_budget_counts_what_the_disk_says_before_it_refuses() {
        let limits = ContentLimits {
            store: ContentBudget::Bytes(1000),
            ..ContentLimits::default()
        };
        let mut left = allowance(&limits, 400);
        left.add(None, 500);
        // They were compressed.
        assert_eq!(check(&mut left, "/a", 200, 500), Ok(()));
        let full = check(&mut left, "/a", 600, 0);
        assert!(matches!(full, Err(Denial::Full(_))), "{full:?}");
        let unlimited = ContentLimits {
            store: ContentBudget::Unlimited,
            ..ContentLimits::default()
        };
        let mut left = allowance(&unlimited, 1 << 50);
        assert_eq!(check(&mut left, "/a", 200, 0), Ok(()));
    }
}
