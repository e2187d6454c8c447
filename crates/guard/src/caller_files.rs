//! The file system as a caller sees it at the time of its call.

use crate::arguments::NamedPath;
use crate::caller::Caller;
use crate::callers::Callers;
use crate::mounts::NameAuthority;
use crate::path_resolver::{NotCached, PathResolver, Resolved};
use crate::record_writer::RecordResult;
use crate::resolved_file::ResolvedFile;
use crate::rights::AccessRights;

/// The facts that the outcome of a call is concluded from.
pub struct CallerFiles<'a> {
    /// Looks up paths.
    pub resolver: &'a mut PathResolver,
    /// The threads met so far.
    pub callers: &'a Callers,
    /// The thread that makes the call.
    pub caller: &'a Caller,
    /// The time of the call, in ticks.
    pub now: u64,
    /// For a deferred call: when the call was made, in nanoseconds since 1970.
    pub since: Option<i64>,
    /// The result of a look-up of one of the call's paths a moment ago.
    pub prior: Option<PriorLookup>,
    /// A mount that was looked up for this call, and whether it is read-only.
    pub readonly_mount: Option<(u64, bool)>,
    /// The text of the symbolic link that the call removes.
    pub removed_link: Option<Vec<u8>>,
}

/// The result of a look-up while the call waits.
///
/// It is used once, for that call alone. A second look-up a few microseconds later would be no
/// surer: the call has still not been made.
pub struct PriorLookup {
    /// The path as it was looked up.
    pub inside: Vec<u8>,
    /// Whether a link at its end was followed.
    pub follow: bool,
    /// The result.
    pub resolved: Resolved,
}

pub(crate) type Concluded<T> = Result<T, NotCached>;

pub(crate) const OK: RecordResult = RecordResult::Predicted(0);

pub(crate) fn fails(errno: i32) -> RecordResult {
    RecordResult::Predicted(-errno)
}

/// The major device number of `/dev/null` and the like. The numbers 136 to 143 are pseudo
/// terminals.
pub(crate) const MEMORY_DEVICES: u32 = 1;
/// Permission bits of a mode.
pub(crate) const WRITE: u16 = 2;
pub(crate) const EXECUTE: u16 = 1;

impl CallerFiles<'_> {
    pub(crate) fn look(&mut self, name: &NamedPath, follow: bool) -> Concluded<Resolved> {
        if name.inside.is_empty() {
            return Err(NotCached);
        }
        let same = |prior: &mut PriorLookup| prior.follow == follow && prior.inside == name.inside;
        if let Some(prior) = self.prior.take_if(same) {
            return Ok(prior.resolved);
        }
        self.resolver
            .look(self.caller, &name.inside, follow, self.now)
    }

    /// Notes the text of the file that the call removes, if it is a symbolic link. Files that were
    /// opened through the link have other paths from then on.
    pub(crate) fn removes(&mut self, there: &ResolvedFile) {
        self.removed_link = self.resolver.link_text(self.caller, there, self.now);
    }

    /// True if the file's mount is read-only. That holds for the whole mount, so it is looked up
    /// once for a call.
    pub(crate) fn readonly(&mut self, there: &ResolvedFile) -> bool {
        let mount = there.st.stx_mnt_id;
        match self.readonly_mount {
            Some((readonly_mount, readonly)) if readonly_mount == mount => readonly,
            _ => {
                let readonly = self.resolver.readonly(self.caller, there, self.now);
                self.readonly_mount = Some((mount, readonly));
                readonly
            }
        }
    }

    pub(crate) fn rights(&self) -> AccessRights {
        self.callers.rights(self.caller.tid, self.now)
    }

    /// The directory that a name is in, and the outcome of making a file there; or the errno of not
    /// reaching the directory.
    pub(crate) fn parent(
        &mut self,
        name: &NamedPath,
    ) -> Concluded<Result<(ResolvedFile, RecordResult), i32>> {
        let Some(slash) = name.inside.iter().rposition(|b| *b == b'/') else {
            return Err(NotCached);
        };
        let path = if slash == 0 {
            &b"/"[..]
        } else {
            &name.inside[..slash]
        };
        let there = match self.resolver.look(self.caller, path, true, self.now)? {
            Resolved::File(there) => there,
            Resolved::Error(e) => return Ok(Err(e)),
        };
        let names = self.resolver.names(self.caller, &there.st, self.now);
        let verdict = if there.kind() != libc::S_IFDIR {
            fails(libc::ENOTDIR)
        } else if names == NameAuthority::KernelAlone {
            fails(libc::ENOENT)
        } else if self.readonly(&there) {
            fails(libc::EROFS)
        } else if !self.rights().permit(&there.st, WRITE | EXECUTE) {
            fails(libc::EACCES)
        } else if names == NameAuthority::Kernel {
            RecordResult::Unknown
        } else {
            OK
        };
        Ok(Ok((there, verdict)))
    }

    /// True if the caller's rights include `wanted`. The rights are looked up only if the mode does
    /// not grant it to all.
    pub(crate) fn may(&self, st: &libc::statx, wanted: u16) -> bool {
        let all = st.stx_mode & st.stx_mode >> 3 & st.stx_mode >> 6 & wanted;
        all == wanted || self.rights().permit(st, wanted)
    }
}
