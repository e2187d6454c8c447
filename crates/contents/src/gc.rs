//! Garbage collection: removes contents and gives their space back.

use std::collections::HashSet;
use std::ops::Add;

use crate::batch::Batch;
use crate::index::{self, PackPosition};
use crate::packing::{put_whole, whole_length};
use crate::put::FormerContent;
use crate::record::{HEADER, Header, SMALL};
use crate::{Contents, Error, Result, delta, layout, object};
use backstory_files::{Digest, regular};

/// The result of a garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reclaimed {
    /// Number of contents removed.
    pub objects: u64,
    /// Bytes of disk space given back.
    pub bytes: u64,
}

impl Add for Reclaimed {
    type Output = Reclaimed;

    fn add(self, more: Reclaimed) -> Reclaimed {
        Reclaimed {
            objects: self.objects + more.objects,
            bytes: self.bytes + more.bytes,
        }
    }
}

/// A pack, and its objects to keep.
struct LivePack {
    number: u32,
    /// Bytes of its file.
    length: u64,
    objects: Vec<(Digest, PackPosition, CopyMethod)>,
}

/// How an object gets into a new pack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyMethod {
    AsStored,
    /// It is stored as changes from a content that is removed. Its new base is the nearest one to
    /// keep in the chain of bases, with its depth.
    Anew(Option<(Digest, u8)>),
}

/// An object that is stored as changes from a content that is removed, made anew.
enum NewObject {
    Changes(Header, Vec<u8>),
    Whole(Vec<u8>),
}

impl LivePack {
    /// True if the pack must be rewritten.
    fn changes(&self) -> bool {
        let used = |(_, position, _): &(_, PackPosition, _)| HEADER as u64 + position.stored;
        let is_anew = |(.., copy): &(_, _, CopyMethod)| *copy != CopyMethod::AsStored;
        self.objects.iter().any(is_anew) || self.objects.iter().map(used).sum::<u64>() < self.length
    }
}

impl Contents {
    /// Removes every content that `keep` refuses, and gives its space back. With `dry`, only
    /// computes the result.
    ///
    /// If it is killed at any moment, every content to keep survives: packs are rewritten before
    /// the old ones are removed. No process may refer to a refused content meanwhile. A process
    /// that puts and refers holds a lock that excludes this one.
    ///
    /// A content can be stored as changes from a refused one. It is stored anew before that one is
    /// removed, whole if necessary. The store can then become larger.
    pub fn gc(&self, keep: &dyn Fn(&Digest) -> bool, dry: bool) -> Result<Reclaimed> {
        self.sync()?;
        let lock = self.lock()?;
        self.state().index = index::load(&self.dir)?;
        let mut given = Reclaimed::default();
        let mut files = layout::files(&self.dir)?;
        files.extend(layout::notes(&self.dir)?);
        files.retain(|(digest, _)| !keep(digest));
        for (_, path) in &files {
            given.objects += 1;
            given.bytes += layout::length(path);
        }
        let mut packs = Vec::new();
        let mut seen = HashSet::new();
        for number in layout::packs(&self.dir)? {
            let (pack, removed) = self.live_objects(number, keep, &mut seen)?;
            given.objects += removed;
            if pack.changes() {
                given.bytes = (given.bytes + pack.length).saturating_sub(self.length_of(&pack)?);
                packs.push(pack);
            }
        }
        if dry {
            return Ok(given);
        }
        self.rewrite(&packs, lock)?;
        // They may have been bases of contents that the new packs have whole.
        for (_, path) in &files {
            layout::remove(path)?;
        }
        self.state().index = index::load(&self.dir)?;
        Ok(given)
    }

