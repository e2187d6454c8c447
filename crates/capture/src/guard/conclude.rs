//! What will come of a call, concluded from the file system before it happens.
//!
//! The guard sees an attempt, never its result. A conclusion is drawn where the file system leaves no doubt; elsewhere the
//! outcome stays unknown, which later makes a `possible` edge.

use super::ask::Ask;
use super::caller::{Caller, Callers, Rights, View};
use super::decode::Named;
use super::resolve::{Looked, NotCached, Resolver, There, is_own};
use super::slots::{Fields, Result as Outcome};
use super::table::{Changed, LookUp, Peer};
use backstory_abi::{F_CUT, META_ATTR, META_MODE, META_OWNER, META_TIMES, op};
use std::sync::OnceLock;

/// What a conclusion is drawn with.
pub struct Context<'a> {
    /// Looks up paths.
    pub resolver: &'a mut Resolver,
    /// Everyone.
    pub callers: &'a Callers,
    /// Who asks.
    pub caller: &'a Caller,
    /// When.
    pub now: u64,
    /// If it is looked at afterwards: when the call was, in ns since 1970.
    pub since: Option<i64>,
}

/// A conclusion: the slot's fields, and what the file is.
pub struct Conclusion {
    /// Fields of the slot.
    pub fields: Fields,
    /// The directory after a `chdir`.
    pub directory: Option<Vec<u8>>,
    /// Opening it may wait for someone (a FIFO, a device), so that a signal restarts the call and it is notified again.
    pub may_wait: bool,
}

type Concluded<T> = Result<T, NotCached>;

const OK: Outcome = Outcome::Predicted(0);

fn fails(errno: i32) -> Outcome {
    Outcome::Predicted(-errno)
}

impl Ask {
    /// Concludes what comes of it. `NotCached` is returned only for opens and look-ups, whose answer can come later; for a call
    /// that changes something, later is too late, and its outcome is unknown.
    pub fn conclude(&self, cx: &mut Context<'_>) -> Concluded<Conclusion> {
        let mut fields = self.fields();
        let end = |fields, directory| {
            Ok(Conclusion {
                fields,
                directory,
                may_wait: self.may_wait(),
            })
        };
        if let Some(name) = self.names().into_iter().flatten().find(|name| name.cut) {
            fields.flags |= F_CUT;
            fields.fd = name.dir;
            fields.result = fails(libc::ENAMETOOLONG);
            return end(fields, None);
        }
        match self {
            Ask::Open { name, flags, .. } => return cx.open(fields, name, *flags),
            Ask::Look { name, link, .. } => {
                fields.result = match cx.look(name, !link)? {
                    Looked::There(_) => OK,
                    Looked::Error(e) => fails(e),
                };
                return end(fields, None);
            }
            Ask::Chdir { name } => {
                let directory = cx.chdir(&mut fields, name).ok().flatten();
                return end(fields, directory);
            }
            _ => {}
        }
        if !cx.resolver.waits() {
            // Not cached: the outcome stays as it is, unknown.
            let _ = self.conclude_change(cx, &mut fields);
        }
        end(fields, None)
    }

    /// Nothing concluded.
    pub fn unknown(&self) -> Conclusion {
        Conclusion {
            fields: self.fields(),
            directory: None,
            may_wait: false,
        }
    }

    fn conclude_change(&self, cx: &mut Context<'_>, fields: &mut Fields) -> Concluded<()> {
        match self {
            Ask::Exec { name, .. } => fields.result = cx.exec(name)?,
            Ask::Rename { from, to, flags } => cx.rename(fields, from, to, *flags)?,
            Ask::Link { from, to, flags } => cx.link(fields, from, to, *flags)?,
            Ask::Symlink { name, .. } | Ask::Mkdir { name, .. } | Ask::Mknod { name, .. } => {
                fields.result = cx.create(name)?;
            }
            Ask::Unlink { name, directory } => cx.unlink(fields, name, *directory)?,
            Ask::Truncate { name } => cx.truncate(fields, name)?,
            Ask::Meta { what, name, link } => cx.meta(fields, *what, name, !link)?,
            Ask::Address { name: Some(name), .. } => fields.result = cx.connect(name)?,
            _ => {}
        }
        Ok(())
    }

    /// The paths it names.
    pub fn names(&self) -> [Option<&Named>; 2] {
        match self {
            Ask::Open { name, .. }
            | Ask::Exec { name, .. }
            | Ask::Symlink { name, .. }
            | Ask::Unlink { name, .. }
            | Ask::Mkdir { name, .. }
            | Ask::Mknod { name, .. }
            | Ask::Truncate { name }
            | Ask::Meta { name, .. }
            | Ask::Look { name, .. }
            | Ask::Chdir { name }
            | Ask::Chroot { name } => [Some(name), None],
            Ask::Rename { from, to, .. } | Ask::Link { from, to, .. } => [Some(from), Some(to)],
            Ask::Pivot { new, old } => [Some(new), Some(old)],
            Ask::Mount { target, .. } => [Some(target), None],
            Ask::Namespace { .. } | Ask::Address { .. } | Ask::Opaque(_) => [None, None],
        }
    }

