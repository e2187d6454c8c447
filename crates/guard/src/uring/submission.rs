//! The effects of the earlier entries of a submission.

use crate::arguments::NamedPath;
use crate::decoded_call::DecodedCall;
use crate::pending_effect::PendingChange;

/// The effects of the entries that were decoded so far.
#[derive(Default)]
pub(super) struct Submission {
    /// The next entry waits for the last one.
    pub(super) linked: bool,
    /// Names that may mean another file afterwards.
    touched: Vec<Vec<u8>>,
    /// Changes of files whose content is lost unless it is preserved.
    pub(super) changes: Vec<PendingChange>,
}

impl Submission {
    /// True if an entry before this call may change what its paths mean.
    pub(super) fn touches(&self, decoded: &DecodedCall) -> bool {
        let below = |name: &NamedPath, touched: &[u8]| {
            let rest = name.inside.strip_prefix(touched);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let touched = |name: &NamedPath| {
            name.inside.is_empty() || self.touched.iter().any(|t| below(name, t))
        };
        !self.touched.is_empty() && decoded.names().into_iter().flatten().any(touched)
    }

    /// Notes the names that a call changes.
    pub(super) fn note(&mut self, decoded: &DecodedCall) {
        let changes = match decoded {
            DecodedCall::Look { .. } | DecodedCall::Address { .. } => false,
            DecodedCall::Open { flags, .. } => flags & libc::O_CREAT != 0,
            _ => true,
        };
        if changes {
            let names = decoded.names().into_iter().flatten();
            self.touched.extend(names.map(|name| name.inside.clone()));
        }
    }
}
