//! Which programs of a run are deep, and which are only shallow.
//!
//! A program is deep if the run's deep log has it from its beginning to its end. Calls that it
//! makes without libc are not in the log. So a program with such code is deep, but may lack calls,
//! and a Go program is shallow.

use std::collections::{BTreeSet, HashMap, HashSet};

use backstory_deep::{DeepLog, DeepProgram};
use backstory_eventlog::event::Bytes;
use backstory_query::answer::ProcessLine;
use backstory_reconstruct::verdict::RecordEnd;
use backstory_store::Home;
use backstory_vocabulary::{Word, vocabulary};

use super::own_calls::{OwnCalls, ProcessCode};
use crate::error::{Failure, complain, one_line};
use crate::json::Value;
use crate::text::when;
use crate::text::words::counted;

/// How many programs are named.
const NAMED: usize = 5;

/// Most ns by which the times in the log and in the deep log of a run differ.
const CLOCKS_DIFFER: i64 = 100_000;

vocabulary! {
    /// How much of a process the deep log of its run has.
    pub enum DeepState: "state of a process in a deep run" {
        /// All of it, from its beginning to its end.
        Deep = "deep",
        /// The same, and its code can make system calls without libc. The log has none of these.
        MayLackCalls = "deep, may lack calls",
        /// Not all of it, or nothing.
        Shallow = "shallow",
    }
}

impl DeepState {
    /// The state of a process that the log has from its beginning to its end.
    fn of_whole(code: &ProcessCode) -> DeepState {
        match (code.is_go, code.files.is_empty()) {
            (true, _) => DeepState::Shallow,
            (false, false) => DeepState::MayLackCalls,
            (false, true) => DeepState::Deep,
        }
    }
}

/// The deep log of a run. `None` if the run has none.
pub fn deep_log(home: &Home, run: &str) -> Result<Option<DeepLog>, Failure> {
    let path = home.deep_log_path(run);
    if !path.exists() {
        return Ok(None);
    }
    let log = DeepLog::open(&path).map_err(|error| Failure::not_found(error.to_string()))?;
    Ok(Some(log))
}

/// Says that runs left this machine without their deep logs: those have secrets.
pub fn tell_left_behind<'r>(home: &Home, runs: impl Iterator<Item = &'r str>) {
    let deep: Vec<&str> = runs
        .filter(|run| home.deep_log_path(run).exists())
        .collect();
    let Some(first) = deep.first() else {
        return;
    };
    let those = match deep.len() {
        1 => format!("the deep log of run {first} stays"),
        many => format!("the deep logs of {many} runs stay"),
    };
    complain(&format!(
        "{those} on this machine: it can have passwords and keys (docs/howto/deep.md)"
    ));
}

/// The activity of each program: the one that was running when its deep stream began.
fn activities_of(
    log: &DeepLog,
    programs: &[DeepProgram],
    executed: &[ProcessLine],
) -> Vec<Option<u64>> {
    let mut of_pid: HashMap<u32, Vec<&ProcessLine>> = HashMap::new();
    for line in executed {
        of_pid.entry(line.activity.pid).or_default().push(line);
    }
    for lines in of_pid.values_mut() {
        lines.sort_by_key(|line| line.activity.interval.start);
    }
    let activity = |program: &DeepProgram| {
        let lines = of_pid.get_mut(&program.process.pid)?;
        let began = log.time_of(program.began);
        let all = lines.iter().map(|line| {
            let path = line.activity.exec_path.as_deref();
            (line.activity.interval.start, path)
        });
        let path = program.program.as_deref();
        let all: Vec<_> = all.collect();
        let at = match log.has_dates() {
            true => place_of(began, path, &all)?,
            false => place_by_name(path, &all)?,
        };
        let id = lines[at].id;
        // The programs before it in this process have the activities before.
        lines.truncate(at + usize::from(path.is_none()));
        Some(id)
    };
    let mut found: Vec<Option<u64>> = programs.iter().rev().map(activity).collect();
    found.reverse();
    found
}

