//! Finds out what a call will read or change, before it is logged.

use crate::arguments::NamedPath;
use crate::caller::Caller;
use crate::caller_files::PriorLookup;
use crate::decoded_call::DecodedCall;
use crate::guard_state::GuardState;
use crate::hooks::ChangeKind;
use crate::path_resolver::{PathResolver, Resolved};
use crate::resolved_file::ResolvedFile;
use backstory_files::Ident;

/// The effect of a call, as far as it was looked up before the call is logged.
#[derive(Default)]
pub(crate) struct PendingEffect {
    /// A content that is lost unless it is preserved.
    pub(crate) change: Option<PendingChange>,
    /// The result of the look-up of the file.
    pub(crate) prior: Option<PriorLookup>,
}

/// A change of a file that the guard has seen before it happens.
pub(crate) struct PendingChange {
    pub(crate) caller: Caller,
    pub(crate) target: ChangeTarget,
    /// The file, where it could be looked up when the call came.
    pub(crate) file: Option<TargetFile>,
}

/// The file that a name was found to lead to.
#[derive(Clone, Copy)]
pub(crate) struct TargetFile {
    /// The low half of the device's number.
    pub(crate) device: u32,
    pub(crate) inode: u64,
    /// The file is a symbolic link, which leads to another file.
    pub(crate) link: bool,
}

impl TargetFile {
    pub(crate) fn of(ident: &Ident) -> TargetFile {
        TargetFile {
            device: ident.dev as u32,
            inode: ident.ino,
            link: ident.mode & libc::S_IFMT == libc::S_IFLNK,
        }
    }
}

/// Which file a call will change, and how.
pub(crate) struct ChangeTarget {
    pub(crate) name: NamedPath,
    /// A symbolic link at the end of the name is followed.
    pub(crate) follow: bool,
    pub(crate) kind: ChangeKind,
}

/// Finds the content that a call will change. Empty where the run preserves no contents.
pub(crate) fn pending_effect(
    state: &GuardState,
    resolver: &mut PathResolver,
    caller: &Caller,
    decoded: &DecodedCall,
    time: u64,
) -> PendingEffect {
    let (Some(preserver), Some((name, follow, mut kind))) =
        (state.hooks.preserver(), target(decoded))
    else {
        return PendingEffect::default();
    };
    let resolved = resolver.look(caller, &name.inside, follow, time).ok();
    // A file that is not cached may exist.
    let (mut matters, mut file) = (resolved.is_none(), None);
    if let Some(Resolved::File(found)) = &resolved {
        let ident = found.ident();
        let first = preserver.note_change(ident.dev as u32, ident.ino);
        file = file_at_stake(found, kind);
        matters = file.is_some();
        if kind == ChangeKind::Part && !first {
            kind = ChangeKind::Write;
        }
    }
    let change = matters.then(|| PendingChange {
        caller: caller.clone(),
        target: ChangeTarget {
            name: name.clone(),
            follow,
            kind,
        },
        file,
    });
    let prior = resolved.map(|resolved| PriorLookup {
        inside: name.inside.clone(),
        follow,
        resolved,
    });
    PendingEffect { change, prior }
}

/// The file, if it has a content to lose, or is a link that a read may have followed.
fn file_at_stake(file: &ResolvedFile, kind: ChangeKind) -> Option<TargetFile> {
    let matters = match file.kind() {
        libc::S_IFREG => file.st.stx_size > 0,
        libc::S_IFLNK => kind == ChangeKind::Remove,
        _ => false,
    };
    matters.then(|| TargetFile::of(&file.ident()))
}

/// The name of the file whose content a call changes, whether a link at its end is followed, and
/// the change.
fn target(decoded: &DecodedCall) -> Option<(&NamedPath, bool, ChangeKind)> {
    Some(match decoded {
        DecodedCall::Open { name, flags, .. } => {
            (name, flags & libc::O_NOFOLLOW == 0, opened(*flags)?)
        }
        DecodedCall::Truncate { name } => (name, true, ChangeKind::Part),
        DecodedCall::Unlink {
            name,
            directory: false,
        } => (name, false, ChangeKind::Remove),
        DecodedCall::Rename { to, flags: 0, .. } => (to, false, ChangeKind::Remove),
        _ => return None,
    })
}

