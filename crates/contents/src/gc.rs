//! Garbage collection: removes contents and gives their space back.

use std::collections::HashSet;

use crate::batch::Batch;
use crate::index::{self, PackPosition};
use crate::record::HEADER;
use crate::{Contents, Error, Result, layout, object};
use backstory_files::Digest;

/// The result of a garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reclaimed {
    /// Number of contents removed.
    pub objects: u64,
    /// Bytes of disk space given back.
    pub bytes: u64,
}

impl Contents {
    /// Removes every content that `keep` refuses, and gives its space back. With `dry`, only
    /// computes the result.
    ///
    /// If it is killed at any moment, every content to keep survives: packs are rewritten before
    /// the old ones are removed. No process may refer to a refused content meanwhile. A process
    /// that puts and refers holds a lock that excludes this one.
    pub fn gc(&self, keep: &dyn Fn(&Digest) -> bool, dry: bool) -> Result<Reclaimed> {
        self.sync()?;
        let lock = self.lock()?;
        let mut given = Reclaimed::default();
        for (digest, path) in layout::files(&self.dir)? {
            if !keep(&digest) {
                given.objects += 1;
                given.bytes += layout::length(&path);
                if !dry {
                    layout::remove(&path)?;
                }
            }
        }
        let mut rewrite = Vec::new();
        let mut seen = HashSet::new();
        for pack in layout::packs(&self.dir)? {
            let objects = index::of_pack(&self.dir, pack)?;
            let length = layout::length(&layout::pack(&self.dir, pack));
            let mut live = Vec::new();
            for (digest, position) in &objects {
                // A crash may leave a content in two packs. One of them is kept.
                match keep(digest) && seen.insert(*digest) {
                    true => live.push((*digest, *position)),
                    false => given.objects += u64::from(!keep(digest)),
                }
            }
            let used: u64 = live
                .iter()
                .map(|(_, position)| HEADER as u64 + position.stored)
                .sum();
            if used < length {
                given.bytes += length - used;
                rewrite.push((pack, live));
            }
        }
        if dry {
            return Ok(given);
        }
        self.rewrite(&rewrite, lock)?;
        self.state().index = index::load(&self.dir)?;
        Ok(given)
    }

    /// Copies the contents to keep out of these packs, then removes the packs.
    fn rewrite(
        &self,
        packs: &[(u32, Vec<(Digest, PackPosition)>)],
        lock: std::fs::File,
    ) -> Result<()> {
        let mut batch = Batch::begin_apart(&self.dir, lock)?;
        for (_, live) in packs {
            for (digest, position) in live {
                match object::record(&self.dir, digest, position) {
                    Ok((header, stored)) => batch.small(&header, &stored)?,
                    // This content is lost already. The others must not be lost with it.
                    Err(Error::Damaged { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let (_, _lock) = batch.finish_locked()?;
        for (pack, _) in packs {
            layout::remove(&layout::pack_index(&self.dir, *pack))?;
            layout::remove(&layout::pack(&self.dir, *pack))?;
        }
        layout::sync_dir(&self.dir.join("packs"))
    }
}
