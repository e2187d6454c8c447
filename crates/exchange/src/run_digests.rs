//! The digests of logs, by which two stores find out whether they have the same run.
//!
//! A log does not change once its identities are resolved, so each digest is computed once and
//! remembered in `DIR/run-digests.index`. The file can be removed: it is made again.
//!
//! ```text
//! a line: run  bytes  modification time in ns  inode  BLAKE3
//! ```

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use backstory_eventlog::Log;
use backstory_files::{Digest, regular};
use backstory_store::Home;

use crate::{Error, Result};

/// Identity of a log's file: bytes, modification time, inode.
type FileState = (u64, i64, u64);

/// The digests of the logs of a store.
#[derive(Debug)]
pub struct RunDigests {
    home: Home,
    known: HashMap<String, (FileState, Digest)>,
}

impl RunDigests {
    /// Reads the digests that were computed before.
    pub fn open(home: &Home) -> RunDigests {
        let mut digests = RunDigests {
            home: home.clone(),
            known: HashMap::new(),
        };
        let text = regular::read(digests.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        digests.known.extend(text.lines().filter_map(entry));
        digests
    }

    fn path(&self) -> PathBuf {
        self.home.dir().join("run-digests.index")
    }

    /// The digest and the bytes of a run's log. `None` if the log is gone, or cannot be exchanged
    /// because its identities are not resolved.
    pub fn of(&mut self, run: &str) -> Result<Option<(Digest, u64)>> {
        let path = self.home.log_path(run);
        let Ok(meta) = std::fs::metadata(&path) else {
            return Ok(None);
        };
        let time = meta.mtime().saturating_mul(1_000_000_000);
        let state = (
            meta.len(),
            time.saturating_add(meta.mtime_nsec()),
            meta.ino(),
        );
        if let Some((known, digest)) = self.known.get(run)
            && *known == state
        {
            return Ok(Some((*digest, meta.len())));
        }
        match Log::open(&path) {
            Ok(log) if log.resolved() && log.header().id == run => {}
            _ => return Ok(None),
        }
        let digest = regular::open(&path)
            .and_then(|mut log| backstory_contents::digest_of(&mut log))
            .map_err(Error::io("read", &path))?
            .0;
        self.remember(run, state, digest);
        Ok(Some((digest, meta.len())))
    }

    /// Without the line, the digest is computed again.
    fn remember(&mut self, run: &str, state: FileState, digest: Digest) {
        let (bytes, time, inode) = state;
        let line = format!("{run} {bytes} {time} {inode} {digest}\n");
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        if let Ok(mut file) = regular::open_with(&mut options, self.path()) {
            let _ = file.write_all(line.as_bytes());
        }
        self.known.insert(run.to_owned(), (state, digest));
    }
}

fn entry(line: &str) -> Option<(String, (FileState, Digest))> {
    let mut words = line.split(' ');
    let run = words.next()?.to_owned();
    let state = (
        words.next()?.parse().ok()?,
        words.next()?.parse().ok()?,
        words.next()?.parse().ok()?,
    );
    let digest = words.next()?.parse().ok()?;
    words.next().is_none().then_some((run, (state, digest)))
}
