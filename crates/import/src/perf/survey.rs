//! The kinds of lines that a log has. The whole log is looked at, because its beginning does not
//! show with which options perf ran.

use super::line::{PerfLine, Said, parse};
use crate::lines::{LineFile, LogLine};
use crate::{Error, LogFiles};
use std::collections::HashSet;

/// The calls that execute a program.
pub(super) const EXECS: [&str; 2] = ["execve", "execveat"];

/// The facts about a log.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// It has lines of perf.
    pub(super) has_lines: bool,
    /// A name is in it. Without BPF skeletons, perf prints pointers only.
    pub(super) has_names: bool,
    /// Events tell the births of threads.
    pub(super) has_births: bool,
    /// Events tell the ends of threads.
    pub(super) has_ends: bool,
    /// The first thread of the command.
    pub(super) first: Option<u32>,
}

impl Survey {
    /// Looks at a log.
    pub(super) fn of(files: &LogFiles) -> Result<Survey, Error> {
        let mut file = LineFile::open(files, 0)?;
        let (mut survey, mut line) = (Survey::default(), LogLine::default());
        let mut born = HashSet::new();
        while file.next(&mut line)? > 0 {
            if let Some(parsed) = parse(&line.bytes) {
                survey.meet(&parsed, &mut born);
            }
        }
        Ok(survey)
    }

    fn meet(&mut self, line: &PerfLine<'_>, born: &mut HashSet<u32>) {
        self.has_lines = true;
        match line.said {
            Said::Event { name, args } => {
                self.has_births |= name == "task:task_newtask";
                self.has_ends |= name == "sched:sched_process_exit";
                if name == "task:task_newtask" {
                    born.extend(event_pid(args));
                }
                return;
            }
            Said::Called { args, .. } | Said::Began { args, .. } => {
                self.has_names |= memchr::memmem::find(args, b"name: \"").is_some();
            }
            Said::Returned { .. } => {}
        }
        // The command executes a program, and perf made it before the log.
        let (Said::Called { name, .. } | Said::Began { name, .. } | Said::Returned { name, .. }) =
            line.said
        else {
            return;
        };
        if self.first.is_none() && EXECS.contains(&name) {
            self.first = line.tid.filter(|tid| !born.contains(tid));
        }
    }
}

/// The thread `pid: 7 (cat)` of an event.
pub(super) fn event_pid(args: &[u8]) -> Option<u32> {
    let digits = args.strip_prefix(b"pid: ")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}
