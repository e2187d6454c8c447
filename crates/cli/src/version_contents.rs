//! Reads the contents of recorded versions into memory: from the store, else from the file itself
//! if it is still that version.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_contents::Contents;
use backstory_inspection::LARGEST_CONTENT;
use backstory_query as query;
use backstory_store::{EntityKey, GraphStore};

use crate::current_store::CurrentStore;
use crate::error::Failure;

/// The most bytes of a content that are read. The worker takes no larger one.
const MOST: u64 = LARGEST_CONTENT as u64;

/// Reads contents of versions.
pub struct VersionContents<'c> {
    current: &'c CurrentStore,
    contents: OnceCell<Option<Contents>>,
}

impl<'c> VersionContents<'c> {
    /// A reader for the versions of a store.
    pub fn new(current: &'c CurrentStore) -> VersionContents<'c> {
        VersionContents {
            current,
            contents: OnceCell::new(),
        }
    }

    /// The content of a version. `None` if it is not available, or too large.
    pub fn read(&self, version: EntityKey) -> Result<Option<Vec<u8>>, Failure> {
        let store = &self.current.store;
        let entity = store.entity(version)?;
        let Some(ident) = entity.ident else {
            return Ok(None);
        };
        if !(0..=MOST as i64).contains(&ident.size) {
            return Ok(None);
        }
        if let Some((Some(digest), held)) = query::known(store, Some(&ident))?
            && held.is_stored()
            && let Some(contents) = self.contents()
        {
            let mut bytes = Vec::new();
            // A content that is damaged or gone is not available; `store verify` finds it.
            let object = contents.read(&digest).ok();
            if let Some(mut object) = object
                && object.read_to_end(&mut bytes).is_ok()
            {
                return Ok(Some(bytes));
            }
        }
        let names = std::iter::once(&entity.path).chain(&entity.aliases);
        for name in names.map(|name| Path::new(OsStr::from_bytes(name))) {
            if let Some(mut file) = query::open_version(name, &ident) {
                let mut bytes = Vec::new();
                return Ok(file.read_to_end(&mut bytes).ok().map(|_| bytes));
            }
        }
        Ok(None)
    }

    /// True if a version is not read because of its size.
    pub fn is_too_large(&self, version: EntityKey) -> bool {
        let entity = self.current.store.entity(version).ok();
        let ident = entity.and_then(|entity| entity.ident);
        ident.is_some_and(|ident| ident.size > MOST as i64)
    }

    /// The store of the versions.
    pub fn current(&self) -> &'c CurrentStore {
        self.current
    }

    fn contents(&self) -> Option<&Contents> {
        let open = || Contents::open(&self.current.home.contents_dir()).ok();
        self.contents.get_or_init(open).as_ref()
    }
}
