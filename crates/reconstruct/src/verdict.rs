//! The result of a reconstruction.

use crate::divergence::Divergence;
use crate::process::RecordedProcess;
use crate::shift::ClockShift;
use crate::sighting::Sighting;
use serde::{Deserialize, Serialize};

/// The result for one program in one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessVerdict {
    /// The recorded process id.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// Recorded calls.
    pub recorded_calls: u64,
    /// Calls of the new execution that the record answered.
    pub matched: u64,
    /// Bytes that entered from the record.
    pub entered: u64,
    /// Bytes that left.
    pub left: u64,
    /// Calls of the new execution that concern a resource, or make a process.
    pub came: u64,
    /// Of the bytes in `left`, those of which the log has the number only: the kernel moved them
    /// (`sendfile`), and they were not compared.
    pub counted: u64,
    /// The first difference.
    pub divergence: Option<Divergence>,
    /// Output differs before the part that is compared.
    #[serde(default)]
    pub differs_before: bool,
    /// The names of the volatile parts of its output that differ.
    #[serde(default)]
    pub volatile: Vec<String>,
    /// The end of what it wrote to standard error, from the first byte on that differs there. Also
    /// of what it wrote to standard descriptors that it did not use in the record.
    #[serde(default)]
    pub complaint: Vec<u8>,
    /// Why its log is not whole.
    pub gap: Option<String>,
    /// True if calls are missing in its log. Their output was not compared.
    #[serde(default)]
    pub lacks_calls: bool,
    /// Threads of the new execution, also those that only computed.
    #[serde(default)]
    pub threads: usize,
    /// Calls of the new execution that the program made by an instruction of its own, and not
    /// through libc. The recorder saw none of them, so the record lacks them.
    #[serde(default)]
    pub own_calls: u64,
}

impl ProcessVerdict {
    /// Bytes that left, and were compared.
    pub fn compared(&self) -> u64 {
        self.left.saturating_sub(self.counted)
    }
}

/// How a reconstruction compares with the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Likeness {
    /// All outputs and all files that the run wrote are equal, byte for byte. Of bytes that the
    /// kernel moved, the number is.
    Equal,
    /// Nothing differs but volatile parts, if any. Something that the programs did is not recorded,
    /// or a file that they wrote cannot be compared.
    EqualWhereRecorded,
    /// All differences are in volatile parts, which have names.
    EqualButVolatile,
    /// Something differs.
    Different,
}

/// How the files that the programs left compare with those of the recorded run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileCounts {
    /// Number of files that are the recorded ones.
    pub equal: usize,
    /// Those that differ or are missing.
    pub different: usize,
    /// Those that could not be compared.
    pub unknown: usize,
}

/// The start of the programs: all calls until the first connection that is fed is handed out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProgramStart {
    /// Its calls.
    pub calls: u64,
    /// How long it took, in ns, from the beginning of the first program on.
    #[serde(default)]
    pub took: u64,
    /// The reasons for which a copy of the started programs could not stand for a new start.
    /// Without one, nothing was seen that forbids it, or nothing asked for them.
    pub obstacles: Vec<String>,
}

/// All executions for one request. Each of them starts the programs, or begins in a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExecutedCalls {
    /// Their number: the attempts, and a second execution of threads that may race.
    pub executions: u32,
    /// Those of them that began in a copy of the started program.
    #[serde(default)]
    pub in_copies: u32,
    /// Their calls.
    pub calls: u64,
    /// Those of them that belong to a start.
    pub in_starts: u64,
    /// How long the executions took, in ns. The preparation of the root does not count.
    #[serde(default)]
    pub took: u64,
    /// How long their starts took.
    #[serde(default)]
    pub took_in_starts: u64,
}