/// Which of the programs that a process executed began a deep stream at this time: their starts and
/// paths, in order. A process may execute the next program faster than the clocks agree. Then the
/// name decides.
fn place_of(began: i64, path: Option<&[u8]>, all: &[(i64, Option<&[u8]>)]) -> Option<usize> {
    let before = began.saturating_add(CLOCKS_DIFFER);
    let last = all
        .partition_point(|(start, _)| *start <= before)
        .checked_sub(1)?;
    let is_named = |at: usize| path.is_some() && file_name_of(all[at].1) == file_name_of(path);
    let start = all[last].0;
    if last == 0 || start < began.saturating_sub(CLOCKS_DIFFER) {
        return Some(last);
    }
    let is_earlier = match (is_named(last - 1), is_named(last)) {
        (earlier, later) if earlier != later => earlier,
        _ => start > began,
    };
    Some(last - usize::from(is_earlier))
}

/// The same without dates: the last one of that name, or else the last one.
fn place_by_name(path: Option<&[u8]>, all: &[(i64, Option<&[u8]>)]) -> Option<usize> {
    let last = all.len().checked_sub(1)?;
    let same = path.and_then(|path| {
        let is_same = |one: &(i64, Option<&[u8]>)| file_name_of(one.1) == file_name_of(Some(path));
        all.iter().rposition(is_same)
    });
    Some(same.unwrap_or(last))
}

/// The last part of a path.
fn file_name_of(path: Option<&[u8]>) -> Option<&[u8]> {
    path?.rsplit(|byte| *byte == b'/').next()
}

/// The activities of the programs that went on behind these ends of their records, each with the
/// date of that end. Where the clocks do not say which one a program is, all of its process count.
/// A log that was cut off early has no dates: all of the time then counts.
pub fn activities_behind(
    log: &DeepLog,
    ends: &[RecordEnd],
    executed: &[ProcessLine],
) -> HashMap<u64, i64> {
    let programs = log.programs();
    let activities = activities_of(log, &programs, executed);
    let mut found: HashMap<u64, i64> = HashMap::new();
    for (program, activity) in programs.iter().zip(activities) {
        let process = &program.process;
        let Some(end) = ends.iter().find(|end| end.epoch == process.epoch) else {
            continue;
        };
        let since = date_before(log, end.until);
        let of_process = executed
            .iter()
            .filter(|line| line.activity.pid == process.pid);
        let ids: Vec<u64> = match activity {
            Some(id) => vec![id],
            None => of_process.map(|line| line.id).collect(),
        };
        for id in ids {
            let known = found.entry(id).or_insert(since);
            *known = since.min(*known);
        }
    }
    found
}

/// The activities of the programs that the deep log does not have. If it is damaged, it may have
/// had them. All of their time counts.
pub fn activities_without_record(log: &DeepLog, executed: &[ProcessLine]) -> HashMap<u64, i64> {
    let known = activities_of(log, &log.programs(), executed);
    let known: HashSet<u64> = known.into_iter().flatten().collect();
    let unknown = executed.iter().filter(|line| !known.contains(&line.id));
    unknown.map(|line| (line.id, i64::MIN)).collect()
}

/// All activities, each with the date of a time-stamp counter of the deep log, as
/// [`activities_behind`] has it.
pub fn activities_since(
    log: &DeepLog,
    counter: u64,
    executed: &[ProcessLine],
) -> HashMap<u64, i64> {
    let since = date_before(log, Some(counter));
    executed.iter().map(|line| (line.id, since)).collect()
}

/// A date that is not behind this counter. Without one, all of the time counts.
fn date_before(log: &DeepLog, counter: Option<u64>) -> i64 {
    // Behind the last reading of the clocks, dates get less exact.
    let until = counter.zip(log.last_reading());
    let date = until.map(|(until, (last, _))| log.time_of(until.min(last)));
    date.map_or(i64::MIN, |date| date.saturating_sub(CLOCKS_DIFFER))
}

