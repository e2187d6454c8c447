//! The tar archive of an image.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_files::regular;
use backstory_query::Content;
use backstory_workflow::shell;

use super::{ImageTree, TreeNode, seconds};
use crate::file_contents::content_size;
use crate::{Error, Result};

impl ImageTree<'_> {
    /// Writes a tar archive of the nodes for which `wanted` is true, below `prefix`. All files
    /// belong to root; the user that unpacks them becomes their owner.
    pub fn archive(
        &self,
        out: impl Write,
        prefix: &str,
        wanted: impl Fn(&[u8], &TreeNode<'_>) -> bool,
    ) -> Result<()> {
        let mut tar = tar::Builder::new(out);
        for (path, node) in self.nodes.iter().filter(|(path, node)| wanted(path, node)) {
            self.entry(&mut tar, prefix, path, node)?;
        }
        tar.into_inner()?.flush()?;
        Ok(())
    }

    /// Tells the meter of the view's contents how many bytes the archives of all nodes hold.
    pub fn expect(&self) {
        let sizes = self.nodes.values().map(|node| match node {
            TreeNode::File(content) => content_size(content),
            _ => 0,
        });
        self.view.contents.meter.expect(sizes.sum());
    }

    fn entry(
        &self,
        tar: &mut tar::Builder<impl Write>,
        prefix: &str,
        path: &[u8],
        node: &TreeNode<'_>,
    ) -> Result<()> {
        let name = [prefix.as_bytes(), &path[1..]].concat();
        let name = Path::new(OsStr::from_bytes(&name));
        let mut header = tar::Header::new_gnu();
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(seconds(self.run.summary.started));
        header.set_size(0);
        match node {
            TreeNode::Directory(mode) => {
                header.set_entry_type(tar::EntryType::Directory);
                header.set_mode(*mode);
                tar.append_data(&mut header, name, io::empty())?;
            }
            TreeNode::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_mode(0o777);
                let target = Path::new(OsStr::from_bytes(target));
                tar.append_link(&mut header, name, target)?;
            }
            TreeNode::Loader => {
                let mut file = regular::open(OsStr::from_bytes(path))?;
                header.set_metadata_in_mode(&file.metadata()?, tar::HeaderMode::Deterministic);
                header.set_mode(0o755);
                tar.append_data(&mut header, name, &mut file)?;
            }
            TreeNode::Looked(size, mtime, mode) => {
                header.set_entry_type(tar::EntryType::Regular);
                header.set_mode(mode & 0o7777);
                header.set_size(*size);
                if *mtime != 0 {
                    header.set_mtime(seconds(*mtime));
                }
                tar.append_data(&mut header, name, io::repeat(0).take(*size))?;
            }
            TreeNode::File(content) => {
                header.set_entry_type(tar::EntryType::Regular);
                header.set_mode(content.mode.unwrap_or(0o644) & 0o7777);
                let mut from = self.view.contents.open_metered(content)?;
                let size = match content.ident {
                    Some(ident) => {
                        header.set_mtime(seconds(ident.mtime));
                        u64::try_from(ident.size).unwrap_or_default()
                    }
                    None => return Err(no_size(content)),
                };
                header.set_size(size);
                tar.append_data(&mut header, name, (&mut from).take(size))?;
                // A content is verified at its end only.
                io::copy(&mut from, &mut io::sink())?;
            }
        }
        Ok(())
    }
}

fn no_size(content: &Content) -> Error {
    Error::NoContent {
        path: shell::quote(&content.path),
        why: "which version it was is not known".to_owned(),
        advice: "record again with --contents=lazy",
    }
}
