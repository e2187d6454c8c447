//! The result for a single file, a program or a library, without the libraries that it needs.

use crate::elf::Damaged;
use crate::instructions::Entry;
use crate::symbols::InnerActs;
use rustix::fs::StatxFlags;
use std::path::PathBuf;

/// The name by which programs need the library of C.
pub(crate) const C_LIBRARY: &[u8] = b"libc.so.6";
/// The attributes that an identity is made of.
pub(crate) const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// Why a program is not plain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotPlain {
    /// The file cannot be opened, is too large, or is no regular file.
    #[error("{} cannot be read", .0.display())]
    Unreadable(PathBuf),
    /// Neither a script nor a 64-bit program of x86-64.
    #[error("{} is no program of x86-64", .0.display())]
    Foreign(PathBuf),
    /// The file contradicts itself.
    #[error("{}: {damage}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The part of it.
        damage: Damaged,
    },
    /// No loader, or another one than glibc's.
    #[error("{} is not loaded by glibc's loader", .0.display())]
    OtherLoader(PathBuf),
    /// Executing it gives privileges: a set-id bit, or capabilities.
    #[error("{} gains privileges", .0.display())]
    Privileged(PathBuf),
    /// It enters the kernel by itself, or perhaps so.
    #[error("{} enters the kernel by itself ({entry:?})", path.display())]
    EntersKernel {
        /// The program or library.
        path: PathBuf,
        /// Where.
        entry: Entry,
    },
    /// Code of it runs before the recorder's constructor.
    #[error("{} runs code before any constructor", .0.display())]
    EarlyCode(PathBuf),
    /// Memory of it can be written to and executed.
    #[error("{} has code that can be changed", .0.display())]
    WritableCode(PathBuf),
    /// The loader looks into directories for a library, or loads files that it does not need.
    #[error("the loader searches directories for {}", .0.display())]
    Search(PathBuf),
    /// It calls a function that makes calls inside libc.
    #[error("{} uses {function}", path.display())]
    Unseen {
        /// The program or library.
        path: PathBuf,
        /// The function.
        function: String,
    },
    /// It is a program, or forbids that a running process loads it.
    #[error("{} cannot be loaded", .0.display())]
    NotLoaded(PathBuf),
    /// It does not need the C library of the process, so it may be another one.
    #[error("{} does not need the C library", .0.display())]
    Independent(PathBuf),
    /// Another glibc than those that are known.
    #[error("{} is of an unknown release", .0.display())]
    UnknownLibrary(PathBuf),
    /// An earlier run has found that. It has not kept the reason.
    #[error("an earlier run has found that it is not plain")]
    KnownFromEarlier,
}

/// A library, or a program, that is plain by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The names of the libraries that it needs.
    pub(crate) needed: Vec<Vec<u8>>,
    pub(crate) acts: InnerActs,
}