/// True if the call may read a file, or change what names mean that were read. The preserver then
/// has to look at what was read before the next change.
///
/// The recorder's `tell` says the same of its operations. A call that makes a new name or changes
/// attributes leaves every name that was read as it is. A later read by such a name is noted
/// itself.
pub(crate) fn may_read(decoded: &DecodedCall) -> bool {
    match decoded {
        DecodedCall::Open { flags, .. } => {
            flags & (libc::O_ACCMODE | libc::O_PATH | libc::O_DIRECTORY) == 0
        }
        DecodedCall::Exec { .. }
        | DecodedCall::Rename { .. }
        | DecodedCall::Chroot { .. }
        | DecodedCall::Pivot { .. }
        | DecodedCall::Mount { .. }
        | DecodedCall::Namespace { .. }
        | DecodedCall::Opaque(_) => true,
        DecodedCall::Truncate { .. }
        | DecodedCall::Unlink { .. }
        | DecodedCall::Look { .. }
        | DecodedCall::Meta { .. }
        | DecodedCall::Link { .. }
        | DecodedCall::Symlink { .. }
        | DecodedCall::Mkdir { .. }
        | DecodedCall::Mknod { .. }
        | DecodedCall::Chdir { .. }
        | DecodedCall::Address { .. } => false,
    }
}

/// How opening an existing file with these flags changes it.
fn opened(flags: i32) -> Option<ChangeKind> {
    let new = libc::O_CREAT | libc::O_EXCL;
    let writes = flags & (libc::O_ACCMODE | libc::O_TRUNC) != 0;
    if flags & libc::O_PATH != 0
        || flags & new == new
        || flags & libc::O_TMPFILE == libc::O_TMPFILE
        || !writes
    {
        return None;
    }
    Some(match flags & libc::O_ACCMODE {
        _ if flags & libc::O_TRUNC != 0 => ChangeKind::Write,
        libc::O_WRONLY => ChangeKind::Part,
        _ => ChangeKind::Update,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller_files::CallerFiles;
    use crate::callers::Callers;
    use crate::mounts::MountTable;
    use crate::table::MetadataKind;
    use backstory_sys as sys;
    use std::sync::Arc;

    fn named(path: &[u8]) -> NamedPath {
        NamedPath {
            inside: path.to_vec(),
            ..NamedPath::default()
        }
    }

    #[test]
    fn a_prior_lookup_is_used_once_and_for_its_own_path_only() {
        let callers = Callers::new().unwrap();
        let caller = callers.meet(sys::gettid(), sys::clock::counter()).unwrap();
        let mut cx = CallerFiles {
            resolver: &mut PathResolver::new(MountTable::new(Arc::default()), false),
            callers: &callers,
            caller: &caller,
            now: sys::clock::counter(),
            since: None,
            prior: Some(PriorLookup {
                inside: b"/no such file".to_vec(),
                follow: true,
                resolved: Resolved::Error(libc::EPERM),
            }),
            readonly_mount: None,
            removed_link: None,
        };
        let mut errno = |path: &[u8], follow| match cx.look(&named(path), follow) {
            Ok(Resolved::Error(errno)) => errno,
            _ => 0,
        };
        assert_eq!(errno(b"/nor this one", true), libc::ENOENT);
        assert_eq!(
            errno(b"/no such file", false),
            libc::ENOENT,
            "not what it leads to"
        );
        assert_eq!(errno(b"/no such file", true), libc::EPERM);
        assert_eq!(errno(b"/no such file", true), libc::ENOENT, "asked anew");
    }

    #[test]
    fn a_rename_counts_as_a_possible_read_and_a_chmod_does_not() {
        let (name, from, to) = (named(b"/a"), named(b"/a"), named(b"/b"));
        let flags = 0;
        assert!(may_read(&DecodedCall::Rename { from, to, flags }));
        let (what, link) = (MetadataKind::Mode, false);
        assert!(!may_read(&DecodedCall::Meta { what, name, link }));
    }
}
