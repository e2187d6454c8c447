//! Which programs nobody looked at: without the guard, those that no recorder can be put into.
//!
//! Looked at when executions reach the log, each path once, as in [`super::privileges`]. What can't be found any more, or was named
//! relative to a directory other than the command's, is not judged.

use super::executed::{each_program, open_program};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// So many different programs are looked at.
const LOOKED_AT: usize = 10_000;
/// So many are named.
const NAMED: usize = 3;
/// Of a program's beginning: its headers.
const HEAD: u64 = 4096;
/// A script's interpreter may be a script, so often (Linux: 5).
const DEPTH: u32 = 5;
const PT_INTERP: u32 = 3;

/// The programs executed so far.
#[derive(Debug)]
pub(crate) struct Unwatched {
    directory: PathBuf,
    seen: HashSet<Box<[u8]>>,
    named: Vec<String>,
    count: usize,
}

impl Unwatched {
    /// For a run in the current directory.
    pub(crate) fn new() -> Unwatched {
        Unwatched {
            directory: std::env::current_dir().unwrap_or_default(),
            seen: HashSet::new(),
            named: Vec::new(),
            count: 0,
        }
    }

    /// Looks at the programs executed in a chunk.
    pub(crate) fn look(&mut self, chunk: &[u8]) {
        each_program(chunk, |path| self.program(path));
    }

    fn program(&mut self, path: &[u8]) {
        if self.seen.len() >= LOOKED_AT || self.seen.contains(path) {
            return;
        }
        self.seen.insert(path.into());
        let file = self.directory.join(OsStr::from_bytes(path));
        if !takes_no_recorder(&file, DEPTH) {
            return;
        }
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push(file.display().to_string());
        }
    }

    /// Why the run is not complete, if it isn't.
    pub(crate) fn reason(&self) -> Option<String> {
        let more = self.count.checked_sub(self.named.len()).filter(|more| *more > 0);
        let more = more.map_or(String::new(), |more| format!(" and {more} more"));
        let named = self.named.join(", ");
        (self.count > 0).then(|| format!("without the guard nothing is known of what {named}{more} did"))
    }
}

/// The file is a program into which the loader puts no library of ours: it has no loader, another machine's, or more rights than
/// its caller.
fn takes_no_recorder(file: &Path, depth: u32) -> bool {
    let mut head = Vec::new();
    let opened = open_program(file);
    let Ok(meta) = opened.and_then(|file| {
        let meta = file.metadata()?;
        file.take(HEAD).read_to_end(&mut head)?;
        Ok(meta)
    }) else {
        return false;
    };
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|b| *b == b'\n').next().unwrap_or_default();
        let mut words = line.split(|b| b" \t".contains(b)).filter(|word| !word.is_empty());
        return depth > 0
            && words
                .next()
                .is_some_and(|name| takes_no_recorder(Path::new(OsStr::from_bytes(name)), depth - 1));
    }
    let raised = meta.mode() & 0o4000 != 0 && meta.uid() != rustix::process::geteuid().as_raw();
    head.starts_with(b"\x7fELF") && (raised || !has_loader(&head))
}

/// The beginning of a program shows a loader for this machine. Headers that lie elsewhere are believed to.
fn has_loader(head: &[u8]) -> bool {
    const ELF64: u8 = 2;
    let half = |at: usize| {
        head.get(at..at + 2)
            .map(|b| usize::from(u16::from_le_bytes([b[0], b[1]])))
    };
    let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    if head.get(4) != Some(&ELF64) || half(18) != Some(machine) {
        return false;
    }
    let table = head
        .get(32..40)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u64::from_le_bytes) as usize;
    let (Some(each), Some(count)) = (half(54), half(56)) else {
        return true;
    };
    let entries = (0..count).map(|n| table.saturating_add(n * each));
    let mut kinds = entries.map(|at| head.get(at..at.saturating_add(4)));
    kinds.any(|kind| kind.is_none_or(|kind| kind == PT_INTERP.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(class: u8, kinds: &[u32]) -> Vec<u8> {
        let mut head = vec![0; 64 + 56 * kinds.len()];
        head[..5].copy_from_slice(&[0x7f, b'E', b'L', b'F', class]);
        head[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
        (head[32], head[54], head[56]) = (64, 56, kinds.len() as u8);
        for (n, kind) in kinds.iter().enumerate() {
            head[64 + 56 * n..][..4].copy_from_slice(&kind.to_le_bytes());
        }
        head
    }

    #[test]
    fn programs_without_a_loader_for_this_machine_are_named_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let own = std::env::current_exe().unwrap();
        let dynamic = file("dynamic", &elf(2, &[1, 6, 3]));
        let fixed = file("static", &elf(2, &[1, 6]));
        let small = file("small", &elf(1, &[1, 3]));
        let script = file("script", format!("#! {} -x\n", fixed.display()).as_bytes());
        let other = file("other", b"#!/bin/sh\n");
        let cut = file("cut", b"\x7fELF");
        let mut unwatched = Unwatched::new();
        for path in [&own, &dynamic, &other, &dir.path().join("none")] {
            unwatched.program(path.as_os_str().as_bytes());
        }
        assert_eq!(unwatched.reason(), None);
        for path in [&fixed, &fixed, &small, &script, &cut] {
            unwatched.program(path.as_os_str().as_bytes());
        }
        let reason = unwatched.reason().unwrap();
        assert!(
            reason.contains("/static, ") && reason.ends_with("/script and 1 more did"),
            "{reason}"
        );
    }
}