/// True if the deep log has the command of a run from its beginning to its end.
pub fn has_command(log: &DeepLog, executed: &[ProcessLine]) -> bool {
    let programs = log.programs();
    let first = executed.iter().find(|line| !line.marked);
    let mut all = programs.iter().zip(activities_of(log, &programs, executed));
    all.any(|(program, activity)| {
        program.is_whole && activity.is_some() && activity == first.map(|line| line.id)
    })
}

/// The command of a run, if the deep log has nothing of it: the program is static, for example.
pub fn shallow_command<'e>(log: &DeepLog, executed: &'e [ProcessLine]) -> Option<&'e ProcessLine> {
    let damage = log.damage();
    let first = executed.iter().find(|line| !line.marked)?;
    let is_deep = activities_of(log, &log.programs(), executed).contains(&Some(first.id));
    (!is_deep && !damage.no_end && damage.bytes == 0).then_some(first)
}

/// A process that the deep log has from its beginning to its end.
struct DeepLine {
    program: DeepProgram,
    state: DeepState,
}

/// The programs of a run that has a deep log.
pub struct DeepPrograms {
    deep: Vec<DeepLine>,
    /// Process id and program of each one that the deep log lacks, wholly or in part.
    shallow: Vec<(u32, Vec<u8>)>,
    /// The files whose code makes system calls without libc. The log may lack some of these.
    own_calls: Vec<Bytes>,
    /// Those among them that the processes in `deep` run.
    of_deep: BTreeSet<Bytes>,
    bytes: u64,
    /// The parts of the log that could not be read, in words.
    damage: Option<String>,
}

/// The first of these names, with a sign that there are more. `None`: the list is empty.
fn first_names(mut names: impl Iterator<Item = String>) -> Option<String> {
    let shown: Vec<String> = names.by_ref().take(NAMED).collect();
    let more = if names.next().is_some() { ", …" } else { "" };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}

/// A process as the lines of `show` name it. The record of a child by `fork` names no program.
fn named(pid: u32, path: Option<&[u8]>) -> String {
    match path {
        Some(path) => format!("{} ({pid})", String::from_utf8_lossy(path)),
        None => format!("process {pid}"),
    }
}

impl DeepPrograms {
    /// Compares the deep log with the programs that the run executed.
    pub fn of(log: &DeepLog, executed: &[ProcessLine], own_calls: &OwnCalls) -> DeepPrograms {
        let all = log.programs();
        let activities = activities_of(log, &all, executed);
        let (mut deep, mut whole) = (Vec::new(), HashSet::new());
        let mut of_deep = BTreeSet::new();
        for (program, activity) in all.into_iter().zip(activities) {
            if !program.is_whole {
                continue;
            }
            let code = code_of(&program, activity, executed, own_calls);
            let state = DeepState::of_whole(&code);
            if state == DeepState::Shallow {
                continue;
            }
            whole.extend(activity);
            of_deep.extend(code.files);
            deep.push(DeepLine { program, state });
        }
        let shallow = executed.iter().filter(|line| !whole.contains(&line.id));
        let shallow = shallow.filter_map(|line| {
            Some((
                line.activity.pid,
                line.activity.exec_path.as_ref()?.to_vec(),
            ))
        });
        DeepPrograms {
            deep,
            shallow: shallow.collect(),
            own_calls: own_calls.files.clone(),
            of_deep,
            bytes: log.len() as u64,
            damage: log.damage().words(),
        }
    }

    /// The answer in JSON.
    pub fn json(&self) -> Value {
        let deep = self.deep.iter().map(|line| {
            let program = &line.program;
            Value::Object(vec![
                ("pid", program.process.pid.into()),
                ("epoch", program.process.epoch.into()),
                (
                    "exec_path",
                    program.program.as_deref().map_or(Value::Null, Value::from),
                ),
                ("state", line.state.word().into()),
            ])
        });
        let shallow = self.shallow.iter().map(|(pid, path)| {
            Value::Object(vec![
                ("pid", (*pid).into()),
                ("exec_path", path.as_slice().into()),
                ("state", DeepState::Shallow.word().into()),
            ])
        });
        Value::Object(vec![
            ("bytes", self.bytes.into()),
            ("damage", self.damage.as_ref().into()),
            ("deep", Value::Array(deep.collect())),
            ("shallow", Value::Array(shallow.collect())),
            ("own_calls", Value::array(&self.own_calls)),
        ])
    }

