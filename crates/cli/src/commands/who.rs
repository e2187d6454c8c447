//! `who`: lists every command that touched a file, the newest first, in one line each; with
//! `--level process` every process.

use std::io::Write;
use std::path::Path;

use backstory_account::{CommandTouch, command_touches};
use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::Certainty;
use backstory_query::answer::{Access, Derivation, FileTouch};
use backstory_query::{self as query, Touches};
use backstory_vocabulary::Word;

use super::{Outcome, answer, here};
use crate::args::lineage::Level;
use crate::args::search::WhoArgs;
use crate::current_store::CurrentStore;
use crate::error::one_line;
use crate::json::{self, Value};
use crate::text::account;
use crate::text::command::text_of;
use crate::text::line::{Line, columns};
use crate::text::paths::shown;
use crate::text::shell::{Call, SHORT};
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;
use backstory_workflow::paths::relative;

/// Prints the commands or processes that touched the file.
pub fn run(args: WhoArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let run = args.run.as_deref().map(|run| current.run(Some(run)));
    let mut wanted = Touches {
        lookups: args.lookups,
        most: args.most,
        run: run.transpose()?,
    };
    let steps = args.level == Level::Step && !args.json;
    let (mut touches, mut looked) = query::touches(&current.store, &args.path, &wanted)?;
    let mut commands = Vec::new();
    if steps {
        commands = command_touches(&current.store, &touches)?;
        // Several processes are one command: more are needed for as many commands.
        while let Some(most) = wanted.most.filter(|most| *most == touches.len())
            && args.most.is_some_and(|most| commands.len() < most)
        {
            wanted.most = Some(2 * most);
            (touches, looked) = query::touches(&current.store, &args.path, &wanted)?;
            commands = command_touches(&current.store, &touches)?;
        }
        commands.truncate(args.most.unwrap_or(usize::MAX));
    }
    let done = answer(|out| {
        if args.json {
            return json::lines(out, touches.iter().map(json));
        }
        let (style, columns, here) = (Style::of_stdout(), columns(), here());
        let now = columns.map(|_| when::now());
        if steps {
            let width = Some(account::screen().0);
            for command in &commands {
                let text = one_line(&text_of(&command.line));
                let line = line(&Acts::of_command(command), &text, &here, now);
                writeln!(out, "{}", line.text(style, width))?;
            }
        } else {
            for touch in &touches {
                let call = Call::of(&touch.activity);
                let text = one_line(&call.line(&here, SHORT).0);
                let line = line(&Acts::of(touch), &text, &here, now);
                writeln!(out, "{}", line.text(style, columns))?;
            }
        }
        if looked > 0 {
            let processes = counted(looked, "process", "processes");
            let note = format!("… and {processes} that only looked it up (--lookups)");
            writeln!(out, "{}", style.paint(Role::Dim, &note))?;
        }
        Ok(())
    });
    current.tell_left_running();
    done
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
    let mut words: Vec<String> = Vec::new();
    for access in &acts.access {
        words.push(
            match access {
                // A rename takes the old name away, and gives the new one: it is said below.
                Access::Delete if is(Derivation::Renamed, &acts.to) => continue,
                Access::Rename if is(Derivation::Renamed, &acts.from) => continue,
                Access::Write if is(Derivation::Linked, &acts.from) => continue,
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
            .to_owned(),
        );
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
