//! `who`: lists every command that touched a file, the newest first, in one line each; with
//! `--level process` every process. Text is limited to the newest, and counts the others.

use std::io::{self, Write};
use std::path::Path;

use backstory_account::{CommandTouch, command_touches};
use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::Certainty;
use backstory_query::answer::{Access, Derivation, FileTouch};
use backstory_query::{TouchSearch, Touches};
use backstory_store::Store;
use backstory_vocabulary::Word;

use super::{Outcome, answer, here, lake};
use crate::args::lineage::Level;
use crate::args::search::WhoArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, one_line};
use crate::json::{self, Value};
use crate::mounted_paths::unseen;
use crate::text::account;
use crate::text::command::text_of;
use crate::text::line::{Line, columns};
use crate::text::paths::shown;
use crate::text::shell::{Call, SHORT};
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;
use backstory_workflow::paths::relative;

/// The most lines of text, unless the user gives a number or asks for all.
const MOST: usize = 100;

/// Prints the commands or processes that touched the file.
pub fn run(args: WhoArgs, store: Option<&Path>) -> Outcome {
    if let Some(lake) = &args.lake {
        return lake::touched(&args, lake);
    }
    let current = CurrentStore::open(store)?;
    let run = args.run.as_deref().map(|run| current.run(Some(run)));
    let wanted = Touches {
        lookups: args.lookups,
        run: run.transpose()?,
    };
    let search = TouchSearch::new(&current.store, &args.path, &wanted);
    let mut search = search.map_err(|error| unseen(&current, &args.path, error))?;
    let mut lines = Lines::new(&args);
    // A failure of the store while the answer is being printed.
    let mut failed = None;
    let done = answer(|out| {
        if args.json {
            return json::lines(out, Newest::of(&mut search, args.most, &mut failed));
        }
        let mut left_out = 0;
        while left_out == 0 {
            let here = match search.next_run().map_err(Failure::from) {
                Ok(Some(here)) => here,
                Ok(None) => break,
                Err(failure) => {
                    failed = Some(failure);
                    return Ok(());
                }
            };
            match lines.print(&current.store, &here, out)? {
                Ok(more) => left_out = more,
                Err(failure) => {
                    failed = Some(failure);
                    return Ok(());
                }
            }
        }
        match search.processes_left() {
            Ok(older) => lines.note(left_out + older, search.looked, out),
            Err(error) => {
                failed = Some(error.into());
                Ok(())
            }
        }
    });
    current.tell_left_running();
    match failed {
        Some(failure) => Err(failure),
        None => done,
    }
}

/// The newest processes as JSON, which are read while they are printed.
struct Newest<'s, 'f> {
    search: &'f mut TouchSearch<'s>,
    left: usize,
    here: std::vec::IntoIter<FileTouch>,
    failed: &'f mut Option<Failure>,
}

impl<'s, 'f> Newest<'s, 'f> {
    fn of(
        search: &'f mut TouchSearch<'s>,
        most: Option<usize>,
        failed: &'f mut Option<Failure>,
    ) -> Newest<'s, 'f> {
        Newest {
            search,
            left: most.unwrap_or(usize::MAX),
            here: Vec::new().into_iter(),
            failed,
        }
    }
}

impl Iterator for Newest<'_, '_> {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some(touch) = self.here.next() {
                return Some(json(&touch));
            }
            match self.search.next_run() {
                Ok(here) => self.here = here?.into_iter(),
                Err(error) => {
                    *self.failed = Some(error.into());
                    return None;
                }
            }
        }
    }
}

/// Prints lines until there are enough.
struct Lines {
    style: Style,
    columns: Option<usize>,
    here: Vec<u8>,
    now: Option<i64>,
    steps: bool,
    left: usize,
}

impl Lines {
    fn new(args: &WhoArgs) -> Lines {
        let columns = columns();
        let most = match args.level {
            Level::All => usize::MAX,
            _ => MOST,
        };
        Lines {
            style: Style::of_stdout(),
            columns,
            here: here(),
            now: columns.map(|_| when::now()),
            steps: args.level == Level::Step,
            left: args.most.unwrap_or(most),
        }
    }

