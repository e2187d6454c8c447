//! The gaps of a log of auditd.

use crate::calls::TracingTool;
use backstory_eventlog::Reason;
use backstory_vocabulary::counted;

/// auditd has no option for any of these.
pub(super) const AUDITD: TracingTool = TracingTool {
    name: "auditd",
    selection: "",
    children: "",
    descriptors: "",
    strings: "",
};

/// Facts about a log, counted while it is read.
#[derive(Debug, Default)]
pub(super) struct AuditGaps {
    /// Records of any kind.
    pub(super) records: usize,
    /// System calls.
    pub(super) events: usize,
    /// Lines that are no records, and the first of them: file, line.
    pub(super) foreign: usize,
    pub(super) first_foreign: Option<(usize, u64)>,
    pub(super) cut_lines: usize,
    pub(super) is_cut_off: bool,
    /// Calls whose number has no name here.
    pub(super) unnamed: usize,
    /// Calls that lack records.
    pub(super) without_items: usize,
    /// Programs whose start is not in the log.
    pub(super) without_start: usize,
    /// Processes that are not followed any longer, because there are too many.
    pub(super) dropped: usize,
    /// Processes that do not descend from another of the log.
    pub(super) roots: usize,
}

impl AuditGaps {
    /// The reasons that are auditd's own. `missing` are the effects of which no call is there.
    pub(super) fn reasons(&self, missing: &str) -> Vec<Reason> {
        let mut all = vec![format!(
            "the log does not say which calls the rules of auditd select{missing}"
        )];
        let mut add = |count: usize, one: &str, more: &str, what: &str| {
            if count > 0 {
                all.push(format!("{} {what}", counted(count, one, more)));
            }
        };
        let start = "known by the file and the title only: the log does not have the start";
        add(self.without_start, "program is", "programs are", start);
        let names = "in the log without the paths that were used";
        add(self.without_items, "call is", "calls are", names);
        let number = "of a machine whose numbers of system calls are not known \
                      (log_format = ENRICHED adds the names)";
        add(self.unnamed, "call is", "calls are", number);
        let dropped = "not followed to the end, because too many live at once";
        add(self.dropped, "process is", "processes are", dropped);
        all.into_iter()
            .map(|what| Reason::ImportGap { what })
            .collect()
    }
}
