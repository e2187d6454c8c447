//! `who`: lists every process that touched a file, the newest first, in one line each.

use std::io::Write;
use std::path::Path;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::Certainty;
use backstory_query::answer::{Access, Derivation, FileTouch};
use backstory_query::{self as query, Touches};

use super::files::{certainty, word};
use super::{Outcome, answer, here};
use crate::args::search::WhoArgs;
use crate::current_store::CurrentStore;
use crate::error::one_line;
use crate::json::{self, Value};
use crate::text::line::{Line, columns};
use crate::text::paths::shown;
use crate::text::shell::{Call, SHORT};
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;
use backstory_workflow::paths::relative;

/// Prints the processes that touched the file.
pub fn run(args: WhoArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let run = args.run.as_deref().map(|run| current.run(Some(run)));
    let wanted = Touches {
        lookups: args.lookups,
        most: args.most,
        run: run.transpose()?,
    };
    let (touches, looked) = query::touches(&current.store, &args.path, &wanted)?;
    let done = answer(|out| {
        if args.json {
            return json::lines(out, touches.iter().map(json));
        }
        let (style, columns, here) = (Style::of_stdout(), columns(), here());
        let now = columns.map(|_| when::now());
        for touch in &touches {
            writeln!(out, "{}", line(touch, &here, now).text(style, columns))?;
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
            Value::array(touch.access.iter().map(|&access| word(access))),
        ),
        ("certainty", certainty(touch.certainty).into()),
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

/// `3 min ago  read, renamed to b  mv a b  [run 7hx2k9qa]`
fn line(touch: &FileTouch, here: &[u8], now: Option<i64>) -> Line {
    let activity = &touch.activity;
    let mut line = Line::default();
    let time = match now {
        Some(now) => format!("{:<10}", when::ago(touch.interval.end, now)),
        None => when::moment(touch.interval.end),
    };
    line.add(Role::Dim, format!("{time}  "));
    let role = if touch.access.iter().any(super::file_choice::is_change) {
        Role::Subject
    } else {
        Role::Good
    };
    line.add(role, format!("{:<16}  ", acts(touch, here)));
    let call = Call::of(activity);
    let command = one_line(&call.line(here, SHORT).0);
    line.add_flexible(Role::Command, &command);
    let run = touch.run_name.as_ref().map_or_else(
        || touch.run.clone(),
        |name| format!("{} {}", touch.run, one_line(name)),
    );
    line.add(Role::Dim, format!("  [run {run}]"));
    line
}

/// The acts of the process, in words.
fn acts(touch: &FileTouch, here: &[u8]) -> String {
    let path = |path: &[u8]| shown(relative(path, here));
    let is =
        |how: Derivation, list: &[(Derivation, Bytes)]| list.iter().any(|(one, _)| *one == how);
    let mut words: Vec<String> = Vec::new();
    for access in &touch.access {
        words.push(
            match access {
                // A rename takes the old name away, and gives the new one: it is said below.
                Access::Delete if is(Derivation::Renamed, &touch.to) => continue,
                Access::Rename if is(Derivation::Renamed, &touch.from) => continue,
                Access::Write if is(Derivation::Linked, &touch.from) => continue,
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
    let acts = words.iter().any(|word| !looks.contains(&word.as_str()));
    if acts || !touch.to.is_empty() || !touch.from.is_empty() {
        words.retain(|word| !looks.contains(&word.as_str()));
    }
    for (how, to) in &touch.to {
        words.push(format!("{} to {}", verb(*how), path(to)));
    }
    for (how, from) in &touch.from {
        words.push(format!("{} from {}", verb(*how), path(from)));
    }
    let maybe = match touch.certainty {
        Certainty::Possible => " (possible)",
        Certainty::Seen => "",
    };
    format!("{}{maybe}", words.join(", "))
}
