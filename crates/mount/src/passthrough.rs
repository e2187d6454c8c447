//! Whether the kernel reads and writes the files of a mount itself, and why it does not.
//!
//! In: the user's wish, and what the kernel refuses. Out: whether to ask it, and one report.

use rustix::io::Errno;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why the kernel does not read and write files itself, although the user wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassthroughRefusal {
    /// The kernel has no passthrough of FUSE. So it passes no file through.
    Kernel,
    /// The process of the mount lacks the privilege. So the kernel passes no file through.
    Privilege,
    /// The file system of a file is stacked on others, as overlayfs is.
    FileSystem,
    /// The kernel refused a file for this other reason.
    Other(String),
}

/// The passthrough of a mount. The threads that serve requests and the one that reports share it.
pub(crate) struct Passthrough {
    wanted: bool,
    tried: AtomicBool,
    /// The first one.
    refusal: OnceLock<PassthroughRefusal>,
    told: AtomicBool,
}

impl Passthrough {
    pub(crate) fn new(wanted: bool) -> Passthrough {
        Passthrough {
            wanted,
            tried: AtomicBool::new(wanted),
            refusal: OnceLock::new(),
            told: AtomicBool::new(false),
        }
    }

    /// The user wants it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// The kernel may pass the next file through.
    pub(crate) fn is_tried(&self) -> bool {
        self.tried.load(Ordering::Relaxed)
    }

    /// The kernel has none, so no file is tried.
    pub(crate) fn lacks_kernel(&self) {
        self.tried.store(false, Ordering::Relaxed);
        self.refusal.get_or_init(|| PassthroughRefusal::Kernel);
    }

    /// The kernel refused to pass a file through.
    pub(crate) fn refused(&self, error: Errno) {
        let refusal = match error {
            Errno::PERM => PassthroughRefusal::Privilege,
            Errno::LOOP => PassthroughRefusal::FileSystem,
            other => PassthroughRefusal::Other(std::io::Error::from(other).to_string()),
        };
        // Not permitted to this user, so for no file.
        if refusal == PassthroughRefusal::Privilege {
            self.tried.store(false, Ordering::Relaxed);
        }
        self.refusal.get_or_init(|| refusal);
    }

    /// The first refusal, if this was not asked before.
    pub(crate) fn news(&self) -> Option<PassthroughRefusal> {
        let refusal = self.refusal.get()?;
        let told = self.told.swap(true, Ordering::Relaxed);
        (!told).then(|| refusal.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_once_and_only_the_first_one() {
        let passthrough = Passthrough::new(true);
        assert_eq!(passthrough.news(), None);
        passthrough.refused(Errno::LOOP);
        passthrough.refused(Errno::MFILE);
        assert_eq!(passthrough.news(), Some(PassthroughRefusal::FileSystem));
        assert_eq!(passthrough.news(), None);
        passthrough.refused(Errno::LOOP);
        assert_eq!(passthrough.news(), None);
    }

    #[test]
    fn a_file_that_is_refused_does_not_end_the_attempts() {
        let passthrough = Passthrough::new(true);
        passthrough.refused(Errno::LOOP);
        passthrough.refused(Errno::MFILE);
        assert!(passthrough.is_tried());
    }

    #[test]
    fn a_kernel_or_user_without_it_ends_the_attempts() {
        let old = Passthrough::new(true);
        old.lacks_kernel();
        assert!(!old.is_tried());
        assert_eq!(old.news(), Some(PassthroughRefusal::Kernel));
        let unprivileged = Passthrough::new(true);
        unprivileged.refused(Errno::PERM);
        assert!(!unprivileged.is_tried());
        assert_eq!(unprivileged.news(), Some(PassthroughRefusal::Privilege));
    }

    #[test]
    fn another_reason_is_told_in_its_words() {
        let passthrough = Passthrough::new(true);
        passthrough.refused(Errno::OPNOTSUPP);
        let Some(PassthroughRefusal::Other(reason)) = passthrough.news() else {
            panic!("another refusal");
        };
        assert!(reason.contains("not supported"), "{reason}");
    }

    #[test]
    fn a_mount_that_does_not_want_it_does_not_try_it() {
        let passthrough = Passthrough::new(false);
        assert!(!passthrough.is_wanted() && !passthrough.is_tried());
        assert_eq!(passthrough.news(), None);
    }
}
