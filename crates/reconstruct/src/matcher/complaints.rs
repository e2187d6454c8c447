//! The standard error of a program, where the record has something else or nothing.
//!
//! In: bytes that left. Out: the end of them, for the report. Invariant: they change no comparison.

use super::ProcessMatcher;
use crate::resource::ResourceId;

/// Most bytes that a report has of a program: the last lines of a trace.
pub const COMPLAINT_SHOWN: usize = 400;

/// The same for a build with a sanitizer: its whole report.
const SANITIZER_SHOWN: usize = 1 << 18;

impl ProcessMatcher {
    /// The program is a build with a sanitizer.
    pub fn keep_whole_report(&mut self) {
        self.complaint_room = SANITIZER_SHOWN;
    }

    /// Bytes left a resource through this descriptor. Those of standard error are kept, from the
    /// first byte on that differs there. The record of a forked child may have no use of it.
    pub fn complains(&mut self, id: ResourceId, fd: i32, bytes: &[u8]) {
        let streams = self.rest.streams.get(&id);
        let has_parted = streams.is_some_and(|streams| streams.output.has_parted());
        if has_parted && (fd == libc::STDERR_FILENO || self.is_standard_error(id)) {
            self.keep_complaint(bytes);
        }
    }

    /// Bytes left through a standard descriptor that the recorded program did not use.
    pub fn keep_complaint(&mut self, bytes: &[u8]) {
        if self.rest.is_past_record() {
            return;
        }
        self.complaint.extend_from_slice(bytes);
        let more = self.complaint.len().saturating_sub(self.complaint_room);
        self.complaint.drain(..more);
    }

    fn is_standard_error(&self, id: ResourceId) -> bool {
        let mut inherited = self.rest.inherited.iter();
        inherited.any(|(fd, one, _)| *fd == libc::STDERR_FILENO && *one == id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ProcessMatcher;
    use super::COMPLAINT_SHOWN;
    use crate::process::RecordedProcess;
    use crate::resource::{Origin, Resource};
    use crate::volatile::VolatileRules;

    #[test]
    fn a_report_has_the_end_of_what_a_program_says_and_all_that_a_sanitizer_says() {
        let said = [b'x'; COMPLAINT_SHOWN + 9];
        for (is_sanitized, kept) in [(false, COMPLAINT_SHOWN), (true, said.len() + 4)] {
            let mut matcher = ProcessMatcher::new(RecordedProcess::default());
            if is_sanitized {
                matcher.keep_whole_report();
            }
            matcher.keep_complaint(&said);
            matcher.keep_complaint(b"end\n");
            assert_eq!(matcher.complaint.len(), kept);
            assert!(matcher.complaint.ends_with(b"xend\n"));
        }
    }

    #[test]
    fn only_standard_error_that_differs_is_a_complaint_also_without_a_recorded_use_of_it() {
        let errors = Resource::new(Origin::Inherited, b"errors", libc::S_IFREG);
        let mut matcher = ProcessMatcher::new(RecordedProcess::default());
        matcher.complains(0, 2, b"as recorded");
        assert!(matcher.complaint.is_empty());
        matcher.write((0, &errors), b"crash", &VolatileRules::default());
        matcher.complains(0, 1, b"crash");
        assert!(matcher.complaint.is_empty());
        matcher.complains(0, 2, b"crash");
        assert_eq!(matcher.complaint, b"crash");
    }
}
