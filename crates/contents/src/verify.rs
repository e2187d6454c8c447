//! Finds damage.

use std::io;
use std::path::PathBuf;

use crate::index::{self, PackPosition};
use crate::{Contents, Error, Result, delta, layout, object};
use backstory_files::Digest;

/// A damaged file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The content that cannot be read. `None` if no content is lost, as for an index, which can be
    /// made again.
    pub digest: Option<Digest>,
    /// The kind of damage, as a message.
    pub what: String,
}

/// Progress of a verification: bytes examined, and bytes in all.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

impl Contents {
    /// Reads everything, and lists every file with a byte that is not as it was written. Changes
    /// nothing.
    pub fn verify(&self, progress: &mut Progress<'_>) -> Result<Vec<Damage>> {
        self.sync()?;
        // Without the lock, a half-written file would look damaged.
        let _lock = self.lock()?;
        self.state().index = index::load(&self.dir)?;
        let (packs, files) = (layout::packs(&self.dir)?, layout::files(&self.dir)?);
        let all: u64 = packs
            .iter()
            .map(|pack| layout::length(&layout::pack(&self.dir, *pack)))
            .chain(files.iter().map(|(_, path)| layout::length(path)))
            .sum();
        let (mut done, mut damages) = (0, Vec::new());
        for pack in packs {
            self.verify_pack(pack, &mut damages)?;
            done += layout::length(&layout::pack(&self.dir, pack));
            progress(done, all);
        }
        for (digest, path) in files {
            let whole = object::open_large(&self.dir, &digest).and_then(|mut object| {
                io::copy(&mut object, &mut io::sink()).map_err(Error::io("read", &path))?;
                object::nothing_follows(&path, &digest)
            });
            if let Err(error) = whole {
                damages.push(Damage {
                    path: path.clone(),
                    digest: Some(digest),
                    what: what(&error),
                });
            }
            done += layout::length(&path);
            progress(done, all);
        }
        for (digest, note) in layout::notes(&self.dir)? {
            self.verify_elsewhere(digest, note, &mut damages)?;
        }
        self.strangers(&mut damages)?;
        Ok(damages)
    }

    /// Reads a content of another store, unless it is stored here, too.
    fn verify_elsewhere(
        &self,
        digest: Digest,
        note: PathBuf,
        damages: &mut Vec<Damage>,
    ) -> Result<()> {
        if self.is_put(&digest) || layout::object(&self.dir, &digest).exists() {
            return Ok(());
        }
        let whole = object::open_elsewhere(&self.dir, &digest).and_then(|mut object| {
            io::copy(&mut object, &mut io::sink()).map_err(Error::io("read", &note))
        });
        let (path, what) = match whole {
            Ok(_) => return Ok(()),
            Err(Error::Elsewhere { path, what, .. }) => (path, what),
            Err(Error::Io { source, path, .. }) => match source.downcast::<Error>() {
                Ok(Error::Elsewhere { path, what, .. }) => (path, what),
                Ok(error) => (path, error.to_string()),
                Err(source) => (path, source.to_string()),
            },
            Err(error) => (note, what(&error)),
        };
        damages.push(Damage {
            path,
            digest: Some(digest),
            what,
        });
        Ok(())
    }

    fn verify_pack(&self, pack: u32, damages: &mut Vec<Damage>) -> Result<()> {
        let path = layout::pack(&self.dir, pack);
        let listing = index::read(&self.dir, pack)?;
        let length = layout::length(&path);
        let mut found = index::scan(&self.dir, pack, 0)?;
        if listing.there && !listing.whole {
            damages.push(Damage {
                path: layout::pack_index(&self.dir, pack),
                digest: None,
                what: "the index is damaged; it is made again from its pack, nothing is lost by it"
                    .to_owned(),
            });
        }
        for (digest, position) in &listing.objects {
            if let Err(error) = self.open_packed(digest, position) {
                damages.push(Damage {
                    path: path.clone(),
                    digest: Some(*digest),
                    what: what(&error),
                });
            }
        }
        // Without an index, a gap between records is the only trace of a damaged one.
        found.retain(|(digest, position)| self.open_packed(digest, position).is_ok());
        let known = listing
            .objects
            .iter()
            .map(|(_, position)| position.end())
            .max();
        let end = if listing.whole {
            known.unwrap_or(0)
        } else {
            length
        };
        if let Some(gap) = gap(&found, end).filter(|_| !listing.whole) {
            damages.push(Damage {
                path,
                digest: None,
                what: format!("at byte {gap} there is no record, and no index says what was there"),
            });
        }
        Ok(())
    }

    fn open_packed(&self, digest: &Digest, position: &PackPosition) -> Result<object::Object> {
        let base = |base: &Digest| self.base(base, delta::DEEPEST);
        object::open_packed(&self.dir, digest, position, &base)
    }

    /// Finds unknown files. A flipped bit in a name makes a file unknown.
    fn strangers(&self, damages: &mut Vec<Damage>) -> Result<()> {
        let objects = layout::entries(&self.dir.join("objects"))?;
        let notes = layout::entries(&self.dir.join("elsewhere"))?;
        for fan in objects.into_iter().chain(notes) {
            for path in layout::entries(&fan)? {
                let digest = path
                    .file_name()
                    .and_then(|name| name.to_str()?.parse::<Digest>().ok());
                let is_of = |digest: Digest| {
                    let (object, note) = (layout::object, layout::elsewhere);
                    [object(&self.dir, &digest), note(&self.dir, &digest)].contains(&path)
                };
                if !digest.is_some_and(is_of) {
                    damages.push(Damage {
                        path,
                        digest: None,
                        what: "it is not where a content of this name would be".to_owned(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// The first byte before `end` that belongs to no record.
fn gap(found: &[(Digest, PackPosition)], end: u64) -> Option<u64> {
    let mut at = 0;
    for (_, position) in found {
        if position.offset > at {
            return Some(at);
        }
        at = at.max(position.end());
    }
    (at < end).then_some(at)
}

fn what(error: &Error) -> String {
    match error {
        Error::Damaged { what, .. } => (*what).to_owned(),
        Error::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
            "its bytes are not as they were written".to_owned()
        }
        other => other.to_string(),
    }
}