    /// The slot without its outcome.
    #[allow(clippy::too_many_lines)] // one arm for each call
    fn fields(&self) -> Fields {
        let plain = match self {
            Ask::Open { flags, mode, .. } => Fields {
                arg: *flags,
                aux: *mode,
                ..Fields::of(op::OPEN)
            },
            Ask::Exec { args, flags, .. } => Fields {
                arg: args.count as i32,
                aux: *flags,
                ..Fields::of(op::EXEC)
            },
            Ask::Rename { flags, .. } => Fields {
                arg: libc::AT_FDCWD,
                aux: *flags,
                ..Fields::of(op::RENAME)
            },
            Ask::Link { flags, .. } => Fields {
                arg: libc::AT_FDCWD,
                aux: *flags,
                ..Fields::of(op::LINK)
            },
            Ask::Symlink { .. } => Fields::of(op::SYMLINK),
            Ask::Unlink { directory, .. } => Fields {
                arg: if *directory { libc::AT_REMOVEDIR } else { 0 },
                ..Fields::of(op::UNLINK)
            },
            Ask::Mkdir { mode, .. } => Fields {
                aux: *mode,
                ..Fields::of(op::MKDIR)
            },
            Ask::Mknod { mode, .. } => Fields {
                aux: *mode,
                ..Fields::of(op::MKNOD)
            },
            Ask::Truncate { .. } => Fields::of(op::TRUNCATE),
            Ask::Meta { what, link, .. } => Fields {
                arg: meta(*what),
                aux: if *link {
                    libc::AT_SYMLINK_NOFOLLOW as u32
                } else {
                    0
                },
                ..Fields::of(op::META)
            },
            Ask::Look {
                op: LookUp::Access,
                mode,
                flags,
                ..
            } => Fields {
                arg: *mode,
                aux: *flags as u32,
                ..Fields::of(op::ACCESS)
            },
            Ask::Look {
                op: LookUp::Readlink, ..
            } => Fields::of(op::READLINK),
            Ask::Look { link, flags, .. } => {
                let nofollow = if *link { libc::AT_SYMLINK_NOFOLLOW } else { 0 };
                Fields {
                    arg: *flags | nofollow,
                    ..Fields::of(op::STAT)
                }
            }
            Ask::Chdir { .. } => Fields::of(op::CHDIR),
            Ask::Chroot { .. } => Fields::of(op::CHROOT),
            Ask::Pivot { .. } => Fields::of(op::PIVOT),
            Ask::Mount { unmounted, flags, .. } => Fields {
                arg: i32::from(*unmounted),
                aux: *flags,
                ..Fields::of(op::MOUNT)
            },
            Ask::Namespace { flags } => Fields {
                aux: *flags,
                ..Fields::of(op::NAMESPACE)
            },
            Ask::Address { op: peer, socket, .. } => {
                let number = if *peer == Peer::Bind {
                    op::BIND
                } else {
                    op::CONNECT
                };
                Fields {
                    fd: *socket,
                    ..Fields::of(number)
                }
            }
            Ask::Opaque(_) => Fields {
                result: Outcome::Known(0),
                ..Fields::of(op::OPAQUE)
            },
        };
        let mut names = self.names().into_iter().flatten().peekable();
        let named = names.peek().is_some();
        let unresolved = names.find(|name| name.path.first() != Some(&b'/'));
        let fd = unresolved.map_or(plain.fd, |name| name.dir);
        Fields {
            resolved: named && unresolved.is_none(),
            fd,
            ..plain
        }
    }
}

fn meta(what: Changed) -> i32 {
    match what {
        Changed::Mode => META_MODE,
        Changed::Owner => META_OWNER,
        Changed::Times => META_TIMES,
        Changed::Attr => META_ATTR,
    }
}

/// Major number of `/dev/null` and the like; 136 to 143 are pseudo terminals.
const MEMORY_DEVICES: u32 = 1;
/// Permission bits.
const WRITE: u16 = 2;
const EXECUTE: u16 = 1;

