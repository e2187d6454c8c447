//! The files that a run read, as far as the deep log has their bytes.
//!
//! In: an arranged run. Out: the pieces of each file that no process of the run wrote. Bytes that
//! were never read are not known.

use crate::process::{CallObject, OF_DESCRIPTOR, RecordedProcess, ResultKey};
use crate::recorded::RecordedRun;
use crate::resource::{Resource, is_kernels};
use libc::{S_IFREG, SYS_newfstatat};
use std::collections::{BTreeMap, HashSet};

/// The offset of `st_size` in `struct stat`.
const SIZE: usize = 48;

/// A file as the programs of a run read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadFile {
    /// Positions and bytes, in the order of the reads.
    pub pieces: Vec<(u64, Vec<u8>)>,
    /// Its size, as far as the record shows.
    pub size: u64,
}

impl ReadFile {
    /// Its bytes. Zeros are in the place of those that were never read.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = vec![0; usize::try_from(self.size).unwrap_or(0)];
        for (at, piece) in &self.pieces {
            let at = usize::try_from(*at).unwrap_or(usize::MAX);
            if let Some(place) = all.get_mut(at..at.saturating_add(piece.len())) {
                place.copy_from_slice(piece);
            }
        }
        all
    }
}

/// The files whose bytes the deep log has, by absolute path.
pub fn read_files(run: &RecordedRun) -> BTreeMap<Vec<u8>, ReadFile> {
    let written = run.resources.iter().filter(|resource| resource.is_written);
    let written: HashSet<&[u8]> = written.map(|resource| &*resource.link).collect();
    let mut files: BTreeMap<Vec<u8>, ReadFile> = BTreeMap::new();
    for process in &run.processes {
        for (id, streams) in &process.streams {
            let resource = &run.resources[*id];
            let path = &resource.link;
            let is_file = resource.kind == S_IFREG && resource.has_bytes;
            if !is_file || path.is_empty() || is_kernels(path) || written.contains(&**path) {
                continue;
            }
            let file = files.entry(path.clone()).or_default();
            for (start, bytes) in streams.input.pieces() {
                file.size = file.size.max(start.saturating_add(bytes.len() as u64));
                file.pieces.push((start, bytes.to_vec()));
            }
            file.size = file.size.max(recorded_size(process, resource));
        }
    }
    files
}

/// The size in the recorded status of the file.
fn recorded_size(process: &RecordedProcess, resource: &Resource) -> u64 {
    let size = |path: &[u8], detail: u64| {
        let key = ResultKey {
            call: SYS_newfstatat as u16,
            object: CallObject::Path(path.to_vec()),
            detail,
        };
        let (result, _) = process.results.get(&key)?.front()?;
        let word = result.entered.first()?.get(SIZE..)?.first_chunk()?;
        Some(u64::from_le_bytes(*word))
    };
    let paths = [&resource.name, &resource.link].into_iter();
    let sizes = paths.flat_map(|path| [size(path, 0), size(path, OF_DESCRIPTOR)]);
    sizes.flatten().max().unwrap_or(0)
}
