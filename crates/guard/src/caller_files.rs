//! The file system as a caller sees it at the time of its call.

use crate::arguments::NamedPath;
use crate::caller::Caller;
use crate::callers::Callers;
use crate::mounts::NameAuthority;
use crate::path_resolver::{NotCached, PathResolver, Resolved, ResolvedFile};
use crate::record_writer::RecordResult;
use crate::rights::AccessRights;

/// What a conclusion is drawn with.
pub struct CallerFiles<'a> {
    /// Looks up paths.
    pub resolver: &'a mut PathResolver,
    /// Everyone.
    pub callers: &'a Callers,
    /// Who asks.
    pub caller: &'a Caller,
    /// When.
    pub now: u64,
    /// If it is looked at afterwards: when the call was, in ns since 1970.
    pub since: Option<i64>,
    /// What one of its paths was found to mean just now.
    pub prior: Option<PriorLookup>,
    /// A mount that was readonly_mount about for this call, and whether nothing can be changed there.
    pub readonly_mount: Option<(u64, bool)>,
}

/// What a path was found to mean, while the call that names it waits. Of use once, for that call alone: who asks again a few
/// microseconds later, before the call is made all the same, learns nothing that is surer.
pub struct PriorLookup {
    /// As it was looked up.
    pub inside: Vec<u8>,
    /// Whether a link at its end was followed.
    pub follow: bool,
    /// What was found.
    pub resolved: Resolved,
}

pub(crate) type Concluded<T> = Result<T, NotCached>;

pub(crate) const OK: RecordResult = RecordResult::Predicted(0);

pub(crate) fn fails(errno: i32) -> RecordResult {
    RecordResult::Predicted(-errno)
}

/// Major number of `/dev/null` and the like; 136 to 143 are pseudo terminals.
pub(crate) const MEMORY_DEVICES: u32 = 1;
/// Permission bits.
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

    /// True if nothing can be changed where the file is. That is the same everywhere in a mount, so it is readonly_mount once for a call.
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

    /// The directory that a name stands in and what comes of making something there, or the errno of not reaching it.
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

    /// Whether the caller's rights give `wanted`. Asks for them only if not everyone may.
    pub(crate) fn may(&self, st: &libc::statx, wanted: u16) -> bool {
        let all = st.stx_mode & st.stx_mode >> 3 & st.stx_mode >> 6 & wanted;
        all == wanted || self.rights().permit(st, wanted)
    }
}
