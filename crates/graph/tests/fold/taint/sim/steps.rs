//! The operations of random histories.

use proptest::prelude::*;

use super::NAMES;
use crate::common;

/// An operation that a process may do. Numbers are reduced to the number of files and processes.
#[derive(Debug, Clone)]
pub enum Step {
    Fork(usize),
    Exec(usize, bool),
    Exit(usize),
    Open(usize, usize, i32),
    Read(usize, usize),
    Write(usize, usize),
    Close(usize, usize),
    Dup(usize, usize),
    Pipe(usize),
    /// A static program makes a pipe between two children, or between itself and one.
    Plumb(usize, usize),
    Truncate(usize, usize),
    Rename(usize, usize, usize),
    RenameDir(usize),
    Link(usize, usize, usize),
    Symlink(usize, usize, usize),
    Unlink(usize, usize),
    Chdir(usize, usize),
    /// Opens, reads all and closes in one step.
    WholeRead(usize, usize),
    /// Opens (appending if true), writes and closes in one step.
    WholeWrite(usize, usize, bool),
}

const MODES: [i32; 7] = [
    common::RDONLY,
    common::OUT,
    common::WRONLY,
    common::RDWR,
    common::RDWR | common::CREAT,
    common::WRONLY | common::CREAT | common::APPEND,
    common::RDWR | common::CREAT | common::TRUNC,
];

impl Step {
    pub fn any() -> impl Strategy<Value = Step> {
        let (p, f, d) = (0..4_usize, 0..NAMES.len(), 0..6_usize);
        prop_oneof![
            2 => p.clone().prop_map(Step::Fork),
            1 => (p.clone(), prop::bool::weighted(0.5)).prop_map(|(p, s)| Step::Exec(p, s)),
            1 => p.clone().prop_map(Step::Exit),
            6 => (p.clone(), f.clone(), prop::sample::select(&MODES[..]), any::<bool>())
                .prop_map(|(p, f, m, c)| Step::Open(p, f, if c { m | common::CLOEXEC } else { m })),
            6 => (p.clone(), d.clone()).prop_map(|(p, d)| Step::Read(p, d)),
            6 => (p.clone(), d.clone()).prop_map(|(p, d)| Step::Write(p, d)),
            3 => (p.clone(), d.clone()).prop_map(|(p, d)| Step::Close(p, d)),
            1 => (p.clone(), d).prop_map(|(p, d)| Step::Dup(p, d)),
            1 => p.clone().prop_map(Step::Pipe),
            2 => (p.clone(), 0..3_usize).prop_map(|(p, k)| Step::Plumb(p, k)),
            1 => (p.clone(), f.clone()).prop_map(|(p, f)| Step::Truncate(p, f)),
            2 => (p.clone(), f.clone(), f.clone()).prop_map(|(p, a, b)| Step::Rename(p, a, b)),
            1 => p.clone().prop_map(Step::RenameDir),
            1 => (p.clone(), f.clone(), f.clone()).prop_map(|(p, a, b)| Step::Link(p, a, b)),
            1 => (p.clone(), f.clone(), f.clone()).prop_map(|(p, a, b)| Step::Symlink(p, a, b)),
            1 => (p.clone(), f.clone()).prop_map(|(p, f)| Step::Unlink(p, f)),
            1 => (p, 0..2_usize).prop_map(|(p, d)| Step::Chdir(p, d)),
        ]
    }

    /// Steps that leave no file open, so that the log says exactly which data flowed.
    pub fn whole() -> impl Strategy<Value = Step> {
        let (p, f) = (0..4_usize, 0..NAMES.len());
        prop_oneof![
            1 => p.clone().prop_map(Step::Fork),
            1 => p.clone().prop_map(|p| Step::Exec(p, false)),
            1 => p.clone().prop_map(Step::Exit),
            4 => (p.clone(), f.clone()).prop_map(|(p, f)| Step::WholeRead(p, f)),
            4 => (p.clone(), f.clone(), any::<bool>()).prop_map(|(p, f, a)| Step::WholeWrite(p, f, a)),
            1 => (p.clone(), f.clone(), f.clone()).prop_map(|(p, a, b)| Step::Rename(p, a, b)),
            1 => (p.clone(), f.clone()).prop_map(|(p, f)| Step::Unlink(p, f)),
            1 => (p, 0..2_usize).prop_map(|(p, d)| Step::Chdir(p, d)),
        ]
    }
}
