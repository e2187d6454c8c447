//! What will come of a call that changes names, lengths or attributes, as far as the file system tells before it happens.
//!
//! The checks stand in the kernel's order, so that the errno is right when several apply.

use super::conclude::{Concluded, Context, OK, WRITE, fails};
use super::decode::Named;
use super::mounts::Names;
use super::record_writer::{Fields, Result as Outcome};
use super::resolve::{Looked, There};
use super::table::Changed;
use std::sync::OnceLock;

impl Context<'_> {
    /// What comes of taking away the name of a file that is there, as far as rights go.
    fn remove(&mut self, name: &Named, there: &There) -> Concluded<Outcome> {
        if self.readonly(there) {
            return Ok(fails(libc::EROFS));
        }
        if self.resolver.names(self.caller, &there.st, self.now) != Names::Anyone {
            return Ok(Outcome::Unknown);
        }
        let rights = self.rights();
        if rights.uid == 0 {
            return Ok(OK);
        }
        Ok(match self.parent(name)? {
            Err(e) => fails(e),
            Ok((parent, OK)) => {
                let sticky = parent.st.stx_mode & 0o1000 != 0;
                let own = [there.st.stx_uid, parent.st.stx_uid].contains(&rights.uid);
                if sticky && !own {
                    fails(libc::EPERM)
                } else {
                    OK
                }
            }
            Ok((_, failed)) => failed,
        })
    }

    /// What comes of taking away a directory, as far as what is in it goes.
    fn vacant(&mut self, name: &Named, there: &There) -> Concluded<Outcome> {
        if there.st.stx_attributes & libc::STATX_ATTR_MOUNT_ROOT as u64 != 0 {
            return Ok(fails(libc::EBUSY));
        }
        if name.dot {
            return Ok(fails(libc::EINVAL));
        }
        if name.inside.ends_with(b"/..") {
            return Ok(fails(libc::ENOTEMPTY));
        }
        let empty = self
            .resolver
            .is_empty(self.caller, &name.inside, self.now)?;
        Ok(match empty {
            Some(true) => OK,
            Some(false) => fails(libc::ENOTEMPTY),
            None => Outcome::Unknown,
        })
    }

    /// What a call changes; none where it is not there, which is then what came of the call.
    fn existing(
        &mut self,
        fields: &mut Fields,
        name: &Named,
        follow: bool,
    ) -> Concluded<Option<There>> {
        match self.look(name, follow)? {
            Looked::There(there) => Ok(Some(there)),
            Looked::Error(e) => {
                fields.result = fails(e);
                Ok(None)
            }
        }
    }

    pub(super) fn unlink(
        &mut self,
        fields: &mut Fields,
        name: &Named,
        directory: bool,
    ) -> Concluded<()> {
        let Some(there) = self.existing(fields, name, false)? else {
            return Ok(());
        };
        fields.ident = Some(there.ident());
        let removed = self.remove(name, &there)?;
        fields.result = match (there.kind() == libc::S_IFDIR, directory) {
            _ if removed != OK => removed,
            (true, false) => fails(libc::EISDIR),
            (false, true) => fails(libc::ENOTDIR),
            (true, true) => self.vacant(name, &there)?,
            (false, false) => OK,
        };
        Ok(())
    }

    pub(super) fn rename(
        &mut self,
        fields: &mut Fields,
        from: &Named,
        to: &Named,
        flags: u32,
    ) -> Concluded<()> {
        let Some(source) = self.existing(fields, from, false)? else {
            return Ok(());
        };
        let (parent, verdict) = match self.parent(to)? {
            Ok(parent) => parent,
            Err(e) => {
                fields.result = fails(e);
                return Ok(());
            }
        };
        let target = self.look(to, false)?;
        let removed = self.remove(from, &source)?;
        let directory = source.kind() == libc::S_IFDIR;
        let into_itself = to
            .inside
            .strip_prefix(&from.inside[..])
            .is_some_and(|rest| rest.starts_with(b"/"))
            && directory;
        fields.result = match target {
            _ if source.st.stx_mnt_id != parent.st.stx_mnt_id => fails(libc::EXDEV),
            _ if into_itself => fails(libc::EINVAL),
            Looked::There(target) => {
                fields.ident = Some(target.ident());
                match target.kind() == libc::S_IFDIR {
                    _ if flags & libc::RENAME_NOREPLACE != 0 => fails(libc::EEXIST),
                    _ if removed != OK => removed,
                    into => match self.remove(to, &target)? {
                        OK if flags & libc::RENAME_EXCHANGE != 0 => OK,
                        OK if directory && !into => fails(libc::ENOTDIR),
                        OK if into && !directory => fails(libc::EISDIR),
                        OK if into => self.vacant(to, &target)?,
                        verdict => verdict,
                    },
                }
            }
            Looked::Error(_) if flags & libc::RENAME_EXCHANGE != 0 => fails(libc::ENOENT),
            Looked::Error(_) if removed != OK => removed,
            Looked::Error(_) => verdict,
        };
        Ok(())
    }

    pub(super) fn link(
        &mut self,
        fields: &mut Fields,
        from: &Named,
        to: &Named,
        flags: u32,
    ) -> Concluded<()> {
        let follow = flags & libc::AT_SYMLINK_FOLLOW as u32 != 0 || from.itself;
        let Some(source) = self.existing(fields, from, follow)? else {
            return Ok(());
        };
        fields.ident = Some(source.ident());
        fields.result = match self.look(to, false)? {
            Looked::There(_) => fails(libc::EEXIST),
            Looked::Error(_) => match self.parent(to)? {
                Err(e) => fails(e),
                Ok((_, verdict)) if verdict == fails(libc::EROFS) => verdict,
                Ok((parent, _)) if parent.st.stx_mnt_id != source.st.stx_mnt_id => {
                    fails(libc::EXDEV)
                }
                Ok(_) if !self.may_link(&source) => fails(libc::EPERM),
                Ok((_, verdict)) if verdict != OK => verdict,
                Ok(_) if source.kind() == libc::S_IFDIR => fails(libc::EPERM),
                Ok(_) => OK,
            },
        };
        Ok(())
    }

    /// The kernel's protection of hard links: only the owner, or who may read and write a plain file, gives it another name.
    fn may_link(&self, source: &There) -> bool {
        static PROTECTED: OnceLock<bool> = OnceLock::new();
        let read = || {
            std::fs::read("/proc/sys/fs/protected_hardlinks")
                .is_ok_and(|text| text.starts_with(b"1"))
        };
        let rights = self.rights();
        let plain = source.kind() == libc::S_IFREG && source.st.stx_mode & 0o4000 == 0;
        [0, source.st.stx_uid].contains(&rights.uid)
            || plain && rights.permit(&source.st, 4 | WRITE)
            || !PROTECTED.get_or_init(read)
    }

    pub(super) fn truncate(&mut self, fields: &mut Fields, name: &Named) -> Concluded<()> {
        fields.result = match self.look(name, true)? {
            Looked::Error(e) => fails(e),
            Looked::There(there) => {
                fields.ident = Some(there.ident());
                match there.kind() {
                    libc::S_IFDIR => fails(libc::EISDIR),
                    libc::S_IFREG => self.open_there(&there, libc::O_WRONLY, false),
                    _ => fails(libc::EINVAL),
                }
            }
        };
        Ok(())
    }

    pub(super) fn meta(
        &mut self,
        fields: &mut Fields,
        what: Changed,
        name: &Named,
        follow: bool,
    ) -> Concluded<()> {
        fields.result = match self.look(name, follow)? {
            Looked::Error(e) => fails(e),
            Looked::There(there) => {
                fields.ident = Some(there.ident());
                let rights = self.rights();
                let owner = [0, there.st.stx_uid].contains(&rights.uid);
                if self.readonly(&there) {
                    fails(libc::EROFS)
                } else if self.resolver.names(self.caller, &there.st, self.now) != Names::Anyone {
                    Outcome::Unknown
                } else if owner && (what != Changed::Owner || rights.uid == 0) {
                    OK
                } else if matches!(what, Changed::Mode) {
                    fails(libc::EPERM)
                } else {
                    Outcome::Unknown
                }
            }
        };
        Ok(())
    }
}
