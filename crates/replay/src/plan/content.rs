//! Finds the source of a file's content: the store, this machine, or none.

use backstory_files::regular;
use backstory_files::{Digest, Ident};
use backstory_query as query;
use backstory_store::facts::{Availability, Package};
use backstory_store::same_version;
use backstory_workflow::paths::to_path;

use super::EntrySource;
use super::builder::{PlanBuilder, shown, without_links};
use super::initial_state::InitialPath;
use crate::Result;

/// Smaller files are copied: mounting costs as much as copying, and the program could not open a
/// mounted file for writing.
const SMALL: i64 = 16 << 10;

impl PlanBuilder<'_> {
    /// Adds a file whose content the run needed.
    pub(super) fn content(&mut self, before: &InitialPath) -> Result<()> {
        let known = self.known(before)?;
        let now = query::present_identity(to_path(&before.path), true);
        let same = match (&now, &before.ident) {
            (Some(now), Some(then)) => same_version(now, then),
            _ => false,
        };
        let large = before.ident.is_some_and(|ident| ident.size >= SMALL);
        // A mounted file has its present permissions, and a copy has the recorded ones.
        let executes = |ident: Option<Ident>| ident.is_some_and(|ident| ident.mode & 0o111 != 0);
        let has_lost_permission = executes(before.ident) && !executes(now);
        let mounts = large && !before.changed && !before.writable && !has_lost_permission;
        let from_here = || match mounts {
            true => EntrySource::Mounted(without_links(&before.path)),
            false => EntrySource::Copied(without_links(&before.path)),
        };
        let what = match known {
            Some((Some(digest), Availability::Stored | Availability::StoredPackage(_))) => {
                match same && mounts {
                    true => Ok(from_here()),
                    // The store that had it may have lost it.
                    false => match self.kept(&digest) {
                        Err(_) if same => Ok(from_here()),
                        kept => kept,
                    },
                }
            }
            Some((digest, Availability::Package(package))) => {
                match same || self.is_content(&before.path, digest) {
                    true => Ok(from_here()),
                    false => Err(missing_package(&package, now.is_some())),
                }
            }
            Some((_, Availability::Missing(_))) if same => Ok(from_here()),
            Some((_, Availability::Missing(why))) => Err(why),
            _ if same => Ok(from_here()),
            _ => Err("nothing is known of its content".to_owned()),
        };
        let what = match what {
            Err(_) if self.deviations.allow_host && now.is_some() => Ok(from_here()),
            what => what,
        };
        let mode = before.ident.map_or(0o644, |ident| ident.mode) & 0o7777;
        let mtime = before.ident.map_or(0, |ident| ident.mtime);
        match what {
            Ok(what) => self.put(&before.path, what, mode, mtime),
            // No read was seen. For a file that the run wrote into, the old content is replaced by
            // its best approximation.
            Err(_) if !before.certain => match self.remains(before)? {
                Some(what) => self.put(&before.path, what, mode, mtime),
                None => self.blank(before),
            },
            Err(why) => self.lacking.push((before.path.clone(), why)),
        }
        Ok(())
    }

    /// The known content of a path: by its own identity, else by an identity that it had later in
    /// the run.
    fn known(&self, before: &InitialPath) -> Result<Option<(Option<Digest>, Availability)>> {
        let mut found = query::known(self.store, before.ident.as_ref())?;
        for heir in &before.heirs {
            match found {
                None | Some((_, Availability::Missing(_))) => {
                    found = query::known(self.store, Some(heir))?.or(found);
                }
                Some(_) => break,
            }
        }
        Ok(found)
    }

    /// The source of a file that the run changed and that was neither read nor stored. It is the
    /// first bytes of the version that the run left. If that is not the old content, the replay's
    /// result differs.
    fn remains(&mut self, before: &InitialPath) -> Result<Option<EntrySource>> {
        let Some(size) = before.ident.map(|ident| ident.size.max(0) as u64) else {
            return Ok(None);
        };
        for later in &before.written {
            if let Some((Some(digest), Availability::Stored | Availability::StoredPackage(_))) =
                query::known(self.store, Some(later))?
            {
                self.notes.push(format!(
                    "the run wrote into {} and was not seen to read it, so what it held before was not kept: its first {size} bytes are those that the run left",
                    shown(&before.path)
                ));
                return Ok(Some(EntrySource::StoredPart(digest.0, size)));
            }
        }
        Ok(None)
    }

    fn kept(&self, digest: &Digest) -> std::result::Result<EntrySource, String> {
        let contents = self.contents.as_ref();
        match contents.map(|contents| contents.size(digest)) {
            Some(Ok(Some(_))) => Ok(EntrySource::Stored(digest.0)),
            Some(Err(error)) => Err(error.to_string()),
            _ => Err("its content was kept, and is not in the store any more; `backstory store verify` lists what is damaged".to_owned()),
        }
    }

    fn is_content(&self, path: &[u8], digest: Option<Digest>) -> bool {
        let found = regular::open(to_path(path))
            .and_then(|mut file| backstory_contents::digest_of(&mut file));
        found.is_ok_and(|(now, _)| Some(now) == digest)
    }
}

fn missing_package(package: &Package, there: bool) -> String {
    let Package {
        manager,
        name,
        version,
        ..
    } = package;
    let how = if there {
        "another version of it is installed here"
    } else {
        "it is not here"
    };
    format!(
        "it is from the package {name} {version} ({manager}), and {how}: install that, or record with --self-contained"
    )
}
