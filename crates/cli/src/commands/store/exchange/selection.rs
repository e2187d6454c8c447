//! Which runs an exchange is about. The side that offers the runs decides, so the options of the
//! user's command pass to it.

use std::collections::HashSet;

use backstory_exchange::Upkeep;
use backstory_query::{self as query};
use backstory_store::{Home, Store};
use clap::Parser;

use crate::args::exchange::{ExchangeArgs, RunSelection};
use crate::args::search::RunChoice;
use crate::checkout;
use crate::commands::{here, log};
use crate::error::Failure;

/// Selects runs, and indexes those that came in.
pub struct Selector;

impl Upkeep for Selector {
    fn select(
        &mut self,
        _home: &Home,
        store: &dyn Store,
        options: &[String],
    ) -> Result<HashSet<String>, String> {
        let selection = RunSelection::try_parse_from(options)
            .map_err(|error| crate::error::usage(&error, Some("store push")))?;
        let line = |failure: Failure| failure.line;
        let mut selected = HashSet::new();
        for wanted in &selection.run {
            let found = query::resolve(store, Some(wanted));
            selected.insert(found.map_err(|error| line(error.into()))?);
        }
        if selection.run.is_empty() {
            let filter = log::filter(&selection.which).map_err(line)?;
            let runs = query::runs_where(store, &filter).map_err(|error| line(error.into()))?;
            selected.extend(runs.into_iter().map(|run| run.id));
        }
        Ok(selected)
    }

    fn index(&mut self, home: &Home, store: &mut dyn Store) -> Result<Vec<String>, String> {
        super::index_new(home, store)
    }
}

/// The options of the user's command for the side that offers the runs. Moments, paths and commits
/// are written out, so that they mean the same there.
pub fn options(args: &ExchangeArgs) -> Result<Vec<String>, Failure> {
    let mut words: Vec<String> = args.run.iter().map(|run| format!("--run={run}")).collect();
    let conditions = conditions(&args.which);
    if !words.is_empty() && !conditions.is_empty() {
        return Err(Failure::misuse(
            "give runs with --run, or conditions on runs, but not both",
        ));
    }
    words.extend(conditions);
    Ok(words)
}

fn conditions(which: &RunChoice) -> Vec<String> {
    let RunChoice {
        most,
        since,
        until,
        failed,
        command,
        file,
        host,
        job,
        name,
        tag,
        commit,
    } = which;
    let moment = |ns: &i64| {
        let (seconds, rest) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
        format!("@{seconds}.{rest:09}")
    };
    let commit = commit
        .as_ref()
        .map(|revision| checkout::resolve(revision).unwrap_or_else(|| revision.clone()));
    let texts = [
        ("--since", since.as_ref().map(moment)),
        ("--until", until.as_ref().map(moment)),
        ("--command", command.clone()),
        ("--file", file.as_deref().map(absolute)),
        ("--host", host.clone()),
        ("--job", job.clone()),
        ("--name", name.clone()),
        ("--commit", commit),
    ];
    let mut words: Vec<String> = most.iter().map(|most| format!("-n{most}")).collect();
    words.extend(failed.then(|| "--failed".to_owned()));
    let given = texts
        .into_iter()
        .filter_map(|(option, text)| Some((option, text?)));
    words.extend(given.map(|(option, text)| format!("{option}={text}")));
    words.extend(tag.iter().map(|tag| format!("--tag={tag}")));
    words
}

/// A pattern with a slash is below the current directory.
fn absolute(pattern: &str) -> String {
    match pattern.contains('/') && !pattern.starts_with('/') {
        true => format!("{}/{pattern}", String::from_utf8_lossy(&here())),
        false => pattern.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn the_other_side_reads_the_conditions_that_the_user_gave() {
        let words = [
            "-n3",
            "--since=@1700000000.000000001",
            "--failed",
            "--command=make *",
            "--tag=a=b",
            "--file=/x/**",
            "--host=box",
            "--job=71.*",
            "--name=n",
            "--commit=abcd",
            "--until=@1800000000",
        ];
        let given = RunSelection::try_parse_from(words).unwrap();
        let passed = conditions(&given.which);
        let there = RunSelection::try_parse_from(&passed).unwrap();
        assert_eq!(conditions(&there.which), passed);
        assert_eq!(there.which.since, Some(1_700_000_000_000_000_001));
        assert_eq!(there.which.most, Some(3));
        assert_eq!(there.which.command.as_deref(), Some("make *"));
        assert_eq!(passed.len(), words.len());
    }
}