    /// The objects of a pack to keep, and the number of those to remove. A crash may leave a
    /// content in two packs. One of them is kept: `seen` has those of the packs before.
    fn live_objects(
        &self,
        number: u32,
        keep: &dyn Fn(&Digest) -> bool,
        seen: &mut HashSet<Digest>,
    ) -> Result<(LivePack, u64)> {
        let path = layout::pack(&self.dir, number);
        let file = regular::open(&path).map_err(Error::io("open", &path))?;
        let mut pack = LivePack {
            number,
            length: layout::length(&path),
            objects: Vec::new(),
        };
        let mut removed = 0;
        for (digest, position) in index::of_pack(&self.dir, number)? {
            if keep(&digest) && seen.insert(digest) {
                let copy = match object::base_in(&file, &position) {
                    Some((base, _)) if !keep(&base) => self.nearest_kept(base, keep),
                    _ => CopyMethod::AsStored,
                };
                pack.objects.push((digest, position, copy));
            } else {
                removed += u64::from(!keep(&digest));
            }
        }
        Ok((pack, removed))
    }

    /// The nearest content to keep in the chain of bases that begins with `base`.
    fn nearest_kept(&self, mut base: Digest, keep: &dyn Fn(&Digest) -> bool) -> CopyMethod {
        for _ in 0..delta::DEEPEST {
            let next = self.base_of(&base);
            if keep(&base) {
                return CopyMethod::Anew(Some((base, next.map_or(0, |(_, depth)| depth))));
            }
            match next {
                Some((next, _)) => base = next,
                None => break,
            }
        }
        CopyMethod::Anew(None)
    }

    /// Bytes that the objects of a pack take after it is rewritten.
    fn length_of(&self, pack: &LivePack) -> Result<u64> {
        let mut length = 0;
        for (digest, position, copy) in &pack.objects {
            let stored = match copy {
                CopyMethod::AsStored => Ok(position.stored),
                CopyMethod::Anew(base) => self.anew(digest, *base).map(|object| match object {
                    NewObject::Changes(header, _) => header.stored,
                    NewObject::Whole(content) => whole_length(&content),
                }),
            };
            match stored {
                Err(Error::Damaged { .. }) => {}
                stored => length += HEADER as u64 + stored?,
            }
        }
        Ok(length)
    }

    /// The object of a content as changes from another one with this depth, if it fits into a pack.
    fn anew(&self, digest: &Digest, base: Option<(Digest, u8)>) -> Result<NewObject> {
        let content = self.bytes(digest)?;
        let Some((base, depth)) = base else {
            return Ok(NewObject::Whole(content));
        };
        let former = FormerContent {
            digest: base,
            depth,
            bytes: self.bytes(&base)?,
        };
        let object = former.object(digest, &content);
        let (header, stored) = object.map_err(Error::io("compress", &self.dir))?;
        Ok(match stored.len() <= SMALL {
            true => NewObject::Changes(header, stored),
            false => NewObject::Whole(content),
        })
    }

    /// Copies the contents to keep out of these packs, then removes the packs.
    fn rewrite(&self, packs: &[LivePack], lock: std::fs::File) -> Result<()> {
        let mut batch = Batch::begin_apart(&self.dir, lock)?;
        for (digest, position, copy) in packs.iter().flat_map(|pack| &pack.objects) {
            let copied = match copy {
                CopyMethod::AsStored => object::record(&self.dir, digest, position)
                    .and_then(|(header, stored)| batch.small(&header, &stored)),
                CopyMethod::Anew(base) => self.anew(digest, *base).and_then(|new| match new {
                    NewObject::Changes(header, stored) => batch.small(&header, &stored),
                    NewObject::Whole(content) => put_whole(&self.dir, &mut batch, &content),
                }),
            };
            match copied {
                // This content is lost already. The others must not be lost with it.
                Err(Error::Damaged { .. }) => {}
                copied => copied?,
            }
        }
        let (_, _lock) = batch.finish()?;
        for pack in packs {
            layout::remove(&layout::pack_index(&self.dir, pack.number))?;
            layout::remove(&layout::pack(&self.dir, pack.number))?;
        }
        layout::sync_dir(&self.dir.join("packs"))
    }
}
