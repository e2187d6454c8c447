//! Concludes what will come of a call that opens, executes, makes or connects to a file, or changes
//! the directory.

use crate::arguments::NamedPath;
use crate::caller::FileSystemView;
use crate::caller_files::{CallerFiles, Concluded, EXECUTE, MEMORY_DEVICES, OK, WRITE, fails};
use crate::conclusion::Conclusion;
use crate::own_names::is_own;
use crate::path_resolver::{NotCached, Resolved};
use crate::record_writer::{RecordFields, RecordResult};
use crate::resolved_file::ResolvedFile;

/// The outcome of making a new file.
pub(crate) fn create(files: &mut CallerFiles<'_>, name: &NamedPath) -> Concluded<RecordResult> {
    if let Resolved::File(_) = files.look(name, false)? {
        return Ok(fails(libc::EEXIST));
    }
    Ok(files
        .parent(name)?
        .map_or_else(fails, |(_, verdict)| verdict))
}

/// True if the file has to be identified now, because its name may mean another file later.
pub(crate) fn fleeting(files: &CallerFiles<'_>, name: &NamedPath) -> bool {
    is_own(&name.inside) || matches!(&files.caller.view, FileSystemView::Other(root) if !root.ours)
}

/// True if the file was changed or made after the deferred call began.
pub(crate) fn after(files: &CallerFiles<'_>, there: &ResolvedFile) -> bool {
    files
        .since
        .is_some_and(|since| there.ident().ctime >= since)
}

pub(crate) fn open(
    files: &mut CallerFiles<'_>,
    mut fields: RecordFields,
    name: &NamedPath,
    flags: i32,
) -> Concluded<Conclusion> {
    let temporary = flags & libc::O_TMPFILE == libc::O_TMPFILE;
    let exclusive = !temporary && flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0;
    let follow = flags & libc::O_NOFOLLOW == 0 && !exclusive;
    let mut may_wait = false;
    match files.look(name, follow)? {
        // The file may be the one that this call made, or a later one.
        Resolved::File(there)
            if after(files, &there) && (exclusive || flags & libc::O_CREAT == 0) =>
        {
            fields.ident = fleeting(files, name).then(|| there.ident());
        }
        Resolved::File(_) if exclusive => fields.result = fails(libc::EEXIST),
        Resolved::File(there) => {
            fields.result = open_there(files, &there, flags, temporary);
            let writes =
                flags & (libc::O_ACCMODE | libc::O_TRUNC) != 0 && flags & libc::O_PATH == 0;
            if !temporary && (writes && !files.resolver.waits() || fleeting(files, name)) {
                fields.ident = Some(there.ident());
            }
            may_wait = !matches!(there.kind(), libc::S_IFREG | libc::S_IFDIR);
        }
        Resolved::Error(libc::ENOENT) if flags & libc::O_CREAT != 0 && !temporary => {
            fields.result = files
                .parent(name)?
                .map_or_else(fails, |(_, verdict)| verdict);
        }
        Resolved::Error(e) => fields.result = fails(e),
    }
    Ok(Conclusion {
        fields,
        directory: None,
        removed_link: None,
        may_wait,
    })
}

pub(crate) fn open_there(
    files: &mut CallerFiles<'_>,
    there: &ResolvedFile,
    flags: i32,
    temporary: bool,
) -> RecordResult {
    let kind = there.kind();
    if flags & libc::O_DIRECTORY != 0 && kind != libc::S_IFDIR {
        return fails(libc::ENOTDIR);
    }
    if flags & libc::O_PATH != 0 {
        return OK;
    }
    let wanted = match flags & libc::O_ACCMODE {
        libc::O_RDONLY if flags & libc::O_TRUNC != 0 => 4 | WRITE,
        libc::O_RDONLY => 4,
        libc::O_WRONLY => WRITE,
        _ => 4 | WRITE,
    };
    let changes = wanted & WRITE != 0 && matches!(kind, libc::S_IFREG | libc::S_IFDIR);
    if kind == libc::S_IFLNK {
        fails(libc::ELOOP)
    } else if kind == libc::S_IFDIR && !temporary && (changes || flags & libc::O_CREAT != 0) {
        fails(libc::EISDIR)
    } else if !files.may(&there.st, wanted) {
        fails(libc::EACCES)
    } else if kind == libc::S_IFSOCK {
        fails(libc::ENXIO)
    } else if changes && files.readonly(there) {
        fails(libc::EROFS)
    } else if kind == libc::S_IFCHR
        && !matches!(there.st.stx_rdev_major, MEMORY_DEVICES | 136..=143)
    {
        // `/dev/tty` and others may still fail with `ENXIO`.
        RecordResult::Unknown
    } else {
        OK
    }
}

pub(crate) fn exec(files: &mut CallerFiles<'_>, name: &NamedPath) -> Concluded<RecordResult> {
    Ok(match files.look(name, true)? {
        Resolved::Error(e) => fails(e),
        Resolved::File(there)
            if there.kind() != libc::S_IFREG || !files.may(&there.st, EXECUTE) =>
        {
            fails(libc::EACCES)
        }
        Resolved::File(_) => RecordResult::Unknown,
    })
}

/// The outcome of connecting to a path. Whether a process listens there cannot be seen.
pub(crate) fn connect(files: &mut CallerFiles<'_>, name: &NamedPath) -> Concluded<RecordResult> {
    Ok(match files.look(name, true)? {
        Resolved::Error(e) => fails(e),
        Resolved::File(there) if !files.may(&there.st, WRITE) => fails(libc::EACCES),
        Resolved::File(there) if there.kind() != libc::S_IFSOCK => fails(libc::ECONNREFUSED),
        Resolved::File(_) => RecordResult::Unknown,
    })
}

/// The directory that a successful `chdir` leads to.
pub(crate) fn chdir(
    files: &mut CallerFiles<'_>,
    fields: &mut RecordFields,
    name: &NamedPath,
) -> Concluded<Option<Vec<u8>>> {
    if name.inside.is_empty() {
        return Err(NotCached);
    }
    let there = match files
        .resolver
        .look_carefully(files.caller, &name.inside, true, files.now)?
    {
        Resolved::File(there) => there,
        Resolved::Error(e) => {
            fields.result = fails(e);
            return Ok(None);
        }
    };
    fields.result = if there.kind() != libc::S_IFDIR {
        fails(libc::ENOTDIR)
    } else if !files.may(&there.st, EXECUTE) {
        fails(libc::EACCES)
    } else {
        OK
    };
    Ok(match &files.caller.view {
        FileSystemView::Own => there.path(),
        FileSystemView::Other(root) if root.ours => there.path(),
        FileSystemView::Other(_) => None,
    })
}
