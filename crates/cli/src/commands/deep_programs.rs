//! Which programs of a run are deep, and which are only shallow.
//!
//! A program is deep if the run's deep log has it from its beginning to its end.

use std::collections::HashSet;

use backstory_deep::{DeepLog, DeepProgram};
use backstory_query::answer::ProcessLine;
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

/// The activity that was running when the deep stream of a program began.
fn activity_of(log: &DeepLog, program: &DeepProgram, executed: &[ProcessLine]) -> Option<u64> {
    let began = log.time_of(program.began).saturating_add(CLOCKS_DIFFER);
    let same = executed.iter().filter(|line| {
        line.activity.pid == program.process.pid && line.activity.interval.start <= began
    });
    same.max_by_key(|line| line.activity.interval.start)
        .map(|line| line.id)
}

/// The command of a run, if the deep log has nothing of it: the program is static, for example.
pub fn shallow_command<'e>(log: &DeepLog, executed: &'e [ProcessLine]) -> Option<&'e ProcessLine> {
    let damage = log.damage();
    let first = executed.iter().find(|line| !line.marked)?;
    let is_first = |program: &DeepProgram| activity_of(log, program, executed) == Some(first.id);
    let is_deep = log.programs().iter().any(is_first);
    (!is_deep && !damage.no_end && damage.bytes == 0).then_some(first)
}

/// The programs of a run that has a deep log.
pub struct DeepPrograms {
    deep: Vec<DeepProgram>,
    /// Process id and program of each one that the deep log lacks, wholly or in part.
    shallow: Vec<(u32, Vec<u8>)>,
    bytes: u64,
}

impl DeepPrograms {
    /// Compares the deep log with the programs that the run executed.
    pub fn of(log: &DeepLog, executed: &[ProcessLine]) -> DeepPrograms {
        let all = log.programs();
        let whole = all.iter().filter(|program| program.is_whole);
        let whole: HashSet<_> = whole
            .filter_map(|program| activity_of(log, program, executed))
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
        ])
    }

    /// The lines of `show`: their names and values.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let deep = self.deep.iter().filter(|program| program.is_whole).count();
        let size = when::size(self.bytes);
        let deep = counted(deep, "process is deep", "processes are deep");
        let mut lines = vec![("deep", format!("{deep} ({size})"))];
        let names: Vec<String> = self
            .shallow
            .iter()
            .take(NAMED)
            .map(|(pid, path)| format!("{} ({pid})", String::from_utf8_lossy(path)))
            .collect();
        if !names.is_empty() {
            let more = if self.shallow.len() > NAMED {
                ", …"
            } else {
                ""
            };
            let text = format!("{}{more}", names.join(", "));
            lines.push(("  shallow", one_line(&text)));
        }
        lines
    }
}