    /// Prints the commands or processes of one run. Returns the number of processes that were left
    /// out.
    fn print(
        &mut self,
        store: &dyn Store,
        touches: &[FileTouch],
        out: &mut impl Write,
    ) -> io::Result<Result<usize, Failure>> {
        if !self.steps {
            for touch in touches.iter().take(self.left) {
                let call = Call::of(&touch.activity);
                let text = one_line(&call.line(&self.here, SHORT).0);
                let line = line(&Acts::of(touch), &text, &self.here, self.now);
                writeln!(out, "{}", line.text(self.style, self.columns))?;
            }
            let left_out = touches.len().saturating_sub(self.left);
            self.left = self.left.saturating_sub(touches.len());
            return Ok(Ok(left_out));
        }
        let commands = match command_touches(store, touches) {
            Ok(commands) => commands,
            Err(error) => return Ok(Err(error.into())),
        };
        let width = Some(account::screen().0);
        for command in commands.iter().take(self.left) {
            let text = one_line(&text_of_command(command));
            let line = line(&Acts::of_command(command), &text, &self.here, self.now);
            writeln!(out, "{}", line.text(self.style, width))?;
        }
        let left_out = commands.iter().skip(self.left);
        let left_out = left_out.map(|command| command.processes).sum();
        self.left = self.left.saturating_sub(commands.len());
        Ok(Ok(left_out))
    }

    /// Counts the processes that have no line.
    fn note(&self, others: usize, looked: usize, out: &mut impl Write) -> io::Result<()> {
        let mut notes = Vec::new();
        if others > 0 {
            let processes = counted(others, "other process", "other processes");
            notes.push(format!("{processes} before these (-n N shows more)"));
        }
        if looked > 0 {
            let processes = counted(looked, "process", "processes");
            notes.push(format!("{processes} that only looked it up (--lookups)"));
        }
        if notes.is_empty() {
            return Ok(());
        }
        let note = format!("… and {}", notes.join("; "));
        writeln!(out, "{}", self.style.paint(Role::Dim, &note))
    }
}

fn json(touch: &FileTouch) -> Value {
    let names = |list: &[(Derivation, Bytes)]| {
        let one = |(how, path): &(Derivation, Bytes)| {
            Value::Object(vec![("how", verb(*how).into()), ("path", path.into())])
        };
        Value::Array(list.iter().map(one).collect())
    };
    let activity = &touch.activity;
    Value::Object(vec![
        ("path", (&touch.path).into()),
        (
            "access",
            Value::array(touch.access.iter().map(|access| access.word())),
        ),
        (
            "possible",
            Value::array(touch.possible.iter().map(|access| access.word())),
        ),
        ("certainty", touch.certainty.word().into()),
        ("start", Value::Time(touch.interval.start)),
        ("end", Value::Time(touch.interval.end)),
        ("to", names(&touch.to)),
        ("from", names(&touch.from)),
        ("run", (&touch.run).into()),
        ("name", touch.run_name.as_ref().into()),
        ("id", touch.id.into()),
        ("pid", activity.pid.into()),
        ("exec_path", activity.exec_path.as_ref().into()),
        ("argv", Value::array(&activity.argv)),
        ("cwd", (&activity.cwd).into()),
    ])
}

/// The command and other programs of it that touched the file. These come first if the command's
/// own program did not touch it.
fn text_of_command(command: &CommandTouch) -> String {
    let whole = text_of(&command.line);
    let Some(first) = command.programs.first() else {
        return whole;
    };
    let more = match command.programs.len() {
        1 => String::new(),
        many => format!(" and {} more", many - 1),
    };
    let others = format!("{}{more}", text_of(first));
    match command.own {
        true => format!("{whole}, with {others}"),
        false => format!("{others}, in {whole}"),
    }
}

fn verb(how: Derivation) -> &'static str {
    match how {
        Derivation::Renamed => "renamed",
        Derivation::Linked => "linked",
        Derivation::Copied => "copied",
    }
}