impl Context<'_> {
    fn look(&mut self, name: &Named, follow: bool) -> Concluded<Looked> {
        if name.inside.is_empty() {
            return Err(NotCached);
        }
        self.resolver.look(self.caller, &name.inside, follow, self.now)
    }

    fn rights(&self) -> Rights {
        self.callers.rights(self.caller.tid, self.now)
    }

    /// The directory that a name stands in and what comes of making something there, or the errno of not reaching it.
    fn parent(&mut self, name: &Named) -> Concluded<Result<(There, Outcome), i32>> {
        let Some(slash) = name.inside.iter().rposition(|b| *b == b'/') else {
            return Err(NotCached);
        };
        let path = if slash == 0 {
            &b"/"[..]
        } else {
            &name.inside[..slash]
        };
        let there = match self.resolver.look(self.caller, path, true, self.now)? {
            Looked::There(there) => there,
            Looked::Error(e) => return Ok(Err(e)),
        };
        let verdict = if there.kind() != libc::S_IFDIR {
            fails(libc::ENOTDIR)
        } else if self.resolver.readonly(self.caller, &there.st, self.now) {
            fails(libc::EROFS)
        } else if !self.rights().permit(&there.st, WRITE | EXECUTE) {
            fails(libc::EACCES)
        } else {
            OK
        };
        Ok(Ok((there, verdict)))
    }

    /// What comes of making something new.
    fn create(&mut self, name: &Named) -> Concluded<Outcome> {
        if let Looked::There(_) = self.look(name, false)? {
            return Ok(fails(libc::EEXIST));
        }
        Ok(self.parent(name)?.map_or_else(fails, |(_, verdict)| verdict))
    }

    /// True if a file has to be identified now, because later its name may mean something else.
    fn fleeting(&self, name: &Named) -> bool {
        is_own(&name.inside) || matches!(&self.caller.view, View::Other(root) if !root.ours)
    }

    /// True if the file has changed, or was made, since the call that is looked at afterwards.
    fn after(&self, there: &There) -> bool {
        self.since.is_some_and(|since| there.ident().ctime >= since)
    }

    fn open(&mut self, mut fields: Fields, name: &Named, flags: i32) -> Concluded<Conclusion> {
        let temporary = flags & libc::O_TMPFILE == libc::O_TMPFILE;
        let exclusive = !temporary && flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0;
        let follow = flags & libc::O_NOFOLLOW == 0 && !exclusive;
        let mut may_wait = false;
        match self.look(name, follow)? {
            // Found afterwards, it may be what this call made, or what came since.
            Looked::There(there) if self.after(&there) && (exclusive || flags & libc::O_CREAT == 0) => {
                fields.ident = self.fleeting(name).then(|| there.ident());
            }
            Looked::There(_) if exclusive => fields.result = fails(libc::EEXIST),
            Looked::There(there) => {
                fields.result = self.open_there(&there, flags, temporary);
                let writes = flags & (libc::O_ACCMODE | libc::O_TRUNC) != 0 && flags & libc::O_PATH == 0;
                if !temporary && (writes && !self.resolver.waits() || self.fleeting(name)) {
                    fields.ident = Some(there.ident());
                }
                may_wait = !matches!(there.kind(), libc::S_IFREG | libc::S_IFDIR);
            }
            Looked::Error(libc::ENOENT) if flags & libc::O_CREAT != 0 && !temporary => {
                fields.result = self.parent(name)?.map_or_else(fails, |(_, verdict)| verdict);
            }
            Looked::Error(e) => fields.result = fails(e),
        }
        Ok(Conclusion {
            fields,
            directory: None,
            may_wait,
        })
    }

    fn open_there(&mut self, there: &There, flags: i32, temporary: bool) -> Outcome {
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
        } else if !self.may(&there.st, wanted) {
            fails(libc::EACCES)
        } else if kind == libc::S_IFSOCK {
            fails(libc::ENXIO)
        } else if changes && self.resolver.readonly(self.caller, &there.st, self.now) {
            fails(libc::EROFS)
        } else if kind == libc::S_IFCHR && !matches!(there.st.stx_rdev_major, MEMORY_DEVICES | 136..=143) {
            // `/dev/tty` and others may still say that there is no such device.
            Outcome::Unknown
        } else {
            OK
        }
    }

    /// Whether the caller's rights give `wanted`. Asks for them only if not everyone may.
    fn may(&self, st: &libc::statx, wanted: u16) -> bool {
        let all = st.stx_mode & st.stx_mode >> 3 & st.stx_mode >> 6 & wanted;
        all == wanted || self.rights().permit(st, wanted)
    }

    fn exec(&mut self, name: &Named) -> Concluded<Outcome> {
        Ok(match self.look(name, true)? {
            Looked::Error(e) => fails(e),
            Looked::There(there) if there.kind() != libc::S_IFREG || !self.may(&there.st, EXECUTE) => {
                fails(libc::EACCES)
            }
            Looked::There(_) => Outcome::Unknown,
        })
    }

    /// What comes of connecting to a path. Whether somebody listens there can't be seen.
    fn connect(&mut self, name: &Named) -> Concluded<Outcome> {
        Ok(match self.look(name, true)? {
            Looked::Error(e) => fails(e),
            Looked::There(there) if !self.may(&there.st, WRITE) => fails(libc::EACCES),
            Looked::There(there) if there.kind() != libc::S_IFSOCK => fails(libc::ECONNREFUSED),
            Looked::There(_) => Outcome::Unknown,
        })
    }

    /// What comes of taking away the name of a file that is there, as far as rights go.
    fn remove(&mut self, name: &Named, there: &There) -> Concluded<Outcome> {
        if self.resolver.readonly(self.caller, &there.st, self.now) {
            return Ok(fails(libc::EROFS));
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
                if sticky && !own { fails(libc::EPERM) } else { OK }
            }
            Ok((_, failed)) => failed,
        })
    }

    fn unlink(&mut self, fields: &mut Fields, name: &Named, directory: bool) -> Concluded<()> {
        let there = match self.look(name, false)? {
            Looked::There(there) => there,
            Looked::Error(e) => {
                fields.result = fails(e);
                return Ok(());
            }
        };
        fields.ident = Some(there.ident());
        let removed = self.remove(name, &there)?;
        fields.result = match (there.kind() == libc::S_IFDIR, directory) {
            _ if removed != OK => removed,
            (true, false) => fails(libc::EISDIR),
            (false, true) => fails(libc::ENOTDIR),
            // Whether a directory is empty can't be asked without touching it.
            (true, true) => Outcome::Unknown,
            (false, false) => OK,
        };
        Ok(())
    }

    /// In the kernel's order of checks, so that the errno is right when several apply.
    fn rename(&mut self, fields: &mut Fields, from: &Named, to: &Named, flags: u32) -> Concluded<()> {
        let source = match self.look(from, false)? {
            Looked::There(there) => there,
            Looked::Error(e) => {
                fields.result = fails(e);
                return Ok(());
            }
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
                        OK if into => Outcome::Unknown,
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

    fn link(&mut self, fields: &mut Fields, from: &Named, to: &Named, flags: u32) -> Concluded<()> {
        let follow = flags & libc::AT_SYMLINK_FOLLOW as u32 != 0 || from.itself;
        let source = match self.look(from, follow)? {
            Looked::There(there) => there,
            Looked::Error(e) => {
                fields.result = fails(e);
                return Ok(());
            }
        };
        fields.ident = Some(source.ident());
        fields.result = match self.look(to, false)? {
            Looked::There(_) => fails(libc::EEXIST),
            Looked::Error(_) => match self.parent(to)? {
                Err(e) => fails(e),
                Ok((_, verdict)) if verdict == fails(libc::EROFS) => verdict,
                Ok((parent, _)) if parent.st.stx_mnt_id != source.st.stx_mnt_id => fails(libc::EXDEV),
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
        let read =
            || std::fs::read("/proc/sys/fs/protected_hardlinks").is_ok_and(|text| text.starts_with(b"1"));
        let rights = self.rights();
        let plain = source.kind() == libc::S_IFREG && source.st.stx_mode & 0o4000 == 0;
        [0, source.st.stx_uid].contains(&rights.uid)
            || plain && rights.permit(&source.st, 4 | WRITE)
            || !PROTECTED.get_or_init(read)
    }

    fn truncate(&mut self, fields: &mut Fields, name: &Named) -> Concluded<()> {
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

    fn meta(&mut self, fields: &mut Fields, what: Changed, name: &Named, follow: bool) -> Concluded<()> {
        fields.result = match self.look(name, follow)? {
            Looked::Error(e) => fails(e),
            Looked::There(there) => {
                let rights = self.rights();
                let owner = [0, there.st.stx_uid].contains(&rights.uid);
                if self.resolver.readonly(self.caller, &there.st, self.now) {
                    fails(libc::EROFS)
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

    /// Where a `chdir` leads, if it succeeds.
    fn chdir(&mut self, fields: &mut Fields, name: &Named) -> Concluded<Option<Vec<u8>>> {
        if name.inside.is_empty() {
            return Err(NotCached);
        }
        let there = match self
            .resolver
            .look_carefully(self.caller, &name.inside, true, self.now)?
        {
            Looked::There(there) => there,
            Looked::Error(e) => {
                fields.result = fails(e);
                return Ok(None);
            }
        };
        fields.result = if there.kind() != libc::S_IFDIR {
            fails(libc::ENOTDIR)
        } else if !self.may(&there.st, EXECUTE) {
            fails(libc::EACCES)
        } else {
            OK
        };
        Ok(match &self.caller.view {
            View::Own => there.path(),
            View::Other(root) if root.ours => there.path(),
            View::Other(_) => None,
        })
    }
}
