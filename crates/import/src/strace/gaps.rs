//! The gaps that are strace's own.

use super::LineTool;
use super::moments::{Moments, TimeKind};
use crate::calls::TracingTool;
use backstory_eventlog::Reason;

/// strace, and its options.
pub(super) const STRACE: LineTool = LineTool {
    tool: TracingTool {
        name: "strace",
        selection: " (-e)",
        children: " (-f)",
        descriptors: " (-y)",
        strings: " (-s)",
    },
    every_call: false,
    relative: "the log has relative times (-r); they are counted back from the time of the log's file",
    expected: "a system call such as `openat(AT_FDCWD, \"file\", O_RDONLY) = 3`",
};

/// The reason of files without times (`-ff`).
pub(super) fn without_order() -> Reason {
    Reason::ImportGap {
        what: "the files of the log have no times, which would tell the order of calls of \
               different processes (-ttt)"
            .to_owned(),
    }
}

/// The facts about times that were concluded.
pub(super) fn time_warnings(moments: &Moments, tool: &LineTool) -> Vec<Reason> {
    let what = match moments.kind() {
        TimeKind::Epoch if moments.is_early() => {
            "the log has times before 1990, which are taken as they are: the clock of its machine \
             was wrong"
        }
        TimeKind::Epoch => return Vec::new(),
        TimeKind::Unknown => {
            "the log has no times (-ttt), so only the order of the operations is known"
        }
        TimeKind::Day => "the log has no dates (-ttt); they follow from the time of the log's file",
        TimeKind::Since => tool.relative,
    };
    vec![Reason::ImportedTimes { what }]
}
