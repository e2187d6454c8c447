//! Facts about contents: which version has which digest, where its content is available, and why
//! not if it is not.
//!
//! A fact is about an identity, not about a run: a file that a thousand runs read has one fact.
//! Facts are collected after a run has ended and appended to a journal beside the logs
//! ([`Journal`]). A database is filled from the journal. `docs/formats/contents.md` describes both.

mod inode_facts;
mod journal;
mod record;

use backstory_eventlog::event::Bytes;
use backstory_files::{Digest, Ident};

pub(crate) use inode_facts::InodeFacts;
pub use journal::{Journal, JournalPosition, from_bytes, read_since, rewrite, to_bytes};

/// A record of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JournalRecord {
    /// A fact about a version.
    Fact(Fact),
    /// The contents of a run were looked at; how its directories were.
    Run(DirectorySnapshot),
    /// A run was removed, and its directory snapshot with it.
    Forgotten(String),
}

/// A fact about a version's content.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fact {
    /// The version, as [`crate::same_version`] compares it: status-change time, mode and number of
    /// links do not matter.
    pub ident: Ident,
    /// The digest of its content, if the content was read.
    pub digest: Option<Digest>,
    /// Where the content is available.
    pub availability: Availability,
}

/// Where a content is available.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Availability {
    /// In the store of contents.
    Stored,
    /// In a package; the store of contents does not have it.
    Package(Package),
    /// In the store of contents, though the file belongs to a package. Either the run stored all
    /// contents, or the package's manager has no checksum of the file.
    StoredPackage(Package),
    /// Nowhere: the reason, in words for people.
    Missing(String),
}

impl Availability {
    /// Whether it is in the store of contents.
    pub fn is_stored(&self) -> bool {
        matches!(self, Availability::Stored | Availability::StoredPackage(_))
    }

    /// The package that the file belongs to.
    pub fn package(&self) -> Option<&Package> {
        match self {
            Availability::Package(package) | Availability::StoredPackage(package) => Some(package),
            Availability::Stored | Availability::Missing(_) => None,
        }
    }
}

/// A package that owns a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Package {
    /// `dpkg`, `rpm`, `pip`, `conda`, `npm`, `cargo`
    pub manager: String,
    /// Its name, as the manager spells it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether the file's content was compared with the package's checksum, and is equal.
    pub verified: bool,
}

/// The directories and links that led to a run's files, as they were when the run had ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct DirectorySnapshot {
    /// The run's id.
    pub run: String,
    /// Every directory and symbolic link on the path to a file that the run used, in the order of
    /// their paths.
    pub entries: Vec<SnapshotEntry>,
}

/// A directory or symbolic link on the path to a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SnapshotEntry {
    /// Absolute path.
    pub path: Bytes,
    /// Type and permission bits (`st_mode`).
    pub mode: u32,
    /// The text of a symbolic link.
    pub target: Option<Bytes>,
    /// Modification time of a link itself, or of a directory with a listing, in ns since 1970. 0 if
    /// it is not known.
    pub mtime: i64,
    /// The entries of a directory of the user's that the run listed, in the order of the listing.
    pub listing: Option<Vec<Listed>>,
    /// Files in the directory that the run looked at, but neither read nor made, in the order of
    /// their names.
    pub looked: Vec<Looked>,
}

/// A file that a run only looked at. Nothing else is known of its content.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Looked {
    /// Its name.
    pub name: Bytes,
    /// Type and permission bits (`st_mode`).
    pub mode: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Its modification time in ns since 1970.
    pub mtime: i64,
}

/// An entry of a directory's listing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listed {
    /// Its name.
    pub name: Bytes,
    /// The type bits of `st_mode`; 0 if the listing did not have the type.
    pub kind: u32,
    /// Its inode, if another name in the directories that the run listed is the same file; else 0.
    pub shared: u64,
}

impl Fact {
    /// Whether this fact replaces `old`, which is about the same version. A fact that a content is
    /// missing never replaces one that it is available.
    pub fn replaces(&self, old: &Fact) -> bool {
        let missing = |fact: &Fact| matches!(fact.availability, Availability::Missing(_));
        !missing(self) || missing(old)
    }
}