/// The acts of a process, or of all processes of a command.
struct Acts<'t> {
    run: &'t str,
    run_name: Option<&'t String>,
    access: Vec<Access>,
    possible: Vec<Access>,
    certainty: Certainty,
    end: Time,
    to: Vec<&'t (Derivation, Bytes)>,
    from: Vec<&'t (Derivation, Bytes)>,
}

impl<'t> Acts<'t> {
    fn of(touch: &'t FileTouch) -> Acts<'t> {
        Acts {
            run: &touch.run,
            run_name: touch.run_name.as_ref(),
            access: touch.access.clone(),
            possible: touch.possible.clone(),
            certainty: touch.certainty,
            end: touch.interval.end,
            to: touch.to.iter().collect(),
            from: touch.from.iter().collect(),
        }
    }

    fn of_command(command: &'t CommandTouch) -> Acts<'t> {
        Acts {
            run: &command.run,
            run_name: command.run_name.as_ref(),
            access: command.access.iter().copied().collect(),
            possible: command.possible.iter().copied().collect(),
            certainty: command.certainty,
            end: command.interval.end,
            to: command.to.iter().collect(),
            from: command.from.iter().collect(),
        }
    }
}

/// `3 min ago  read, renamed to b  mv a b  [run 7hx2k9qa]`
fn line(acts: &Acts<'_>, command: &str, here: &[u8], now: Option<i64>) -> Line {
    let mut line = Line::default();
    let time = match now {
        Some(now) => format!("{:<10}", when::ago(acts.end, now)),
        None => when::moment(acts.end),
    };
    line.add(Role::Dim, format!("{time}  "));
    let role = if acts.access.iter().any(super::file_choice::is_change) {
        Role::Subject
    } else {
        Role::Good
    };
    line.add(role, format!("{:<16}  ", words(acts, here)));
    line.add_flexible(Role::Command, command);
    let run = acts.run_name.map_or_else(
        || acts.run.to_owned(),
        |name| format!("{} {}", acts.run, one_line(name)),
    );
    line.add(Role::Dim, format!("  [run {run}]"));
    line
}

/// The acts in words.
fn words(acts: &Acts<'_>, here: &[u8]) -> String {
    let path = |path: &[u8]| shown(relative(path, here));
    let is =
        |how: Derivation, list: &[&(Derivation, Bytes)]| list.iter().any(|(one, _)| *one == how);
    let is_linked = is(Derivation::Linked, &acts.from) || is(Derivation::Linked, &acts.to);
    let mut words: Vec<String> = Vec::new();
    for access in &acts.access {
        // Where nothing was observed, one word says so for all.
        let is_doubtful = acts.certainty == Certainty::Seen && acts.possible.contains(access);
        let maybe = if is_doubtful { "possibly " } else { "" };
        words.push(format!(
            "{maybe}{}",
            match access {
                // A rename takes the old name away, and gives the new one: it is said below.
                Access::Delete if is(Derivation::Renamed, &acts.to) => continue,
                Access::Rename if is(Derivation::Renamed, &acts.from) => continue,
                // A hard link changes the time of the last status change.
                Access::Write | Access::Meta if is_linked => continue,
                Access::Read => "read",
                Access::Exec => "executed",
                Access::Write => "wrote",
                Access::Delete => "removed",
                Access::Rename => "renamed",
                Access::Meta => "changed mode or times",
                Access::Stat => "looked at",
                Access::Dir => "listed",
                Access::Missing => "did not find",
                Access::Link => "followed",
            }
        ));
    }
    // Look-ups say nothing beside an act.
    let looks = ["looked at", "listed", "did not find", "followed"];
    let does = words.iter().any(|word| !looks.contains(&word.as_str()));
    if does || !acts.to.is_empty() || !acts.from.is_empty() {
        words.retain(|word| !looks.contains(&word.as_str()));
    }
    for (how, to) in &acts.to {
        words.push(format!("{} to {}", verb(*how), path(to)));
    }
    for (how, from) in &acts.from {
        words.push(format!("{} from {}", verb(*how), path(from)));
    }
    let maybe = match acts.certainty {
        Certainty::Possible => " (possible)",
        Certainty::Seen => "",
    };
    format!("{}{maybe}", words.join(", "))
}
