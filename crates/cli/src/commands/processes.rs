//! `processes`: prints the programs that a run executed, as a tree.

use backstory_ordering::SmallSort;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use backstory_eventlog::event::UNNUMBERED;
use backstory_query as query;
use backstory_query::JoinedLines;
use backstory_query::answer::{ProcessFiles, ProcessLine};
use backstory_vocabulary::Word;

use super::file_choice::{self, Hiding, OwnFilter};
use super::judged_records::record_fields;
use super::run_summary::job;
use super::{Outcome, answer, here};
use crate::args::search::{ProcessesArgs, SortKey};
use crate::current_store::CurrentStore;
use crate::file_inspector;
use crate::json::{self, Value};
use crate::text::paths::shown;
use crate::text::shell::{Call, SHORT};
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;

/// The most attributes of an activity in its line.
const SAID: usize = 4;

/// Prints the processes of a run.
pub fn run(args: ProcessesArgs, store: Option<&Path>) -> Outcome {
    let filter = file_choice::filter(&args.which)?;
    let current = CurrentStore::open(store)?;
    let run = current.run(args.run.run.as_deref())?;
    let lines = query::processes(&current.store, &run)?;
    let hiding = match (file_choice::hiding(&args.which), args.run.json, args.sort) {
        // Every process uses system files, so they select none.
        (Hiding::System, ..) => Hiding::Nothing,
        (Hiding::NotOwn, true, _) if !args.which.own => Hiding::Nothing,
        (hiding, ..) => hiding,
    };
    let conditions = !filter.access.is_empty() || filter.by.is_some() || !filter.under.is_empty();
    let by_size = args.sort == Some(SortKey::Size);
    let mut list = match args.run.json {
        true => Processes::apart(lines),
        false => Processes::joined(lines),
    };
    if conditions || by_size || hiding == Hiding::NotOwn {
        let only_own = (hiding == Hiding::NotOwn).then(|| OwnFilter::of(&current, &run));
        let only_own = only_own.transpose()?;
        let own = |path: &[u8], _: Option<&_>| {
            Ok(only_own.as_ref().is_none_or(|own| own.is_own(path, &[])))
        };
        let used = query::process_files(&current.store, &run, &filter, &own)?;
        // A process without any file is listed unless files are a condition.
        let needed = conditions || hiding == Hiding::NotOwn;
        list.select(&used, needed, !conditions);
    }
    answer(|out| match (args.run.json, args.sort) {
        (true, _) => json::lines(out, list.sorted(args.sort).into_iter().map(json)),
        (false, None) => list.tree(&here(), Style::of_stdout(), out),
        (false, Some(key)) => list.flat(key, &here(), Style::of_stdout(), out),
    })
}

fn json(line: &ProcessLine) -> Value {
    let activity = &line.activity;
    Value::Object(vec![
        ("id", line.id.into()),
        ("parent_id", line.parent_id.into()),
        ("pid", activity.pid.into()),
        ("epoch", activity.epoch.into()),
        ("parent", line.parent_pid.into()),
        ("exec_path", activity.exec_path.as_ref().into()),
        ("argv", Value::array(&activity.argv)),
        ("cwd", (&activity.cwd).into()),
        ("env_set", Value::array(&activity.env_set)),
        ("env_unset", Value::array(&activity.env_unset)),
        ("job", job(line.job_rank.as_ref())),
        ("exit", activity.exit.into()),
        ("signal", activity.signal.into()),
        ("execed", activity.execed.into()),
        ("start", Value::Time(activity.interval.start)),
        ("end", Value::Time(activity.interval.end)),
        ("via", activity.via.word().into()),
        ("lookups_known", activity.lookups_known.into()),
        ("marked", line.marked.into()),
        ("processor_ns", line.processor_time.into()),
        ("attributes", attributes(line)),
        ("records", records(line)),
        ("transaction", transaction(line)),
    ])
}

/// The attributes that the program gave the activity.
fn attributes(line: &ProcessLine) -> Value {
    let pairs = line.notes.attributes.iter();
    let named = pairs.map(|(name, value)| {
        let name = String::from_utf8_lossy(name).into_owned();
        (name, Value::Bytes(value.to_vec()))
    });
    Value::Map(named.collect())
}

/// The extended records that the program added.
fn records(line: &ProcessLine) -> Value {
    Value::Array(line.notes.records.iter().map(record_fields).collect())
}

/// The statements of a transaction, the columns that they used, and more.
fn transaction(line: &ProcessLine) -> Value {
    let fact = line.transaction.as_deref();
    let fact = fact.and_then(|fact| serde_json::from_slice(fact).ok());
    fact.map_or(Value::Null, |fact| file_inspector::json(&fact))
}

