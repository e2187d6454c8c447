//! Keeps answers in a directory of the store, by the contents' digests, the file's path, inspector
//! and version.
//!
//! A file of the cache is an answer as the worker wrote it. Its name is a digest of everything that
//! the answer depends on, so no entry becomes wrong. A new version of an inspector uses other
//! names. The cache may be removed at any time.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use backstory_files::regular;

use crate::question::Question;
use crate::{Answer, InspectionWorker, InspectorEntry, Trouble, component, name_pattern};

/// The most answers in each of the 256 directories. So about 100,000 answers are kept.
const MOST: usize = 400;

/// The kept answers.
#[derive(Debug)]
pub struct AnswerCache {
    directory: PathBuf,
}

impl AnswerCache {
    /// The cache in this directory, which need not exist.
    pub fn at(directory: PathBuf) -> AnswerCache {
        AnswerCache { directory }
    }

    /// The kept answer, or else the worker's, which is kept. An answer that cannot be kept is still
    /// an answer.
    ///
    /// # Errors
    /// As [`InspectionWorker::ask`].
    pub fn ask(
        &self,
        worker: &InspectionWorker,
        entry: &InspectorEntry,
        question: &Question<'_>,
    ) -> Result<Answer, Trouble> {
        let component = component::read(entry)?;
        let digests = question
            .contents()
            .map(|content| *blake3::hash(content).as_bytes());
        let named = (question.name, question.key);
        let path = self.path(entry, component.as_deref(), named, digests);
        if let Some(answer) = read(&path, entry) {
            return Ok(answer);
        }
        let answer = worker.ask_with(entry, component.as_deref(), question)?;
        if let Ok(bytes) = serde_json::to_vec(&answer) {
            // A full disk or a read-only store costs a later question its time.
            let _ = keep(&path, &bytes);
        }
        Ok(answer)
    }

    /// The kept answer about contents of which only the BLAKE3 digests are known: of one content,
    /// or of an older and a newer one. `key`: see [`Question::key`]. `None` if no answer was kept.
    pub fn kept(
        &self,
        entry: &InspectorEntry,
        (name, key): (&[u8], &[String]),
        digests: &[[u8; 32]],
    ) -> Option<Answer> {
        let component = component::read(entry).ok()?;
        let named = (name, key);
        let path = self.path(entry, component.as_deref(), named, digests.iter().copied());
        read(&path, entry)
    }

    /// The file of an answer: in one of 256 directories, so that none of them becomes long.
    fn path(
        &self,
        entry: &InspectorEntry,
        component: Option<&[u8]>,
        (name, key): (&[u8], &[String]),
        digests: impl Iterator<Item = [u8; 32]>,
    ) -> PathBuf {
        let mut all = Vec::new();
        let file = name_pattern::absolute(name);
        for part in [entry.name.as_bytes(), &file[..]] {
            all.extend((part.len() as u64).to_le_bytes());
            all.extend(part);
        }
        for word in entry.command.iter().chain(key) {
            all.extend(word.as_bytes());
            all.push(0);
        }
        all.extend(entry.version.to_le_bytes());
        let component = component.map(|component| *blake3::hash(component).as_bytes());
        for digest in component.into_iter().chain(digests) {
            all.extend(digest);
        }
        let key = blake3::hash(&all).to_hex();
        let (directory, rest) = key.split_at(2);
        self.directory.join(directory).join(rest)
    }
}

fn read(path: &Path, entry: &InspectorEntry) -> Option<Answer> {
    let bytes = fs::read(path).ok()?;
    Answer::read(&bytes, &entry.name, entry.version).ok()
}

/// Writes an answer into its file. In a full directory, the older half makes room.
fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let kept = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    if kept.len() >= MOST {
        let mut dated: Vec<_> = kept
            .iter()
            .filter_map(|one| Some((one.metadata().ok()?.modified().ok()?, one.path())))
            .collect();
        dated.sort_unstable();
        for (_, old) in &dated[..dated.len() / 2] {
            let _ = fs::remove_file(old);
        }
    }
    regular::replace(path, |file| file.write_all(bytes))
}
