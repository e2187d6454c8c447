//! The lines of the command's threads, as lines of strace.
//!
//! A call becomes one line when it has returned. A call that does not return becomes a line when
//! its thread ends.

use super::arguments::{strace_text, values};
use super::descriptors::DescriptorTables;
use super::line::{PerfLine, Said, parse};
use super::ordered::OrderedLines;
use super::signatures::signature;
use super::survey::{EXECS, Survey, event_pid};
use super::threads::Threads;
use crate::calls::{Arg, TextReader, flags};
use crate::lines::LogLine;
use crate::strace::CallLines;
use crate::{Error, LogFiles};
use backstory_eventlog::Reason;
use backstory_ordering::SmallSort;
use backstory_vocabulary::counted;
use std::collections::{HashMap, VecDeque};

/// A longer time between two lines, in microseconds, is that of a damaged line.
const LONGEST_PAUSE: i64 = 366 * 86_400 * 1_000_000;
/// The calls that make a thread.
const FORKS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];
/// The calls that make two descriptors.
const PAIRS: [&str; 3] = ["pipe", "pipe2", "socketpair"];

/// The counts of events, calls and addresses that perf did not print.
#[derive(Debug, Default)]
struct Unprinted {
    lost: u64,
    pairs: usize,
    programs: usize,
    addresses: usize,
    pointers: usize,
}

/// Reads the lines of a log.
pub(super) struct PerfSource {
    lines: OrderedLines,
    survey: Survey,
    /// The moment of the last line that was passed on.
    moment: i64,
    number: u64,
    ready: VecDeque<Vec<u8>>,
    threads: Threads,
    /// Calls that have not returned, by thread.
    open: HashMap<u32, (String, Vec<u8>)>,
    /// The programs that events name, by thread.
    programs: HashMap<u32, Vec<u8>>,
    tables: DescriptorTables,
    unprinted: Unprinted,
}

impl PerfSource {
    pub(super) fn open(files: &LogFiles, survey: Survey) -> Result<PerfSource, Error> {
        Ok(PerfSource {
            lines: OrderedLines::open(files)?,
            threads: Threads::new(&survey),
            survey,
            moment: 0,
            number: 0,
            ready: VecDeque::new(),
            open: HashMap::new(),
            programs: HashMap::new(),
            tables: DescriptorTables::default(),
            unprinted: Unprinted::default(),
        })
    }

    /// Passes a line of strace on.
    fn say(&mut self, tid: Option<u32>, text: &[u8], moment: i64) {
        let pause = moment.saturating_sub(self.moment).max(0);
        let pause = if pause > LONGEST_PAUSE { 0 } else { pause };
        self.moment = self.moment.max(moment);
        let tid = tid.map_or_else(String::new, |tid| format!("{tid} "));
        let (seconds, part) = (pause / 1_000_000, pause % 1_000_000);
        let mut line = format!("{tid}{seconds}.{part:06} ").into_bytes();
        line.extend_from_slice(text);
        self.ready.push_back(line);
    }

    fn take(&mut self, moment: i64, bytes: &[u8]) {
        let Some(line) = parse(bytes) else {
            self.take_other(moment, bytes);
            return;
        };
        // A log of one thread does not name it.
        let tid = line.tid.or(self.survey.first).unwrap_or(1);
        if let Some(pid) = self.threads.process(tid) {
            self.take_own(&line, (tid, pid), moment);
        }
    }

    /// A message of perf, or text of another program.
    fn take_other(&mut self, moment: i64, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let lost = text
            .strip_prefix("LOST ")
            .and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        match lost {
            Some(lost) => self.unprinted.lost = self.unprinted.lost.saturating_add(lost),
            None if text.trim().is_empty() => {}
            None => self.say(None, b"?", moment),
        }
    }

    /// A line of a thread of the command.
    fn take_own(&mut self, line: &PerfLine<'_>, (tid, pid): (u32, u32), moment: i64) {
        match line.said {
            Said::Event { name, args } => self.event(name, args, (tid, pid), moment),
            Said::Began { name, args } => {
                self.unreturned(tid, moment);
                if FORKS.contains(&name) && !self.survey.has_births {
                    self.say_unfinished(name, args, tid, moment);
                }
                self.open.insert(tid, (name.to_owned(), args.to_vec()));
            }
            Said::Called { name, args, result } => {
                self.unreturned(tid, moment);
                self.call(name, args, result, (tid, pid), moment);
            }
            Said::Returned { name, result } => self.returned(name, result, (tid, pid), moment),
        }
    }