/// The processes of a run, and which of them are listed.
struct Processes {
    lines: Vec<ProcessLine>,
    /// The line of each activity.
    index: HashMap<u64, usize>,
    listed: Vec<bool>,
    /// Bytes of the files that each wrote.
    written: Vec<u64>,
    /// The epochs, by process, after which the process went on by a mark of its program.
    goes_on: HashSet<(u32, u32)>,
    /// The epoch of the last activity of each line.
    last_epochs: Vec<u32>,
    /// The processes that executed a program.
    executed: HashSet<u32>,
}

impl Processes {
    /// A line for each activity.
    fn apart(lines: Vec<ProcessLine>) -> Processes {
        let index = lines.iter().enumerate();
        let index = index.map(|(at, line)| (line.id, at)).collect();
        let last_epochs = lines.iter().map(|line| line.activity.epoch).collect();
        Processes::listed(HashSet::new(), last_epochs, lines, index)
    }

    /// A line for each program and each named part of it.
    fn joined(lines: Vec<ProcessLine>) -> Processes {
        let marked = lines.iter().filter(|line| line.marked);
        let before = |line: &ProcessLine| line.activity.epoch.saturating_sub(1);
        let goes_on = marked.map(|line| (line.activity.pid, before(line)));
        let goes_on = goes_on.collect();
        let joined = JoinedLines::of(lines);
        Processes::listed(goes_on, joined.last_epochs, joined.lines, joined.places)
    }

    fn listed(
        goes_on: HashSet<(u32, u32)>,
        last_epochs: Vec<u32>,
        lines: Vec<ProcessLine>,
        index: HashMap<u64, usize>,
    ) -> Processes {
        let by_exec = |line: &&ProcessLine| !line.marked && line.activity.epoch > 0;
        let executed = lines.iter().filter(by_exec);
        let executed = executed.map(|line| line.activity.pid).collect();
        Processes {
            goes_on,
            last_epochs,
            executed,
            index,
            listed: vec![true; lines.len()],
            written: vec![0; lines.len()],
            lines,
        }
    }

    /// Lists the processes that used the wanted files and, if `with_ancestors`, the processes that
    /// started them.
    fn select(&mut self, used: &[ProcessFiles], needed: bool, with_ancestors: bool) {
        if needed {
            self.listed.fill(false);
        }
        for one in used {
            let Some(&at) = self.index.get(&one.id) else {
                continue;
            };
            self.written[at] += one.written;
            let mut next = (needed && one.accepted).then_some(at);
            while let Some(at) = next.filter(|at| !self.listed[*at]) {
                self.listed[at] = true;
                let parent = self.lines[at].parent_id.filter(|_| with_ancestors);
                next = parent.and_then(|parent| self.index.get(&parent).copied());
            }
        }
    }

    /// The listed processes in this order; by default in the order of their start.
    fn sorted(&self, key: Option<SortKey>) -> Vec<&ProcessLine> {
        let mut found: Vec<usize> = (0..self.lines.len()).collect();
        found.retain(|at| self.listed[*at]);
        let duration = |at: &usize| {
            let interval = self.lines[*at].activity.interval;
            Reverse(interval.end - interval.start)
        };
        match key {
            None => {}
            Some(SortKey::Time) => found.sort_small_by_key(duration),
            Some(SortKey::Size) => found.sort_small_by_key(|at| Reverse(self.written[*at])),
            Some(SortKey::Path) => {
                found.sort_small_by(|a, b| {
                    let path = |at: usize| &self.lines[at].activity.exec_path;
                    path(*a).cmp(path(*b))
                });
            }
        }
        found.into_iter().map(|at| &self.lines[at]).collect()
    }

    /// One process in a line, without a tree.
    fn flat(
        &self,
        key: SortKey,
        here: &[u8],
        style: Style,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let lines = self.sorted(Some(key));
        for line in lines.into_iter().filter(|line| !self.is_part(line)) {
            let written = match key {
                SortKey::Size => {
                    format!("{:>9}  ", when::size(self.written[self.index[&line.id]]))
                }
                _ => String::new(),
            };
            let command = style.paint(Role::Command, &self.command(line, here));
            writeln!(out, "{written}{command}{}", self.outcome(line, style))?;
        }
        self.count_the_rest(style, out)
    }