    /// The lines of `show`: their names and values.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("deep", self.count())];
        lines.extend(self.damage.iter().map(|words| ("  missing", words.clone())));
        let lacking = self.lacking();
        let lacking =
            lacking.map(|one| named(one.program.process.pid, one.program.program.as_deref()));
        if let Some(names) = first_names(lacking) {
            lines.push(("  may lack", one_line(&names)));
        }
        let shallow = self.shallow.iter();
        let shallow = shallow.map(|(pid, path)| named(*pid, Some(path)));
        if let Some(names) = first_names(shallow) {
            lines.push(("  shallow", one_line(&names)));
        }
        let own = self.own_calls.iter();
        let own = own.map(|path| String::from_utf8_lossy(path).into_owned());
        if let Some(names) = first_names(own) {
            let text = format!("{names} can make system calls without libc, which no record has");
            lines.push(("  own calls", one_line(&text)));
        }
        lines
    }

    /// The processes whose record may lack calls.
    fn lacking(&self) -> impl Iterator<Item = &DeepLine> {
        let all = self.deep.iter();
        all.filter(|line| line.state == DeepState::MayLackCalls)
    }

    /// How many processes are deep, and how many of them may lack calls.
    fn count(&self) -> String {
        let deep = counted(self.deep.len(), "process is deep", "processes are deep");
        let text = format!("{deep} ({})", when::size(self.bytes));
        let files: BTreeSet<String> = self.of_deep.iter().map(|path| file_name(path)).collect();
        match first_names(files.into_iter()) {
            Some(names) => {
                let lacking = self.lacking().count();
                let names = one_line(&names);
                format!("{text}, {lacking} of them may lack calls (own system calls: {names})")
            }
            None => text,
        }
    }
}

/// The last part of a path.
fn file_name(path: &[u8]) -> String {
    let name = path.rsplit(|byte| *byte == b'/').next();
    String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
}

