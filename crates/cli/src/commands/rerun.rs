//! `rerun`: brings a file up to date by running stale steps again. Each step is recorded.

use backstory_vocabulary::{ContentsMode, Word};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backstory_replay::rerun::execution::{self, StepOutcome, StepProgress, StepRunner};
use backstory_replay::rerun::{self, PlannedStep};

use super::diff::store_contents;
use super::{Outcome, answer};
use crate::args::replay::RerunArgs;
use crate::current_store::CurrentStore;
use crate::ending::{self, AtWork, Workers};
use crate::error::{Failure, complain};
use crate::json::{self, Value};
use crate::text::shell::quote;
use crate::text::style::{Role, Style};

/// Brings a file up to date. Exits with 1 if a step failed, or with `--dry-run` if a step is stale.
pub fn run(args: RerunArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    store_contents(&mut current);
    let env = super::replay::variables(&args.env)?;
    let path = std::path::absolute(&args.path).map_err(Failure::not_found)?;
    let steps = rerun::plan(&current.store, path, &env)?;
    if args.dry_run {
        answer(|out| match args.json {
            true => json::lines(
                out,
                steps
                    .iter()
                    .enumerate()
                    .map(|(at, step)| planned(&steps, at, step)),
            ),
            false => explain(&steps, Style::of_stdout(), out),
        })?;
        return Ok(u8::from(steps.iter().any(|step| !step.reasons.is_empty())));
    }
    ending::watch(Workers::Signalled);
    let runner = Records {
        program: std::env::current_exe()?,
        store: current.home.dir().to_owned(),
        apart: args.json,
    };
    let mut tells = Tells {
        style: Style::of_stdout(),
        quiet: args.json,
    };
    let done = execution::bring_up_to_date(&steps, args.jobs, &runner, &mut tells);
    let failed = done
        .iter()
        .any(|done| matches!(done, StepOutcome::Failed(_)));
    if args.json {
        let lines = steps.iter().zip(&done).map(|(step, done)| {
            Value::Object(vec![
                ("step", (&step.name).into()),
                ("state", word(done).into()),
                ("script", (&step.script).into()),
            ])
        });
        answer(|out| json::lines(out, lines))?;
    } else if done.iter().all(|done| *done == StepOutcome::Current) {
        answer(|out| {
            writeln!(
                out,
                "{} is up to date: {} steps",
                quote(args.path.as_os_str().as_bytes()),
                steps.len()
            )
        })?;
    }
    if let Some(at) = done
        .iter()
        .position(|done| matches!(done, StepOutcome::Failed(_)))
    {
        let how = match &done[at] {
            StepOutcome::Failed(Ok(status)) => format!("status {status}"),
            StepOutcome::Failed(Err(why)) => why.clone(),
            _ => String::new(),
        };
        let left = match done
            .iter()
            .filter(|done| **done == StepOutcome::NotBegun)
            .count()
        {
            0 => String::new(),
            1 => "; 1 later step did not start; the outputs of other steps stay".to_owned(),
            several => {
                format!("; {several} later steps did not start; the outputs of other steps stay")
            }
        };
        complain(&format!(
            "the step {} failed ({how}): {}{left}",
            steps[at].name, steps[at].script
        ));
    }
    Ok(u8::from(failed))
}

fn word(done: &StepOutcome) -> &'static str {
    match done {
        StepOutcome::Current => "current",
        StepOutcome::Again(different) if different.is_empty() => "same",
        StepOutcome::Again(_) => "again",
        StepOutcome::Failed(_) => "failed",
        StepOutcome::NotBegun => "not begun",
    }
}

fn planned(steps: &[PlannedStep], at: usize, step: &PlannedStep) -> Value {
    let reasons = step.reasons.iter().map(|reason| {
        Value::Object(vec![
            ("about", reason.subject().into()),
            ("why", reason.words().into()),
        ])
    });
    let fed = step.fed_by.iter().map(|(from, path)| {
        Value::Object(vec![
            ("step", (&steps[*from].name).into()),
            ("path", path.into()),
        ])
    });
    Value::Object(vec![
        ("step", (&step.name).into()),
        ("state", standing(steps, at).into()),
        ("script", (&step.script).into()),
        ("run", (&step.run).into()),
        (
            "outputs",
            Value::array(step.outputs.iter().map(|(path, _)| path)),
        ),
        ("reasons", Value::Array(reasons.collect())),
        ("fed_by", Value::Array(fed.collect())),
    ])
}

