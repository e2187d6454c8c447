//! Says for a library that a process loads while it runs whether it is plain, with all libraries
//! that it needs.
//!
//! The process is plain, so its recorder sees what passes through its C library. Beyond the
//! conditions for a library of a program, two more hold:
//!
//! - The loader finds each needed library at one path. So it is known which files it opens, also if
//!   the load fails.
//! - The library needs the C library, directly or by another one. So it is not the C library: a
//!   copy of that at another path would be loaded beside the one that the recorder has redirected.

use crate::classify::{Classifier, NeededLibraries, open};
use crate::part::{C_LIBRARY, NotPlain, WANTED};
use crate::symbols::InnerActs;
use crate::verdicts::{LoadVerdict, VerdictKind};
use backstory_abi::{NO_PATH, path_hash};
use backstory_files::Ident;
use rustix::fs::{AtFlags, CWD, statx};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A library that a process loads, with its verdict.
#[derive(Debug)]
pub struct ExaminedLoad {
    /// The verdict.
    pub verdict: LoadVerdict,
    /// Why it is not plain.
    pub reason: Option<NotPlain>,
    /// The content that was examined. `None`: it cannot be read, or changed meanwhile.
    pub library: Option<Ident>,
    /// If it is plain, the libraries that it needs, and the loader.
    pub needed: Vec<Ident>,
    /// If it is plain, its path and those of the libraries that it needs.
    pub paths: Vec<Vec<u8>>,
}

impl Classifier {
    /// Classifies an open library that a process loads by this path. `file_path` leads to the file
    /// in this process.
    pub fn load(&mut self, file: &mut File, file_path: &Path, path: &[u8]) -> ExaminedLoad {
        let (mut library, mut needed) = (None, NeededLibraries::default());
        let acts = self.loaded_acts(file, file_path, &mut library, &mut needed);
        let (plain, reason) = match acts {
            Ok(acts) => (Some(acts), None),
            Err(reason) => (None, Some(reason)),
        };
        let verdict = LoadVerdict {
            plain,
            alone: plain.is_some() && needed.paths == self.cache.paths(C_LIBRARY),
            path: library.map_or(NO_PATH, |library| self.cached_path(path, library)),
        };
        if plain.is_none() {
            needed = NeededLibraries::default();
        }
        let mut paths = vec![path.to_vec()];
        paths.append(&mut needed.paths);
        ExaminedLoad {
            verdict,
            reason,
            library,
            needed: needed.states,
            paths,
        }
    }

    /// The same for a library that a process loads by a name without a directory. `None`: the
    /// loader's cache does not have it, or has it at several paths.
    pub fn load_by_name(&mut self, name: &[u8]) -> Option<ExaminedLoad> {
        let [path] = self.cache.paths(name) else {
            return None;
        };
        let path = path.clone();
        let file_path = Path::new(OsStr::from_bytes(&path));
        let mut file = open(file_path).ok()?;
        Some(self.load(&mut file, file_path, &path))
    }

    fn loaded_acts(
        &mut self,
        file: &mut File,
        path: &Path,
        library: &mut Option<Ident>,
        needed: &mut NeededLibraries,
    ) -> Result<InnerActs, NotPlain> {
        let (state, part) = self.file(VerdictKind::Library, file, path)?;
        *library = Some(state);
        let part = part?;
        let acts = self.with_libraries(part, needed)?;
        let [c_library] = self.cache.paths(C_LIBRARY) else {
            return Err(NotPlain::Search(path.to_owned()));
        };
        if !needed.paths.contains(c_library) {
            return Err(NotPlain::Independent(path.to_owned()));
        }
        match needed.has_choice {
            true => Err(NotPlain::Search(path.to_owned())),
            false => Ok(acts),
        }
    }

    /// The hash of the only path at which the loader's cache has the last name of `path`, if it
    /// leads to this library.
    fn cached_path(&self, path: &[u8], library: Ident) -> u32 {
        let name = last_name(path);
        let [cached] = self.cache.paths(name) else {
            return NO_PATH;
        };
        // The recorder takes the last name of this path for the name that leads to it.
        if last_name(cached) != name {
            return NO_PATH;
        }
        let leads = Path::new(OsStr::from_bytes(cached));
        let there = statx(CWD, leads, AtFlags::empty(), WANTED);
        match there.is_ok_and(|there| Ident::from(&there) == library) {
            true => path_hash(cached),
            false => NO_PATH,
        }
    }
}

/// The part of a path behind its last slash.
fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}
