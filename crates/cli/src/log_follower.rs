//! The process that follows the log of a run in progress (`record --watch`): `backstory watch-log`.
//!
//! It is no part of the recording: it reads the log that the supervisor writes. Its end or failure
//! changes nothing for the recorded processes.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use backstory_hunt::Rule;
use backstory_store::Home;

use crate::args::hunt::WatchReport;
use crate::args::record::RecordArgs;
use crate::commands;
use crate::error::{Failure, complain};

/// The word for all rules of the library.
const ALL: &str = "all";

/// A process that follows a log, before and after its start.
pub struct LogFollower {
    command: Command,
    child: Option<Child>,
}

/// The files with rules and the ids of rules that `--watch` names, after a look at all of them.
///
/// # Errors
///
/// A file or rule is not there, or an option is without `--watch`.
pub fn rules(args: &RecordArgs) -> Result<(Vec<PathBuf>, Vec<String>), Failure> {
    let report = &args.watch_report;
    let has_report = report.watch_to.is_some()
        || report.watch_run.is_some()
        || report.watch_post.is_some()
        || !report.stop_on.is_empty();
    if args.watch.is_empty() {
        return match has_report {
            true => Err(Failure::misuse(
                "--watch-to, --watch-run, --watch-post and --stop-on are about matches of rules: add --watch all",
            )),
            false => Ok((Vec::new(), Vec::new())),
        };
    }
    let (files, ids): (Vec<&PathBuf>, Vec<&PathBuf>) = (args.watch.iter())
        .filter(|word| word.as_os_str() != ALL)
        .partition(|word| word.exists());
    let is_file = |word: &&&PathBuf| {
        word.components().count() > 1
            || word
                .extension()
                .is_some_and(|end| end == "yml" || end == "yaml")
    };
    if let Some(missing) = ids.iter().find(is_file) {
        let missing = missing.display();
        return Err(Failure::misuse(format!(
            "--watch {missing}: there is no such file"
        )));
    }
    let files: Vec<PathBuf> = files.into_iter().cloned().collect();
    let mut ids: Vec<String> = ids.iter().map(|id| id.display().to_string()).collect();
    let has_all = args.watch.iter().any(|word| word.as_os_str() == ALL);
    if !has_all {
        // The rules of files that were given are meant, too.
        let of_files = commands::hunt::rules_of(&files)?;
        ids.extend(of_files);
    }
    let known = match has_all {
        true => &[][..],
        false => &ids[..],
    };
    let rules = commands::hunt::rules(&files, known)?;
    commands::hunt::tell_not_asked(&rules, "in progress");
    let compares = |rule: &&Rule| rule.compares_runs();
    if let Some(rule) = rules.iter().find(compares)
        && rules.iter().all(Rule::compares_runs)
    {
        return Err(Failure::misuse(format!(
            "rule {0} compares stored runs, and matches nothing while a command runs: `backstory \
             hunt --rule {0}` answers it after the run",
            rule.id
        )));
    }
    for rule in rules.iter().filter(compares).filter(|_| !has_all) {
        complain(&format!(
            "rule {} compares stored runs, and is not watched: `backstory hunt` answers it",
            rule.id
        ));
    }
    let is_known = |id: &&String| rules.iter().any(|rule| rule.id == **id);
    if let Some(unknown) = report.stop_on.iter().find(|id| !is_known(id)) {
        return Err(Failure::misuse(format!(
            "--stop-on {unknown}: no such rule is watched: add --watch {unknown}; `backstory hunt \
             --list` lists the rules"
        )));
    }
    let is_stop = |rule: &&Rule| report.stop_on.contains(&rule.id);
    if let Some(rule) = rules.iter().filter(compares).find(is_stop) {
        return Err(Failure::misuse(format!(
            "--stop-on {}: the rule compares stored runs, and matches nothing while a command runs",
            rule.id
        )));
    }
    if let Some(url) = &report.watch_post {
        commands::hunt::check_url(url)?;
    }
    Ok((files, if has_all { Vec::new() } else { ids }))
}

impl LogFollower {
    /// The process that follows the log of `run`.
    ///
    /// # Errors
    ///
    /// The program's own path is not known.
    pub fn new(
        home: &Home,
        run: &str,
        rules: &[PathBuf],
        chosen: &[String],
        report: &WatchReport,
    ) -> Result<LogFollower, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::not_found(format!("cannot find this program: {error}")))?;
        let mut command = Command::new(program);
        command
            .arg("--store")
            .arg(home.dir())
            .args(["watch-log", run]);
        for (option, values) in [("--rule", chosen), ("--stop-on", &report.stop_on)] {
            for value in values {
                command.arg(option).arg(value);
            }
        }
        for path in rules {
            command.arg("--rules").arg(path);
        }
        if let Some(path) = &report.watch_to {
            command.arg("--watch-to").arg(path);
        }
        for (option, value) in [
            ("--watch-run", &report.watch_run),
            ("--watch-post", &report.watch_post),
        ] {
            if let Some(value) = value {
                command.arg(option).arg(value);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        if report.stop_on.is_empty() {
            // A key at the terminal is for the command. The follower ends after it. With --stop-on
            // it asks at the terminal, and ignores the keys.
            command.process_group(0);
        }
        Ok(LogFollower {
            command,
            child: None,
        })
    }

    /// Starts the process. A failure is reported, and the command is recorded without it.
    pub fn start(&mut self) -> Option<&mut LogFollower> {
        match self.command.spawn() {
            Ok(child) => {
                self.child = Some(child);
                Some(self)
            }
            Err(error) => {
                complain(&format!("cannot watch the run: {error}"));
                None
            }
        }
    }

    /// Ends the process, because there is no run.
    pub fn end(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits until it has seen the end of the log.
    pub fn wait(&mut self) {
        if let Some(child) = &mut self.child {
            // The recording may have collected its status already.
            let _ = child.wait();
        }
    }
}