/// The code of a program that makes calls by itself. A child by `fork` that then executed a program
/// ran the code of its parent. Where the clocks do not say which one a program is, all of its
/// process count.
fn code_of(
    program: &DeepProgram,
    activity: Option<u64>,
    executed: &[ProcessLine],
    own_calls: &OwnCalls,
) -> ProcessCode {
    let of_process = executed
        .iter()
        .filter(|line| line.activity.pid == program.process.pid);
    match activity {
        Some(id) => own_calls.of_processes([id]),
        None if program.program.is_none() => {
            let first = of_process.min_by_key(|line| line.activity.interval.start);
            own_calls.of_processes(first.and_then(|line| line.parent_id))
        }
        None => own_calls.of_processes(of_process.map(|line| line.id)),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        CLOCKS_DIFFER, DeepLine, DeepPrograms, DeepState, ProcessCode, place_by_name, place_of,
    };
    use backstory_deep::{DeepProcess, DeepProgram};

    /// Deep processes in these states, of programs `/bin/NUMBER`. The code of those that may lack
    /// calls is in one file.
    fn with(states: &[DeepState]) -> DeepPrograms {
        let line = |(pid, state): (u32, &DeepState)| DeepLine {
            program: DeepProgram {
                process: DeepProcess {
                    epoch: u64::from(pid),
                    pid,
                    own_pid: pid,
                    parent: 0,
                    tids: vec![pid],
                },
                program: Some(format!("/bin/{pid}").into_bytes()),
                began: 0,
                is_whole: true,
                lacks_end: false,
            },
            state: *state,
        };
        let own: Vec<Box<[u8]>> = match states.contains(&DeepState::MayLackCalls) {
            true => vec![Box::from(&b"/usr/lib/libown.so"[..])],
            false => Vec::new(),
        };
        DeepPrograms {
            deep: (1..).zip(states).map(line).collect(),
            shallow: Vec::new(),
            of_deep: own.iter().cloned().collect(),
            own_calls: own,
            bytes: 10,
            damage: None,
        }
    }

    #[test]
    fn the_number_of_deep_processes_says_how_many_of_them_may_lack_calls() {
        use DeepState::{Deep, MayLackCalls};
        let lines = with(&[Deep, MayLackCalls, MayLackCalls]).lines();
        let part = ", 2 of them may lack calls (own system calls: libown.so)";
        let deep = &lines[0].1;
        assert!(deep.starts_with("3 processes are deep ("), "{deep}");
        assert!(deep.ends_with(part), "{deep}");
        assert_eq!(
            lines[1],
            ("  may lack", "/bin/2 (2), /bin/3 (3)".to_owned())
        );
        let lines = with(&[Deep]).lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let deep = &lines[0].1;
        assert!(
            deep.starts_with("1 process is deep (") && deep.ends_with(')'),
            "{deep}"
        );
        assert!(!deep.contains("lack"), "{deep}");
    }

    #[test]
    fn a_whole_record_of_a_go_program_is_shallow_and_of_other_code_it_may_lack_calls() {
        let code = |is_go, files: &[&[u8]]| ProcessCode {
            is_go,
            files: files.iter().map(|path| Box::from(*path)).collect(),
        };
        let state = |is_go, files: &[&[u8]]| DeepState::of_whole(&code(is_go, files));
        assert_eq!(state(true, &[]), DeepState::Shallow);
        assert_eq!(state(true, &[b"/usr/lib/libown.so"]), DeepState::Shallow);
        assert_eq!(
            state(false, &[b"/usr/lib/libown.so"]),
            DeepState::MayLackCalls
        );
        assert_eq!(state(false, &[]), DeepState::Deep);
    }

    #[test]
    fn the_lines_of_a_damaged_log_say_what_could_not_be_read() {
        let mut programs = with(&[DeepState::Deep]);
        programs.damage = Some("the deep log is damaged".to_owned());
        let missing = ("  missing", "the deep log is damaged".to_owned());
        assert_eq!(programs.lines()[1], missing);
    }

    #[test]
    fn a_program_of_a_log_without_dates_has_the_last_activity_of_its_name() {
        let all: [(i64, Option<&[u8]>); 3] = [
            (1, Some(b"/bin/sh")),
            (2, Some(b"/bin/cat")),
            (3, Some(b"/bin/sh")),
        ];
        assert_eq!(place_by_name(Some(b"./sh"), &all), Some(2));
        assert_eq!(place_by_name(Some(b"cat"), &all), Some(1));
        assert_eq!(place_by_name(Some(b"cat"), &all[..1]), Some(0));
        assert_eq!(place_by_name(None, &all), Some(2));
        assert_eq!(place_by_name(None, &[]), None);
    }

    #[test]
    fn a_program_that_executes_another_one_at_once_has_its_own_activity() {
        let all: [(i64, Option<&[u8]>); 2] = [
            (1_000_000, Some(b"/bin/launcher")),
            (1_500_000, Some(b"/bin/next")),
        ];
        let place = |began, path: &[u8]| place_of(began, Some(path), &all);
        let soon = CLOCKS_DIFFER / 2;
        assert_eq!(place(1_500_000 - soon, b"./launcher"), Some(0));
        assert_eq!(place(1_500_000 + soon, b"./launcher"), Some(0));
        assert_eq!(place(1_500_000 - soon, b"/bin/next"), Some(1));
        // A script has the name of another file.
        assert_eq!(place(1_500_000 - soon, b"script"), Some(0));
        assert_eq!(place(1_500_000 + soon, b"script"), Some(1));
        assert_eq!(place(1_500_000 + 2 * CLOCKS_DIFFER, b"./launcher"), Some(1));
        assert_eq!(place(1_000_000 - soon, b"./launcher"), Some(0));
        assert_eq!(place(1_000_000 - 2 * CLOCKS_DIFFER, b"./launcher"), None);
    }
}