    /// Draws children below the exec epoch that started them, in order of their start.
    fn tree(&self, here: &[u8], style: Style, out: &mut impl Write) -> io::Result<()> {
        let lines = &self.lines;
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); lines.len()];
        let mut roots = Vec::new();
        for at in (0..lines.len()).filter(|at| self.has_line(*at)) {
            match self.parent_of(at) {
                Some(parent) => children[parent].push(at),
                None => roots.push(at),
            }
        }
        let start = |at: &usize| lines[*at].activity.interval.start;
        roots.sort_small_by_key(start);
        children
            .iter_mut()
            .for_each(|group| group.sort_small_by_key(start));
        let mut stack: Vec<(usize, usize)> = roots.into_iter().rev().map(|at| (at, 0)).collect();
        while let Some((at, depth)) = stack.pop() {
            let line = &lines[at];
            let parent = self.parent_of(at);
            let from = parent.map_or(here, |parent| &lines[parent].activity.cwd);
            let lead = "  ".repeat(depth.min(40));
            writeln!(
                out,
                "{lead}{}{}",
                style.paint(Role::Command, &self.command(line, from)),
                self.outcome(line, style)
            )?;
            stack.extend(children[at].iter().rev().map(|&child| (child, depth + 1)));
        }
        self.count_the_rest(style, out)
    }

    fn count_the_rest(&self, style: Style, out: &mut impl Write) -> io::Result<()> {
        let hidden = (0..self.lines.len())
            .filter(|at| !self.listed[*at] && !self.is_part(&self.lines[*at]))
            .count();
        if hidden == 0 {
            return Ok(());
        }
        let hidden = counted(hidden, "more process", "more processes");
        let note = format!("… and {hidden} (--all lists them)");
        writeln!(out, "{}", style.paint(Role::Dim, &note))
    }

    /// How long the epoch took, and how it ended unless it succeeded.
    fn outcome(&self, line: &ProcessLine, style: Style) -> String {
        let activity = &line.activity;
        let took = when::duration(activity.interval.end - activity.interval.start);
        let ended = match (activity.exit, activity.signal, activity.execed) {
            (Some(0), ..) => String::new(),
            (Some(code), ..) => format!(", {}", style.paint(Role::Bad, &format!("exit {code}"))),
            (None, Some(signal), _) => {
                format!(", {}", style.paint(Role::Bad, &format!("signal {signal}")))
            }
            (None, None, true) if self.ends_in_a_mark(line) => String::new(),
            (None, None, true) => ", then exec".to_owned(),
            (None, None, false) if line.marked => String::new(),
            (None, None, false) => ", end not observed".to_owned(),
        };
        let said = line.notes.attributes.iter().take(SAID);
        let mut said: String = said
            .map(|(name, value)| {
                let pair = [&**name, b"=", &**value].concat();
                format!("  {}", style.paint(Role::Dim, &shown(&pair)))
            })
            .collect();
        let more = line.notes.attributes.len().saturating_sub(SAID);
        if more > 0 {
            let note = format!("  … and {more} more attributes (--json has all)");
            said += &style.paint(Role::Dim, &note);
        }
        // A number above those of processes is of an activity inside one.
        let process = match activity.pid < UNNUMBERED {
            true => format!("pid {}, ", activity.pid),
            false => String::new(),
        };
        let rank = line.job_rank.as_ref();
        let rank = rank.map_or_else(String::new, |rank| format!(", {rank}"));
        format!("  [{process}{took}{ended}{rank}]{said}")
    }

    fn has_line(&self, at: usize) -> bool {
        self.listed[at] && !self.is_part(&self.lines[at])
    }

    /// True if the last activity of a line ended because the next one of its program began.
    fn ends_in_a_mark(&self, line: &ProcessLine) -> bool {
        let last = self.last_epochs[self.index[&line.id]];
        self.goes_on.contains(&(line.activity.pid, last))
    }

    /// True for an epoch between fork and exec, which belongs to the command that the shell starts.
    fn is_part(&self, line: &ProcessLine) -> bool {
        let activity = &line.activity;
        activity.epoch == 0 && activity.execed && !self.goes_on.contains(&(activity.pid, 0))
    }

    /// The nearest ancestor that has a line of its own. The search is bounded, because damaged data
    /// may have a cycle.
    fn parent_of(&self, of: usize) -> Option<usize> {
        let mut at = of;
        for _ in 0..self.lines.len() {
            at = *self.index.get(&self.lines[at].parent_id?)?;
            if at != of && self.has_line(at) {
                return Some(at);
            }
        }
        None
    }

    fn command(&self, line: &ProcessLine, from: &[u8]) -> String {
        let activity = &line.activity;
        let is_forked = activity.epoch == 0 && !line.marked;
        let has_executed = self.executed.contains(&activity.pid);
        let (line, left_out) = Call::of(activity).line(from, SHORT);
        match (is_forked, left_out) {
            (true, _) if has_executed => format!("{line}  (forked)"),
            (true, _) => format!("{line}  (forked, no exec)"),
            (false, 0) => line,
            (false, count) => format!("{line}  ({count} variables differ: see --json)"),
        }
    }
}
