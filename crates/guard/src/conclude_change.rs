//! Concludes what will come of a call that changes names, lengths or attributes.
//!
//! The checks stand in the kernel's order, so that the errno is right when several apply.

use crate::arguments::NamedPath;
use crate::caller_files::{CallerFiles, Concluded, OK, WRITE, fails};
use crate::conclude_open::open_there;
use crate::mounts::NameAuthority;
use crate::path_resolver::Resolved;
use crate::record_writer::{RecordFields, RecordResult};
use crate::resolved_file::ResolvedFile;
use crate::table::MetadataKind;
use std::sync::OnceLock;

/// The outcome of removing the name of an existing file, as far as rights decide it.
fn remove(
    files: &mut CallerFiles<'_>,
    name: &NamedPath,
    there: &ResolvedFile,
) -> Concluded<RecordResult> {
    if files.readonly(there) {
        return Ok(fails(libc::EROFS));
    }
    if files.resolver.names(files.caller, &there.st, files.now) != NameAuthority::Anyone {
        return Ok(RecordResult::Unknown);
    }
    let rights = files.rights();
    if rights.uid == 0 {
        return Ok(OK);
    }
    Ok(match files.parent(name)? {
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

/// The outcome of removing a directory, as far as its entries decide it.
fn vacant(
    files: &mut CallerFiles<'_>,
    name: &NamedPath,
    there: &ResolvedFile,
) -> Concluded<RecordResult> {
    if there.st.stx_attributes & libc::STATX_ATTR_MOUNT_ROOT as u64 != 0 {
        return Ok(fails(libc::EBUSY));
    }
    if name.dot {
        return Ok(fails(libc::EINVAL));
    }
    if name.inside.ends_with(b"/..") {
        return Ok(fails(libc::ENOTEMPTY));
    }
    let empty = files
        .resolver
        .is_empty(files.caller, &name.inside, files.now)?;
    Ok(match empty {
        Some(true) => OK,
        Some(false) => fails(libc::ENOTEMPTY),
        None => RecordResult::Unknown,
    })
}

/// The file that a call changes. `None` if it is not there: `fields` then has the outcome of the
/// call.
fn existing(
    files: &mut CallerFiles<'_>,
    fields: &mut RecordFields,
    name: &NamedPath,
    follow: bool,
) -> Concluded<Option<ResolvedFile>> {
    match files.look(name, follow)? {
        Resolved::File(there) => Ok(Some(there)),
        Resolved::Error(e) => {
            fields.result = fails(e);
            Ok(None)
        }
    }
}

pub(crate) fn unlink(
    files: &mut CallerFiles<'_>,
    fields: &mut RecordFields,
    name: &NamedPath,
    directory: bool,
) -> Concluded<()> {
    let Some(there) = existing(files, fields, name, false)? else {
        return Ok(());
    };
    fields.ident = Some(there.ident());
    files.removes(&there);
    let removed = remove(files, name, &there)?;
    fields.result = match (there.kind() == libc::S_IFDIR, directory) {
        _ if removed != OK => removed,
        (true, false) => fails(libc::EISDIR),
        (false, true) => fails(libc::ENOTDIR),
        (true, true) => vacant(files, name, &there)?,
        (false, false) => OK,
    };
    Ok(())
}

pub(crate) fn rename(
    files: &mut CallerFiles<'_>,
    fields: &mut RecordFields,
    from: &NamedPath,
    to: &NamedPath,
    flags: u32,
) -> Concluded<()> {
    let Some(source) = existing(files, fields, from, false)? else {
        return Ok(());
    };
    let (parent, verdict) = match files.parent(to)? {
        Ok(parent) => parent,
        Err(e) => {
            fields.result = fails(e);
            return Ok(());
        }
    };
    let target = files.look(to, false)?;
    let removed = remove(files, from, &source)?;
    let directory = source.kind() == libc::S_IFDIR;
    let into_itself = to
        .inside
        .strip_prefix(&from.inside[..])
        .is_some_and(|rest| rest.starts_with(b"/"))
        && directory;
    fields.result = match target {
        _ if source.st.stx_mnt_id != parent.st.stx_mnt_id => fails(libc::EXDEV),
        _ if into_itself => fails(libc::EINVAL),
        Resolved::File(target) => {
            fields.ident = Some(target.ident());
            files.removes(&target);
            match target.kind() == libc::S_IFDIR {
                _ if flags & libc::RENAME_NOREPLACE != 0 => fails(libc::EEXIST),
                _ if removed != OK => removed,
                into => match remove(files, to, &target)? {
                    OK if flags & libc::RENAME_EXCHANGE != 0 => OK,
                    OK if directory && !into => fails(libc::ENOTDIR),
                    OK if into && !directory => fails(libc::EISDIR),
                    OK if into => vacant(files, to, &target)?,
                    verdict => verdict,
                },
            }
        }
        Resolved::Error(_) if flags & libc::RENAME_EXCHANGE != 0 => fails(libc::ENOENT),
        Resolved::Error(_) if removed != OK => removed,
        Resolved::Error(_) => verdict,
    };
    Ok(())
}

pub(crate) fn link(
    files: &mut CallerFiles<'_>,
    fields: &mut RecordFields,
    from: &NamedPath,
    to: &NamedPath,
    flags: u32,
) -> Concluded<()> {
    let follow = flags & libc::AT_SYMLINK_FOLLOW as u32 != 0 || from.itself;
    let Some(source) = existing(files, fields, from, follow)? else {
        return Ok(());
    };
    fields.ident = Some(source.ident());
    fields.result = match files.look(to, false)? {
        Resolved::File(_) => fails(libc::EEXIST),
        Resolved::Error(_) => match files.parent(to)? {
            Err(e) => fails(e),
            Ok((_, verdict)) if verdict == fails(libc::EROFS) => verdict,
            Ok((parent, _)) if parent.st.stx_mnt_id != source.st.stx_mnt_id => fails(libc::EXDEV),
            Ok(_) if !may_link(files, &source) => fails(libc::EPERM),
            Ok((_, verdict)) if verdict != OK => verdict,
            Ok(_) if source.kind() == libc::S_IFDIR => fails(libc::EPERM),
            Ok(_) => OK,
        },
    };
    Ok(())
}

/// True if the kernel's protection of hard links allows a new name. The caller must own the file,
/// or the file must be a plain one that the caller may read and write.
fn may_link(files: &CallerFiles<'_>, source: &ResolvedFile) -> bool {
    static PROTECTED: OnceLock<bool> = OnceLock::new();
    let read = || {
        std::fs::read("/proc/sys/fs/protected_hardlinks").is_ok_and(|text| text.starts_with(b"1"))
    };
    let rights = files.rights();
    let plain = source.kind() == libc::S_IFREG && source.st.stx_mode & 0o4000 == 0;
    [0, source.st.stx_uid].contains(&rights.uid)
        || plain && rights.permit(&source.st, 4 | WRITE)
        || !PROTECTED.get_or_init(read)
}

pub(crate) fn truncate(
    files: &mut CallerFiles<'_>,
    fields: &mut RecordFields,
    name: &NamedPath,
) -> Concluded<()> {
    fields.result = match files.look(name, true)? {
        Resolved::Error(e) => fails(e),
        Resolved::File(there) => {
            fields.ident = Some(there.ident());
            match there.kind() {
                libc::S_IFDIR => fails(libc::EISDIR),
                libc::S_IFREG => open_there(files, &there, libc::O_WRONLY, false),
                _ => fails(libc::EINVAL),
            }
        }
    };
    Ok(())
}

pub(crate) fn meta(
    files: &mut CallerFiles<'_>,
    fields: &mut RecordFields,
    what: MetadataKind,
    name: &NamedPath,
    follow: bool,
) -> Concluded<()> {
    fields.result = match files.look(name, follow)? {
        Resolved::Error(e) => fails(e),
        Resolved::File(there) => {
            fields.ident = Some(there.ident());
            let rights = files.rights();
            let owner = [0, there.st.stx_uid].contains(&rights.uid);
            if files.readonly(&there) {
                fails(libc::EROFS)
            } else if files.resolver.names(files.caller, &there.st, files.now)
                != NameAuthority::Anyone
            {
                RecordResult::Unknown
            } else if owner && (what != MetadataKind::Owner || rights.uid == 0) {
                OK
            } else if matches!(what, MetadataKind::Mode) {
                fails(libc::EPERM)
            } else {
                RecordResult::Unknown
            }
        }
    };
    Ok(())
}
