//! What is known of contents: which version has which digest, who keeps it, and why it is not kept where nobody does.
//!
//! Facts are about identities, not runs: what a thousand runs read is known once. They are learned after a run has ended and
//! kept in a journal beside the logs ([`Journal`]), from which a database is filled again. `docs/formats/contents.md` draws it.

mod journal;
mod record;

use backstory_eventlog::event::Bytes;
use backstory_files::Digest;
use backstory_files::Ident;

pub use journal::{Journal, Mark, from_bytes, read_since, rewrite, to_bytes};

/// Something learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Learned {
    /// Of a version.
    Fact(Fact),
    /// Of a run: all its versions have been looked at.
    Run(DirectorySnapshot),
    /// A run is forgotten, and with it what was learned of its directory_snapshots.
    Forgotten(String),
}

/// What is known of a version's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The version. Status-change time, mode and number of names do not matter here: see [`crate::same_version`].
    pub ident: Ident,
    /// The name of its content, if it was read.
    pub digest: Option<Digest>,
    /// Where the content can be had.
    pub held: Held,
}

/// Where a content can be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// In the contents beside the store.
    Kept,
    /// From a package; it is not kept here.
    Package(Package),
    /// In the contents beside the store, and it belongs to a package: everything was to be kept, or the package's manager does not know what
    /// the file should hold.
    Owned(Package),
    /// Nowhere: why, in words for people.
    Missing(String),
}

impl Held {
    /// Whether it is in the contents beside the store.
    pub fn is_kept(&self) -> bool {
        matches!(self, Held::Kept | Held::Owned(_))
    }

    /// The package that it belongs to.
    pub fn package(&self) -> Option<&Package> {
        match self {
            Held::Package(package) | Held::Owned(package) => Some(package),
            Held::Kept | Held::Missing(_) => None,
        }
    }
}

/// A package that owns a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Package {
    /// `dpkg`, `rpm`, `pip`, `conda`, `npm`, `cargo`
    pub manager: String,
    /// Its name, as the manager has it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether the file's content was compared with the checksum that the package has for it.
    pub verified: bool,
}

/// How the paths of a run lay when it had ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DirectorySnapshot {
    /// The run's id.
    pub run: String,
    /// Every directory and symbolic link on the way to a file that the run used, in the order of their paths.
    pub places: Vec<Place>,
}

/// A directory or symbolic link on the way to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Absolute path.
    pub path: Bytes,
    /// Type and permission bits (`st_mode`).
    pub mode: u32,
    /// Where it leads, if it is a link.
    pub target: Option<Bytes>,
    /// When a link was made or last changed itself, ns since 1970; 0 if that is not known, or it is a directory.
    pub mtime: i64,
    /// What was in it, in the order in which it was listed, if it is a directory of the user's that the run listed.
    pub entries: Option<Vec<Listed>>,
    /// Files in it that the run looked at and neither read nor made, in the order of their names.
    pub looked: Vec<Looked>,
}

/// A file that was only looked at: of its content nothing is known but this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Its name.
    pub name: Bytes,
    /// Type and permission bits (`st_mode`).
    pub mode: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Its last modification, ns since 1970.
    pub mtime: i64,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: Bytes,
    /// What it is: the type bits of `st_mode`; 0 if the listing did not tell.
    pub kind: u32,
    /// Its inode, if another name in the directories that the run listed is the same file; else 0.
    pub shared: u64,
}

impl Fact {
    /// Whether this is to stand rather than `old`, which is of the same version: nothing that can be had is given up for a reason
    /// why it cannot.
    pub fn replaces(&self, old: &Fact) -> bool {
        !matches!(
            (&self.held, &old.held),
            (
                Held::Missing(_),
                Held::Kept | Held::Package(_) | Held::Owned(_)
            )
        )
    }
}