impl ExecutedCalls {
    /// The executions that started the programs.
    #[must_use]
    pub fn starts(self) -> u32 {
        self.executions - self.in_copies
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: ExecutedCalls) -> ExecutedCalls {
        ExecutedCalls {
            executions: self.executions + other.executions,
            in_copies: self.in_copies + other.in_copies,
            calls: self.calls + other.calls,
            in_starts: self.in_starts + other.in_starts,
            took: self.took + other.took,
            took_in_starts: self.took_in_starts + other.took_in_starts,
        }
    }
}

/// The result for one request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestVerdict {
    /// Its number.
    pub number: usize,
    /// True if the program made it itself. All that came before it was fed.
    #[serde(default)]
    pub is_client: bool,
    /// Further requests that were fed.
    pub fed: Vec<usize>,
    /// Calls from the first one on its connection to the end.
    pub calls: u64,
    /// Bytes on its connection that were compared.
    pub compared: u64,
    /// The position of the first difference in the answers to requests that were fed before it on
    /// its connection. They prepare it, and are no part of it.
    #[serde(default)]
    pub differs_before: Option<u64>,
    /// True if all of its recorded bytes went in and out.
    pub is_served: bool,
    /// Its bytes were through, and a program still worked. All were ended after so many seconds
    /// without a call, so files can lack what that program would have written.
    #[serde(default)]
    pub worked_on: Option<u64>,
    /// The start of this execution.
    pub start: ProgramStart,
    /// All executions, this one included.
    pub executed: ExecutedCalls,
}

/// The end of the record of a program that went on behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordEnd {
    /// The epoch of the program.
    pub epoch: u64,
    /// Time-stamp counter up to which the program did again what the record has. `None`: it did not
    /// run again, or has threads, whose order is not recorded.
    pub until: Option<u64>,
}

impl RecordEnd {
    /// The end of the record of a program, which ran again or did not.
    pub fn of(recorded: &RecordedProcess, ran: bool) -> RecordEnd {
        let is_in_order = ran && recorded.threads.is_empty();
        RecordEnd {
            epoch: recorded.epoch,
            until: is_in_order.then_some(recorded.recorded_until),
        }
    }
}

/// The result of a reconstruction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reconstruction {
    /// By process, in the order of their beginning.
    pub processes: Vec<ProcessVerdict>,
    /// The wait status of the first process. `None`: it had to be killed.
    pub status: Option<i32>,
    /// Why the supervisor ended it.
    pub stopped: Option<String>,
    /// Why records of any program may be missing, so that not all was compared. `None`: none are.
    #[serde(default)]
    pub lacks_because: Option<String>,
    /// Recorded programs that were not started again.
    pub not_started: Vec<String>,
    /// Those that were not started again, because the record of the program that started them ends
    /// before.
    #[serde(default)]
    pub unreached: Vec<String>,
    /// The ends of the records of the latter, and of the programs that ran again and whose records
    /// end before they did. Files can lack what these wrote later.
    #[serde(default)]
    pub unrecorded: Vec<RecordEnd>,
    /// Calls of the recorded run.
    pub recorded_calls: u64,
    /// The chosen request, if one was chosen.
    pub request: Option<RequestVerdict>,
    /// Number of attempts, this one included.
    #[serde(default)]
    pub tries: u32,
    /// The change of the clock.
    #[serde(default)]
    pub shift: ClockShift,
    /// True if a program took the time, and the record lacks the answer. Of a request, only the
    /// work on it counts.
    #[serde(default)]
    pub took_time: bool,
    /// Changes of the clock by which the first date that differs becomes the recorded one.
    #[serde(default)]
    pub dated: Vec<ClockShift>,
    /// Further changes of the clock that the record allows for these questions, the likeliest one
    /// first.
    #[serde(default)]
    pub shifts: Vec<ClockShift>,
    /// Files whose content is not the one that the recorded program read: the path, and the
    /// position of the first range that differs.
    #[serde(default)]
    pub other_files: Vec<(String, u64)>,
    /// Programs that ran again without a deep record: their calls were not compared.
    pub shallow: u64,
    /// The places of the text that was looked for, or the writes, in the order of the execution.
    #[serde(default)]
    pub sightings: Vec<Sighting>,
    /// Number of further ones, which are not in the list.
    #[serde(default)]
    pub more_sightings: u64,
    /// Executions of the same input with another result than the first one. Something decides that
    /// is not recorded, as the order of threads within a data race.
    #[serde(default)]
    pub unsteady: u32,
    /// The first difference of such an execution, if this one has none.
    #[serde(default)]
    pub unsteady_difference: Option<Divergence>,
    /// Files that the recorded programs wrote, and whose bytes were to be compared, and were not.
    #[serde(default)]
    pub uncompared: Vec<String>,
    /// The comparison of the files that the programs left. The replay makes it afterwards.
    #[serde(default)]
    pub files: FileCounts,
    /// Bytes that left the first process through descriptor 1, up to a limit.
    #[serde(skip)]
    pub output: Vec<u8>,
}

