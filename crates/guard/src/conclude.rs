//! What will come of a call, concluded from the file system before it happens.
//!
//! The guard sees an attempt, never its result. A conclusion is drawn where the file system leaves no doubt; elsewhere the
//! outcome stays unknown, which later makes a `possible` edge.

use super::ask::Ask;
use super::caller::{Caller, Callers, Rights, View};
use super::decode::Named;
use super::mounts::Names;
use super::record_writer::{Fields, Result as Outcome};
use super::resolve::{Looked, NotCached, Resolver, There, is_own};
use backstory_abi::F_CUT;

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
    /// What one of its paths was found to mean just now.
    pub ahead: Option<Ahead>,
    /// A mount that was asked about for this call, and whether nothing can be changed there.
    pub asked: Option<(u64, bool)>,
}

/// What a path was found to mean, while the call that names it waits. Of use once, for that call alone: who asks again a few
/// microseconds later, before the call is made all the same, learns nothing that is surer.
pub struct Ahead {
    /// As it was looked up.
    pub inside: Vec<u8>,
    /// Whether a link at its end was followed.
    pub follow: bool,
    /// What was found.
    pub looked: Looked,
}

/// A conclusion: the record's fields, and what the file is.
pub struct Conclusion {
    /// Fields of the record.
    pub fields: Fields,
    /// The directory after a `chdir`.
    pub directory: Option<Vec<u8>>,
    /// Opening it may wait for someone (a FIFO, a device), so that a signal restarts the call and it is notified again.
    pub may_wait: bool,
}

pub(super) type Concluded<T> = Result<T, NotCached>;

pub(super) const OK: Outcome = Outcome::Predicted(0);

pub(super) fn fails(errno: i32) -> Outcome {
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
            Ask::Address {
                name: Some(name), ..
            } => fields.result = cx.connect(name)?,
            _ => {}
        }
        Ok(())
    }
}

/// Major number of `/dev/null` and the like; 136 to 143 are pseudo terminals.
const MEMORY_DEVICES: u32 = 1;
/// Permission bits.
pub(super) const WRITE: u16 = 2;
pub(super) const EXECUTE: u16 = 1;

impl Context<'_> {
    pub(super) fn look(&mut self, name: &Named, follow: bool) -> Concluded<Looked> {
        if name.inside.is_empty() {
            return Err(NotCached);
        }
        let same = |ahead: &mut Ahead| ahead.follow == follow && ahead.inside == name.inside;
        if let Some(ahead) = self.ahead.take_if(same) {
            return Ok(ahead.looked);
        }
        self.resolver
            .look(self.caller, &name.inside, follow, self.now)
    }

    /// True if nothing can be changed where the file is. That is the same everywhere in a mount, so it is asked once for a call.
    pub(super) fn readonly(&mut self, there: &There) -> bool {
        let mount = there.st.stx_mnt_id;
        match self.asked {
            Some((asked, readonly)) if asked == mount => readonly,
            _ => {
                let readonly = self.resolver.readonly(self.caller, there, self.now);
                self.asked = Some((mount, readonly));
                readonly
            }
        }
    }

    pub(super) fn rights(&self) -> Rights {
        self.callers.rights(self.caller.tid, self.now)
    }

    /// The directory that a name stands in and what comes of making something there, or the errno of not reaching it.
    pub(super) fn parent(&mut self, name: &Named) -> Concluded<Result<(There, Outcome), i32>> {
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
        let names = self.resolver.names(self.caller, &there.st, self.now);
        let verdict = if there.kind() != libc::S_IFDIR {
            fails(libc::ENOTDIR)
        } else if names == Names::KernelAlone {
            fails(libc::ENOENT)
        } else if self.readonly(&there) {
            fails(libc::EROFS)
        } else if !self.rights().permit(&there.st, WRITE | EXECUTE) {
            fails(libc::EACCES)
        } else if names == Names::Kernel {
            Outcome::Unknown
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
        Ok(self
            .parent(name)?
            .map_or_else(fails, |(_, verdict)| verdict))
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
            Looked::There(there)
                if self.after(&there) && (exclusive || flags & libc::O_CREAT == 0) =>
            {
                fields.ident = self.fleeting(name).then(|| there.ident());
            }
            Looked::There(_) if exclusive => fields.result = fails(libc::EEXIST),
            Looked::There(there) => {
                fields.result = self.open_there(&there, flags, temporary);
                let writes =
                    flags & (libc::O_ACCMODE | libc::O_TRUNC) != 0 && flags & libc::O_PATH == 0;
                if !temporary && (writes && !self.resolver.waits() || self.fleeting(name)) {
                    fields.ident = Some(there.ident());
                }
                may_wait = !matches!(there.kind(), libc::S_IFREG | libc::S_IFDIR);
            }
            Looked::Error(libc::ENOENT) if flags & libc::O_CREAT != 0 && !temporary => {
                fields.result = self
                    .parent(name)?
                    .map_or_else(fails, |(_, verdict)| verdict);
            }
            Looked::Error(e) => fields.result = fails(e),
        }
        Ok(Conclusion {
            fields,
            directory: None,
            may_wait,
        })
    }

    pub(super) fn open_there(&mut self, there: &There, flags: i32, temporary: bool) -> Outcome {
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
        } else if changes && self.readonly(there) {
            fails(libc::EROFS)
        } else if kind == libc::S_IFCHR
            && !matches!(there.st.stx_rdev_major, MEMORY_DEVICES | 136..=143)
        {
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
            Looked::There(there)
                if there.kind() != libc::S_IFREG || !self.may(&there.st, EXECUTE) =>
            {
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
