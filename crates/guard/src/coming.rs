//! What a call that the guard has seen will read or change, before it is logged.

use super::ask::Ask;
use super::caller::Caller;
use super::conclude::Ahead;
use super::decode::Named;
use super::hooks::ChangeKind;
use super::receiver::Worker;
use super::resolve::{Looked, There};
use backstory_arena::RecordSink;
use backstory_files::Ident;

/// What a call that has been seen will do, as far as it was looked at before it is logged.
#[derive(Default)]
pub(super) struct Coming {
    /// A content that is lost unless it is kept.
    pub(super) lost: Option<Seen>,
    /// What was found of the file's name.
    pub(super) looked: Option<Ahead>,
}

/// A call that the guard has seen and that will change a file.
pub(super) struct Seen {
    pub(super) caller: Caller,
    pub(super) target: Target,
    /// What the target is, where that could be looked at when the call came.
    pub(super) file: Option<File>,
}

/// What a name was found to be.
#[derive(Clone, Copy)]
pub(super) struct File {
    /// The low half of its number.
    pub(super) device: u32,
    pub(super) inode: u64,
    /// A symbolic link, which leads elsewhere.
    pub(super) link: bool,
}

impl File {
    pub(super) fn of(ident: &Ident) -> File {
        File {
            device: ident.dev as u32,
            inode: ident.ino,
            link: ident.mode & libc::S_IFMT == libc::S_IFLNK,
        }
    }
}

/// What a call will change.
pub(super) struct Target {
    pub(super) name: Named,
    pub(super) follow: bool,
    pub(super) kind: ChangeKind,
}

impl<S: RecordSink> Worker<S> {
    /// The file whose content is lost by a call unless it is kept, where contents are kept.
    pub(super) fn about_to_lose(&mut self, caller: &Caller, ask: &Ask, time: u64) -> Coming {
        let (Some(keep), Some((name, follow, mut kind))) = (self.common.hooks.keep(), target(ask))
        else {
            return Coming::default();
        };
        let looked = self.resolver.look(caller, &name.inside, follow, time).ok();
        // What is not cached is there, for all we know.
        let (mut matters, mut file) = (looked.is_none(), None);
        if let Some(Looked::There(there)) = &looked {
            let first = keep.changes(there.ident().dev as u32, there.ident().ino);
            file = at_stake(there, kind);
            matters = file.is_some();
            if kind == ChangeKind::Part && !first {
                kind = ChangeKind::Write;
            }
        }
        let lost = matters.then(|| Seen {
            caller: caller.clone(),
            target: Target {
                name: name.clone(),
                follow,
                kind,
            },
            file,
        });
        let looked = looked.map(|looked| Ahead {
            inside: name.inside.clone(),
            follow,
            looked,
        });
        Coming { lost, looked }
    }
}

/// There is a content to lose, or what was read may have been found by way of it.
pub(super) fn at_stake(there: &There, kind: ChangeKind) -> Option<File> {
    let matters = match there.kind() {
        libc::S_IFREG => there.st.stx_size > 0,
        libc::S_IFLNK => kind == ChangeKind::Remove,
        _ => false,
    };
    matters.then(|| File::of(&there.ident()))
}

/// What a call that the guard has seen will change, if it does: what names it, whether that is followed, and how.
pub(super) fn target(ask: &Ask) -> Option<(&Named, bool, ChangeKind)> {
    Some(match ask {
        Ask::Open { name, flags, .. } => (name, flags & libc::O_NOFOLLOW == 0, opened(*flags)?),
        Ask::Truncate { name } => (name, true, ChangeKind::Part),
        Ask::Unlink {
            name,
            directory: false,
        } => (name, false, ChangeKind::Remove),
        Ask::Rename { to, flags: 0, .. } => (to, false, ChangeKind::Remove),
        _ => return None,
    })
}

/// The call may read a file, or change what names mean that were read: what was read has to be looked at before something changes.
/// The recorder's `tell` says the same of its operations. Who makes a name where none was, or changes a file's attributes, leaves
/// every name that was read as it is; and what is read by a new name, or in a new directory, is told then.
pub(super) fn may_read(ask: &Ask) -> bool {
    match ask {
        Ask::Open { flags, .. } => {
            flags & (libc::O_ACCMODE | libc::O_PATH | libc::O_DIRECTORY) == 0
        }
        Ask::Exec { .. }
        | Ask::Rename { .. }
        | Ask::Chroot { .. }
        | Ask::Pivot { .. }
        | Ask::Mount { .. }
        | Ask::Namespace { .. }
        | Ask::Opaque(_) => true,
        Ask::Truncate { .. }
        | Ask::Unlink { .. }
        | Ask::Look { .. }
        | Ask::Meta { .. }
        | Ask::Link { .. }
        | Ask::Symlink { .. }
        | Ask::Mkdir { .. }
        | Ask::Mknod { .. }
        | Ask::Chdir { .. }
        | Ask::Address { .. } => false,
    }
}

/// What opening an existing file like this does to it.
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
    use super::super::caller::Callers;
    use super::super::conclude::Context;
    use super::super::mounts::Mounts;
    use super::super::resolve::Resolver;
    use super::super::table::Changed;
    use super::*;
    use backstory_sys::kernel as sys;
    use std::sync::Arc;

    fn named(path: &[u8]) -> Named {
        Named {
            inside: path.to_vec(),
            ..Named::default()
        }
    }

    #[test]
    fn what_was_found_of_a_name_is_the_answer_once_and_for_that_name_alone() {
        let callers = Callers::new().unwrap();
        let caller = callers.meet(sys::gettid(), sys::now()).unwrap();
        let mut cx = Context {
            resolver: &mut Resolver::new(Mounts::new(Arc::default()), false),
            callers: &callers,
            caller: &caller,
            now: sys::now(),
            since: None,
            ahead: Some(Ahead {
                inside: b"/no such file".to_vec(),
                follow: true,
                looked: Looked::Error(libc::EPERM),
            }),
            asked: None,
        };
        let mut errno = |path: &[u8], follow| match cx.look(&named(path), follow) {
            Ok(Looked::Error(errno)) => errno,
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
    fn only_who_reads_or_moves_names_makes_everybody_ask_again() {
        let (name, from, to) = (named(b"/a"), named(b"/a"), named(b"/b"));
        let flags = 0;
        assert!(may_read(&Ask::Rename { from, to, flags }));
        let (what, link) = (Changed::Mode, false);
        assert!(!may_read(&Ask::Meta { what, name, link }));
    }
}