impl Reconstruction {
    /// The comparison with the record.
    pub fn likeness(&self) -> Likeness {
        let mut all = self.processes.iter().filter_map(|p| p.divergence.as_ref());
        let unserved = self.request.as_ref().is_some_and(|r| !r.is_served);
        let lacks = unserved || self.stopped.is_some() || !self.not_started.is_empty();
        if lacks || self.unsteady > 0 || self.files.different > 0 {
            return Likeness::Different;
        }
        let is_equal = all.clone().next().is_none();
        match all.all(|divergence| divergence.volatile.is_some()) {
            false => Likeness::Different,
            true if self.is_partial() => Likeness::EqualWhereRecorded,
            true if is_equal => Likeness::Equal,
            true => Likeness::EqualButVolatile,
        }
    }

    /// True if something that the programs did is not recorded, or cannot be compared.
    fn is_partial(&self) -> bool {
        let lacks = |process: &ProcessVerdict| process.lacks_calls || process.own_calls > 0;
        let lacks_calls = self.processes.iter().any(lacks);
        let lacks_records = self.shallow > 0 || lacks_calls || !self.unrecorded.is_empty();
        lacks_records || self.lacks_because.is_some() || self.files.unknown > 0
    }

    /// True if it differs in a process with several threads: another execution may then have
    /// another result.
    pub fn may_race(&self) -> bool {
        let mut all = self.processes.iter();
        let differs = self.likeness() == Likeness::Different;
        differs && all.any(|process| process.threads > 1 && process.divergence.is_some())
    }

    /// True if another execution at the same moment is to confirm the result of a whole run.
    /// `is_equal`: this is its result, files included.
    ///
    /// Threads that race may be equal by chance at one of several moments. At the recorded time, a
    /// difference of theirs may have nothing to do with the moment.
    pub fn is_to_be_confirmed(&self, is_equal: bool) -> bool {
        let is_shifted = self.shift.ns != 0;
        let has_threads = self.processes.iter().any(|process| process.threads > 1);
        match (is_equal, self.likeness()) {
            (true, _) => is_shifted && has_threads,
            (false, Likeness::Different) => !is_shifted && self.may_race(),
            // Its files alone differ.
            (false, _) => !is_shifted && has_threads,
        }
    }

    /// Compares with another execution of the same input. Both then count as different if their
    /// first differences are not the same. Volatile parts may differ from execution to execution.
    pub fn compare_again(&mut self, other: &Reconstruction) {
        let place = |d: &Divergence| (d.kind, d.pid, d.object.clone(), d.position, d.came.clone());
        let (own, others) = (self.first_lasting(), other.first_lasting());
        let is_other = own.map(place) != others.map(place);
        let difference = others.filter(|_| own.is_none()).cloned();
        if is_other {
            self.unsteady += 1;
            self.unsteady_difference = difference;
        }
    }

    /// The first difference that is not volatile.
    fn first_lasting(&self) -> Option<&Divergence> {
        let mut all = self.processes.iter().filter_map(|p| p.divergence.as_ref());
        all.find(|difference| difference.volatile.is_none())
    }

