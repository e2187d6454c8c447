//! Paths that mean another file for every process: `/proc/self` and its like.

use crate::caller::Caller;

/// Names that mean another file for every process, and what follows `/proc/TID` in their place.
const OWN_NAMES: [(&[u8], &str); 6] = [
    (b"/proc/self", ""),
    (b"/proc/thread-self", ""),
    (b"/dev/fd", "/fd"),
    (b"/dev/stdin", "/fd/0"),
    (b"/dev/stdout", "/fd/1"),
    (b"/dev/stderr", "/fd/2"),
];

/// True if the path means another file for every process.
pub fn is_own(path: &[u8]) -> bool {
    (path.starts_with(b"/proc/") || path.starts_with(b"/dev/"))
        && OWN_NAMES.iter().any(|(name, _)| rest(path, name).is_some())
}

/// The rest of a path after `name`, if `name` ends at the end of a component.
fn rest<'a>(path: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    path.strip_prefix(name)
        .filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Replaces `/proc/self` and its like by the caller's own directory. Unchanged, they would mean the
/// supervisor's.
pub(crate) fn rewrite(caller: &Caller, path: &[u8]) -> Option<Vec<u8>> {
    if !is_own(path) {
        return None;
    }
    let (rest, inner) = OWN_NAMES
        .iter()
        .find_map(|(name, inner)| Some((rest(path, name)?, inner)))?;
    let mut out = format!("/proc/{}{inner}", caller.tid).into_bytes();
    out.extend_from_slice(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_proc_self_means_the_callers_directory() {
        let me = Caller {
            tid: 42,
            ..Caller::unknown(1)
        };
        assert_eq!(
            rewrite(&me, b"/proc/self/exe").as_deref(),
            Some(&b"/proc/42/exe"[..])
        );
        assert_eq!(
            rewrite(&me, b"/dev/stdin").as_deref(),
            Some(&b"/proc/42/fd/0"[..])
        );
        assert_eq!(
            rewrite(&me, b"/dev/fd/7").as_deref(),
            Some(&b"/proc/42/fd/7"[..])
        );
        assert_eq!(rewrite(&me, b"/proc/selfish"), None);
        assert_eq!(rewrite(&me, b"/dev/stdinx"), None);
    }
}
