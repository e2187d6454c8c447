//! Keeps answers in a directory of the store, by the contents' digests, inspector and version.
//!
//! A file of the cache is an answer as the worker wrote it. Its name is a digest of everything that
//! the answer depends on, so no entry becomes wrong. A new version of an inspector uses other
//! names. The cache may be removed at any time.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::question::Question;
use crate::{Answer, InspectionWorker, InspectorEntry, Trouble, component};

/// The most answers that are kept. Beyond it the cache starts anew.
const MOST: usize = 10_000;

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
        let path = self.path(entry, component.as_deref(), question);
        if let Ok(bytes) = fs::read(&path)
            && let Ok(answer) = Answer::read(&bytes, &entry.name, entry.version)
        {
            return Ok(answer);
        }
        let answer = worker.ask_with(entry, component.as_deref(), question)?;
        if let Ok(bytes) = serde_json::to_vec(&answer) {
            // A full disk or a read-only store costs a later question its time.
            let _ = self.keep(&path, &bytes);
        }
        Ok(answer)
    }

    fn path(
        &self,
        entry: &InspectorEntry,
        component: Option<&[u8]>,
        question: &Question<'_>,
    ) -> PathBuf {
        let mut all = Vec::new();
        for part in [entry.name.as_bytes(), question.name] {
            all.extend((part.len() as u64).to_le_bytes());
            all.extend(part);
        }
        for word in &entry.command {
            all.extend(word.as_bytes());
            all.push(0);
        }
        all.extend(entry.version.to_le_bytes());
        for content in component.into_iter().chain(question.contents()) {
            all.extend(blake3::hash(content).as_bytes());
        }
        self.directory.join(blake3::hash(&all).to_hex().as_str())
    }

    /// Writes beside and renames: a reader never sees a part of an answer.
    fn keep(&self, path: &PathBuf, bytes: &[u8]) -> std::io::Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        if fs::read_dir(&self.directory)?.count() >= MOST {
            for entry in fs::read_dir(&self.directory)? {
                let _ = fs::remove_file(entry?.path());
            }
        }
        let beside = path.with_extension(std::process::id().to_string());
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(bytes)?;
        fs::rename(&beside, path)
    }
}
