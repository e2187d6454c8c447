//! Which programs of a run are deep, and which are only shallow.
//!
//! A program is deep if the run's deep log has it from its beginning to its end. Calls that it
//! makes without libc are not in the log: the files with such code are named.

use std::collections::{HashMap, HashSet};

use backstory_deep::{DeepLog, DeepProgram};
use backstory_eventlog::event::Bytes;
use backstory_query::answer::ProcessLine;
use backstory_reconstruct::verdict::RecordEnd;
use backstory_store::Home;

use crate::error::{Failure, complain, one_line};
use crate::json::Value;
use crate::text::when;
use crate::text::words::counted;

/// How many programs are named.
const NAMED: usize = 5;

/// Most ns by which the times in the log and in the deep log of a run differ.
const CLOCKS_DIFFER: i64 = 100_000;

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
        let at = place_of(began, path, &all.collect::<Vec<_>>())?;
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
    let name = |path: Option<&[u8]>| {
        path?
            .rsplit(|byte| *byte == b'/')
            .next()
            .map(<[u8]>::to_vec)
    };
    let is_named = |at: usize| path.is_some() && name(all[at].1) == name(path);
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

/// The programs of a run that has a deep log.
pub struct DeepPrograms {
    deep: Vec<DeepProgram>,
    /// Process id and program of each one that the deep log lacks, wholly or in part.
    shallow: Vec<(u32, Vec<u8>)>,
    /// The files whose code makes system calls without libc. The log may lack some of these.
    own_calls: Vec<Bytes>,
    bytes: u64,
}

/// The first of these names, with a sign that there are more. `None`: the list is empty.
fn first_names(mut names: impl Iterator<Item = String>) -> Option<String> {
    let shown: Vec<String> = names.by_ref().take(NAMED).collect();
    let more = if names.next().is_some() { ", …" } else { "" };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}

impl DeepPrograms {
    /// Compares the deep log with the programs that the run executed.
    pub fn of(log: &DeepLog, executed: &[ProcessLine], own_calls: Vec<Bytes>) -> DeepPrograms {
        let all = log.programs();
        let activities = activities_of(log, &all, executed);
        let whole = all.iter().zip(activities);
        let whole: HashSet<_> = whole
            .filter_map(|(program, activity)| activity.filter(|_| program.is_whole))
            .collect();
        let shallow = executed.iter().filter(|line| !whole.contains(&line.id));
        let shallow = shallow.filter_map(|line| {
            Some((
                line.activity.pid,
                line.activity.exec_path.as_ref()?.to_vec(),
            ))
        });
        DeepPrograms {
            shallow: shallow.collect(),
            own_calls,
            deep: all,
            bytes: log.len() as u64,
        }
    }

    /// The answer in JSON.
    pub fn json(&self) -> Value {
        let deep = self.deep.iter().filter(|program| program.is_whole);
        let deep = deep.map(|program| {
            Value::Object(vec![
                ("pid", program.process.pid.into()),
                ("epoch", program.process.epoch.into()),
                (
                    "exec_path",
                    program.program.as_deref().map_or(Value::Null, Value::from),
                ),
            ])
        });
        let shallow = self.shallow.iter().map(|(pid, path)| {
            Value::Object(vec![
                ("pid", (*pid).into()),
                ("exec_path", path.as_slice().into()),
            ])
        });
        Value::Object(vec![
            ("bytes", self.bytes.into()),
            ("deep", Value::Array(deep.collect())),
            ("shallow", Value::Array(shallow.collect())),
            ("own_calls", Value::array(&self.own_calls)),
        ])
    }

    /// The lines of `show`: their names and values.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let deep = self.deep.iter().filter(|program| program.is_whole).count();
        let size = when::size(self.bytes);
        let deep = counted(deep, "process is deep", "processes are deep");
        let mut lines = vec![("deep", format!("{deep} ({size})"))];
        let shallow = self.shallow.iter();
        let shallow =
            shallow.map(|(pid, path)| format!("{} ({pid})", String::from_utf8_lossy(path)));
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
}

#[cfg(test)]
mod tests {
    use super::{CLOCKS_DIFFER, place_of};

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