/// The state of a step: `stale`, `current`, or `waits` for the outputs of a stale step.
fn standing(steps: &[PlannedStep], at: usize) -> &'static str {
    let mut above = vec![at];
    let mut seen = vec![false; steps.len()];
    while let Some(now) = above.pop() {
        if std::mem::replace(&mut seen[now], true) {
            continue;
        }
        if !steps[now].reasons.is_empty() {
            return if now == at { "stale" } else { "waits" };
        }
        above.extend(steps[now].fed_by.iter().map(|(from, _)| *from));
    }
    "current"
}

/// Reasons that are printed one by one.
const SHOWN: usize = 5;

fn explain(steps: &[PlannedStep], style: Style, out: &mut impl Write) -> io::Result<()> {
    for (at, step) in steps.iter().enumerate() {
        let standing = standing(steps, at);
        let role = match standing {
            "stale" => Role::Bad,
            "current" => Role::Good,
            _ => Role::Dim,
        };
        let word = style.paint(role, &format!("{standing:<8}"));
        writeln!(
            out,
            "{word} {}  {}",
            step.name,
            style.paint(Role::Command, &step.script.replace('\n', "; "))
        )?;
        for reason in step.reasons.iter().take(SHOWN) {
            writeln!(
                out,
                "         {}: {}",
                quote(reason.subject()),
                reason.words()
            )?;
        }
        if step.reasons.len() > SHOWN {
            writeln!(
                out,
                "         and {} more reasons",
                step.reasons.len() - SHOWN
            )?;
        }
        if standing == "waits" {
            let open = step
                .fed_by
                .iter()
                .filter(|(from, _)| self::standing(steps, *from) != "current");
            for (from, path) in open {
                writeln!(
                    out,
                    "         {}: runs only if step {} makes a different output",
                    quote(path),
                    steps[*from].name
                )?;
            }
        }
    }
    Ok(())
}

/// Runs steps under `record`, so that their outputs have a history.
struct Records {
    program: PathBuf,
    store: PathBuf,
    /// Steps print on standard error, because standard output is for the answer.
    apart: bool,
}

impl StepRunner for Records {
    fn run(&self, step: &PlannedStep) -> io::Result<i32> {
        for directory in &step.directories {
            std::fs::create_dir_all(OsStr::from_bytes(directory))?;
        }
        let os = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        let contents = step.contents.unwrap_or(ContentsMode::Off);
        // The lines need a shell that knows `$'…'`.
        let shell = if Path::new("/bin/bash").exists() {
            "bash"
        } else {
            "sh"
        };
        let options: &[&str] = if step.script.contains('\n') {
            &["-e", "-c"]
        } else {
            &["-c"]
        };
        let mut command = Command::new(&self.program);
        command
            .arg("record")
            .arg("--store")
            .arg(&self.store)
            .arg("--contents")
            .arg(contents.word());
        command.arg("--").arg(shell).args(options).arg(&step.script);
        command
            .env_clear()
            .envs(step.env.iter().map(|(name, value)| (os(name), os(value))));
        let cwd = Path::new(OsStr::from_bytes(&step.cwd));
        if !cwd.is_dir() {
            return Err(io::Error::other(format!(
                "its directory {} does not exist",
                cwd.display()
            )));
        }
        command.current_dir(cwd).stdin(Stdio::null());
        if self.apart {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        let mut child = command.spawn()?;
        let at_work = AtWork::of(&child);
        let status = child.wait()?;
        drop(at_work);
        Ok(status.code().unwrap_or(128))
    }
}

/// Prints the progress.
struct Tells {
    style: Style,
    quiet: bool,
}

impl Tells {
    fn say(&self, role: Role, word: &str, step: &PlannedStep) {
        if !self.quiet {
            let script = step.script.replace('\n', "; ");
            let line = format!(
                "{} {}  {}\n",
                self.style.paint(role, &format!("{word:<9}")),
                step.name,
                script
            );
            // A closed stderr does not stop the work.
            let _ = io::stdout().write_all(line.as_bytes());
        }
    }
}

impl StepProgress for Tells {
    fn begins(&mut self, step: &PlannedStep) {
        self.say(Role::Dim, "begins", step);
    }

    fn done(&mut self, step: &PlannedStep, done: &StepOutcome) {
        match done {
            StepOutcome::Current => {}
            StepOutcome::Again(different) if different.is_empty() => {
                self.say(Role::Good, "same", step)
            }
            StepOutcome::Again(_) => self.say(Role::Good, "again", step),
            StepOutcome::Failed(_) => self.say(Role::Bad, "failed", step),
            StepOutcome::NotBegun => {}
        }
    }
}