    /// The first difference, in the order of the processes.
    pub fn first_difference(&self) -> Option<&Divergence> {
        self.processes.iter().find_map(|p| p.divergence.as_ref())
    }

    /// The names of all volatile parts that differ, each once.
    pub fn volatile_parts(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for name in self.processes.iter().flat_map(|p| &p.volatile) {
            if !all.contains(&name.as_str()) {
                all.push(name);
            }
        }
        all
    }

    /// Calls of the new execution.
    pub fn calls(&self) -> u64 {
        self.processes.iter().map(|process| process.came).sum()
    }

    /// Bytes that were compared.
    pub fn compared(&self) -> u64 {
        self.processes.iter().map(ProcessVerdict::compared).sum()
    }

    /// True if the programs wrote nothing that could be compared, and no file. The verdict is then
    /// about the ends of the programs, and says nothing about names that they made or removed.
    pub fn compared_nothing(&self) -> bool {
        let files = self.files.equal + self.files.different;
        self.compared() == 0 && self.counted() == 0 && files == 0
    }

    /// Bytes that left and were not compared: the log has their number only.
    pub fn counted(&self) -> u64 {
        self.processes.iter().map(|process| process.counted).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{FileCounts, Likeness, Reconstruction};
    use crate::divergence::DivergenceKind;
    use crate::matcher::ProcessMatcher;
    use crate::process::RecordedProcess;
    use crate::verdict::ProcessVerdict;

    /// An execution of a process with threads, which differs at this position, if anywhere.
    fn execution(threads: usize, differs_at: Option<u64>) -> Reconstruction {
        let matcher = ProcessMatcher::new(RecordedProcess::default());
        let divergence = differs_at.map(|position| {
            let mut blank = matcher.blank(DivergenceKind::OtherOutput, "a socket".to_owned());
            blank.position = position;
            blank
        });
        let process = ProcessVerdict {
            pid: 7,
            program: "server".to_owned(),
            recorded_calls: 0,
            matched: 0,
            entered: 0,
            left: 0,
            came: 0,
            counted: 0,
            divergence,
            differs_before: false,
            volatile: Vec::new(),
            complaint: Vec::new(),
            gap: None,
            lacks_calls: false,
            threads,
            own_calls: 0,
        };
        Reconstruction {
            processes: vec![process],
            ..Reconstruction::default()
        }
    }

    #[test]
    fn threads_that_differ_from_execution_to_execution_are_counted_and_never_equal() {
        for (then, now, unsteady) in [
            (Some(3), Some(3), 0),
            (Some(3), Some(4), 1),
            (Some(3), None, 1),
            (None, Some(3), 1),
        ] {
            let mut result = execution(2, now);
            result.compare_again(&execution(2, then));
            assert_eq!(result.unsteady, unsteady, "{then:?} {now:?}");
            let elsewhere = result.unsteady_difference.as_ref();
            let expected = then.filter(|_| now.is_none());
            assert_eq!(elsewhere.map(|d| d.position), expected, "{then:?} {now:?}");
            let is_different = result.likeness() == Likeness::Different;
            assert!(is_different, "{then:?} {now:?}");
        }
    }

    #[test]
    fn a_volatile_part_with_other_bytes_each_time_is_not_unsteady() {
        for (then, now, unsteady) in [(true, true, 0), (true, false, 1), (false, true, 1)] {
            let varies = |position, is_volatile: bool| {
                let mut result = execution(2, Some(position));
                let first = result.processes[0].divergence.as_mut().unwrap();
                first.volatile = is_volatile.then(|| "a date".to_owned());
                result
            };
            let mut result = varies(4, now);
            result.compare_again(&varies(3, then));
            assert_eq!(result.unsteady, unsteady, "{then} {now}");
        }
    }

    #[test]
    fn threads_that_are_equal_at_another_moment_or_differ_at_the_recorded_one_are_confirmed() {
        for (threads, differs_at, shift, is_equal, confirmed) in [
            // At the recorded time: equal, other bytes, other files alone.
            (2, None, 0, true, false),
            (2, Some(3), 0, false, true),
            (2, None, 0, false, true),
            // The same at another moment.
            (2, None, 80, true, true),
            (2, Some(3), 80, false, false),
            (2, None, 80, false, false),
            // Without threads.
            (1, Some(3), 0, false, false),
            (1, None, 0, false, false),
            (1, None, 80, true, false),
        ] {
            let mut result = execution(threads, differs_at);
            result.shift.ns = shift;
            let found = result.is_to_be_confirmed(is_equal);
            assert_eq!(
                found, confirmed,
                "{threads} {differs_at:?} {shift} {is_equal}"
            );
        }
    }

    #[test]
    fn what_was_not_recorded_never_counts_as_equal() {
        let mut lacking = execution(1, None);
        assert_eq!(lacking.likeness(), Likeness::Equal);
        lacking.processes[0].lacks_calls = true;
        assert_eq!(lacking.likeness(), Likeness::EqualWhereRecorded);
        let mut own = execution(1, None);
        own.processes[0].own_calls = 1;
        assert_eq!(own.likeness(), Likeness::EqualWhereRecorded);
        let mut shallow = execution(1, None);
        shallow.shallow = 1;
        assert_eq!(shallow.likeness(), Likeness::EqualWhereRecorded);
        let mut damaged = execution(1, None);
        damaged.lacks_because = Some("the deep log is damaged".to_owned());
        assert_eq!(damaged.likeness(), Likeness::EqualWhereRecorded);
        lacking = execution(1, Some(3));
        lacking.processes[0].lacks_calls = true;
        assert_eq!(lacking.likeness(), Likeness::Different);
    }

    /// An execution that left files of these numbers, and a volatile part of whose output differs
    /// if that is asked.
    fn with_files(equal: usize, different: usize, unknown: usize, varies: bool) -> Reconstruction {
        let mut result = execution(1, varies.then_some(3));
        if let Some(divergence) = &mut result.processes[0].divergence {
            divergence.volatile = Some("a date".to_owned());
        }
        result.files = FileCounts {
            equal,
            different,
            unknown,
        };
        result
    }

    #[test]
    fn a_file_that_differs_or_cannot_be_compared_never_counts_as_equal() {
        for (files, varies, likeness) in [
            ((2, 0, 0), false, Likeness::Equal),
            ((2, 0, 0), true, Likeness::EqualButVolatile),
            ((1, 0, 1), false, Likeness::EqualWhereRecorded),
            ((1, 0, 1), true, Likeness::EqualWhereRecorded),
            ((1, 1, 0), false, Likeness::Different),
            ((0, 1, 1), true, Likeness::Different),
        ] {
            let (equal, different, unknown) = files;
            let result = with_files(equal, different, unknown, varies);
            assert_eq!(result.likeness(), likeness, "{files:?} {varies}");
        }
    }

    #[test]
    fn bytes_of_which_only_the_number_is_known_do_not_count_as_compared() {
        let mut result = execution(1, None);
        (result.processes[0].left, result.processes[0].counted) = (354, 300);
        assert_eq!((result.compared(), result.counted()), (54, 300));
    }

    #[test]
    fn an_execution_without_output_and_files_has_compared_nothing() {
        let nothing = with_files(0, 0, 1, false);
        assert!(nothing.compared_nothing() && execution(1, None).compared_nothing());
        assert!(!with_files(1, 0, 0, false).compared_nothing());
        assert!(!with_files(0, 1, 0, false).compared_nothing());
        for (left, counted) in [(4, 0), (4, 4)] {
            let mut result = execution(1, None);
            (result.processes[0].left, result.processes[0].counted) = (left, counted);
            assert!(!result.compared_nothing(), "{left} {counted}");
        }
    }

    #[test]
    fn only_a_difference_of_several_threads_may_be_a_race() {
        assert!(execution(2, Some(3)).may_race());
        assert!(!execution(1, Some(3)).may_race());
        assert!(!execution(2, None).may_race());
    }
}