    /// The return of a call that began in another line, or before the log. The return of a child's
    /// birth has no time, and may come after the beginning of its first call.
    fn returned(&mut self, name: &str, result: &[u8], (tid, pid): (u32, u32), moment: i64) {
        let is_open = self.open.get(&tid).is_some_and(|(open, _)| open == name);
        let open = if is_open {
            self.open.remove(&tid)
        } else {
            None
        };
        let args = match open {
            Some((_, args)) => args,
            // The log begins within the call of the command's program.
            None if EXECS.contains(&name) => Vec::new(),
            None => return,
        };
        if FORKS.contains(&name) && !self.survey.has_births {
            let text = format!("<... {name} resumed>) = {}", result_text(result));
            self.say(Some(tid), text.as_bytes(), moment);
        } else {
            self.call(name, &args, result, (tid, pid), moment);
        }
    }

    fn event(&mut self, name: &str, args: &[u8], (tid, pid): (u32, u32), moment: i64) {
        match name {
            "task:task_newtask" => {
                let Some(child) = event_pid(args) else {
                    return;
                };
                let text = String::from_utf8_lossy(args);
                let bits = text.rsplit("clone_flags: ").next().map_or(0, clone_flags);
                let process = self.threads.made(tid, child, bits);
                if process != pid {
                    self.tables.forked(pid, process);
                }
                let text = format!("clone(flags={bits}) = {child}");
                self.say(Some(tid), text.as_bytes(), moment);
            }
            "sched:sched_process_exec" => {
                let found = memchr::memmem::find(args, b"\", pid: ");
                let inner = args.strip_prefix(b"filename: \"").zip(found);
                if let Some((inner, end)) = inner {
                    let name = inner[..end - b"filename: \"".len()].to_vec();
                    self.programs.insert(tid, name);
                }
            }
            "signal:signal_deliver" => {
                let text = String::from_utf8_lossy(args);
                let signal = text.strip_prefix("sig: ").map(|rest| {
                    let end = rest.find(',').unwrap_or(rest.len());
                    match rest[..end].parse() {
                        Ok(number) => number,
                        Err(_) => flags(&format!("SIG{}", &rest[..end])) as i32,
                    }
                });
                if let Some(signal) = signal {
                    self.threads.signalled(pid, signal);
                }
            }
            "sched:sched_process_exit" => self.ended(tid, pid, moment),
            _ => {}
        }
    }

    fn ended(&mut self, tid: u32, pid: u32, moment: i64) {
        self.unreturned(tid, moment);
        self.programs.remove(&tid);
        let text = self.threads.ended(tid, pid);
        self.say(Some(tid), text.as_bytes(), moment);
        if tid == pid {
            self.tables.gone(pid);
        }
    }

    /// A call that has no result in the log may have had its effect.
    fn unreturned(&mut self, tid: u32, moment: i64) {
        let Some((name, args)) = self.open.remove(&tid) else {
            return;
        };
        if FORKS.contains(&&*name) {
            return;
        }
        self.say_unfinished(&name, &args, tid, moment);
    }

    /// Passes on a call that has not returned.
    fn say_unfinished(&mut self, name: &str, args: &[u8], tid: u32, moment: i64) {
        let text = self.text(name, args, tid, None);
        let text = [name.as_bytes(), b"(", &text, b" <unfinished ...>"].concat();
        self.say(Some(tid), &text, moment);
    }

    /// The arguments of a call, as strace prints them.
    fn text(&self, name: &str, args: &[u8], tid: u32, pair: Option<(i32, i32)>) -> Vec<u8> {
        let signature = signature(name);
        let program = self.programs.get(&tid);
        let program = program.filter(|_| EXECS.contains(&name)).map(Vec::as_slice);
        strace_text(signature, &values(signature, args), program, pair)
    }

    /// A call that returned.
    fn call(
        &mut self,
        name: &str,
        args: &[u8],
        result: &[u8],
        (tid, pid): (u32, u32),
        moment: i64,
    ) {
        // Events tell the births, and perf does not print what `getcwd` writes.
        if FORKS.contains(&name) && self.survey.has_births || name == "getcwd" {
            return;
        }
        let returned = result_text(result);
        let number = returned.parse::<i64>().ok();
        let ok = number
            .and_then(|number| i32::try_from(number).ok())
            .filter(|one| *one >= 0);
        let mut pair = None;
        if PAIRS.contains(&name) && ok.is_some() {
            let cloexec = memchr::memmem::find(args, b"CLOEXEC").is_some();
            pair = Some(self.tables.pair(pid, cloexec));
            self.unprinted.pairs += 1;
        }
        let text = self.text(name, args, tid, pair);
        self.say(
            Some(tid),
            &[name.as_bytes(), b"(", &text, b") = ", returned.as_bytes()].concat(),
            moment,
        );
        let has = |text: &[u8]| memchr::memmem::find(args, text).is_some();
        self.unprinted.addresses += usize::from(has(b".family: INET6"));
        self.unprinted.pointers += usize::from(has(b"name: 0x") && ok.is_some());
        let (args, _) = TextReader::new(&text).arguments();
        if let Some(ok) = ok {
            if EXECS.contains(&name) {
                self.unprinted.programs += 1;
                self.tables.executed(pid);
            }
            self.tables.called(pid, name, &args, ok);
        }
        if let "exit" | "exit_group" = name {
            let status = args.first().and_then(Arg::descriptor).unwrap_or(0);
            self.threads.exits(tid, pid, status, name == "exit_group");
            if !self.survey.has_ends {
                self.ended(tid, pid, moment);
            }
        }
    }
}

/// The flags of an event: a number, or names without their prefix.
fn clone_flags(text: &str) -> u32 {
    let text = text.trim_end_matches(')');
    let words = text.split('|').map(|word| match word.parse::<u32>() {
        Ok(number) => number,
        Err(_) if word.starts_with("0x") || word.starts_with("CLONE_") => flags(word) as u32,
        Err(_) => flags(&format!("CLONE_{word}")) as u32,
    });
    // The lowest byte is the signal of the child's end.
    words.fold(0, |all, bits| all | bits) & !0xff
}

/// The result as strace prints it, without the file or the program that perf adds.
fn result_text(result: &[u8]) -> String {
    let text = String::from_utf8_lossy(result);
    let text = text.split('<').next().unwrap_or_default().trim_end();
    let Some(error) = text.strip_prefix("-1 ") else {
        let word = text.split(' ').next().unwrap_or_default();
        let is_of_flags = word.starts_with(|c: char| c.is_ascii_uppercase());
        return if is_of_flags { "0" } else { word }.to_owned();
    };
    // perf 7.3 does not print the names of errors.
    let unnamed = error
        .strip_prefix("(unknown) (")
        .and_then(|error| error.strip_suffix(')'));
    let number = unnamed.and_then(|message| {
        (1..134).find(|number| {
            let known = std::io::Error::from_raw_os_error(*number).to_string();
            known.strip_suffix(&format!(" (os error {number})")) == Some(message)
        })
    });
    match number {
        Some(number) => format!("-1 (errno {number})"),
        None => text.to_owned(),
    }
}

impl CallLines for PerfSource {
    fn next(&mut self, line: &mut LogLine) -> Result<u64, Error> {
        while self.ready.is_empty() {
            let Some((moment, number, bytes)) = self.lines.next()? else {
                let mut open: Vec<u32> = self.open.keys().copied().collect();
                open.sort_small();
                for tid in open {
                    self.unreturned(tid, self.moment);
                }
                break;
            };
            self.number = number;
            self.take(moment, &bytes);
        }
        let Some(bytes) = self.ready.pop_front() else {
            return Ok(0);
        };
        let is_over = self.lines.is_over() && self.ready.is_empty();
        *line = LogLine {
            bytes,
            number: self.number,
            is_last: self.lines.is_cut_off && is_over,
            ..LogLine::default()
        };
        Ok(self.lines.take_read().max(1))
    }

    fn gaps(&self) -> Vec<Reason> {
        let of = &self.unprinted;
        let mut all = Vec::new();
        if of.lost > 0 {
            all.push(format!("perf lost {} events (-m)", of.lost));
        }
        if of.programs > 0 {
            all.push("perf does not print the arguments of programs".to_owned());
        }
        if of.pairs > 0 {
            let pairs = counted(of.pairs, "pipe", "pipes");
            all.push(format!(
                "perf does not print the descriptors of {pairs}; they are taken to be the lowest \
                 free numbers"
            ));
        }
        if of.addresses > 0 {
            all.push("perf does not print the addresses of IPv6 sockets".to_owned());
        }
        if of.pointers > 0 {
            let names = counted(of.pointers, "name", "names");
            all.push(format!("perf printed pointers instead of {names} (-a)"));
        }
        let gap = |what| Reason::ImportGap { what };
        all.into_iter().map(gap).collect()
    }
}
