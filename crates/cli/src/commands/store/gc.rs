//! `store gc`: frees space.
//!
//! In the database of a group, it removes runs of this user only.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use backstory_contents::Reclaimed;
use backstory_exchange::remove_left_files;
use backstory_store::{RunKey, RunRecord};

use super::reclaim::{own_runs, reclaim, total};
use super::{contents_budget, keep_lock, limits};
use crate::args::store::StoreGcArgs;
use crate::commands::{Outcome, answer};
use crate::contents_writer;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain};
use crate::index::Busy;
use crate::json::{self, Value};
use crate::shell_policy::{ShellPolicy, StoreLimits};
use crate::text::when::size;

/// Removes runs, then what no run refers to.
pub fn run(args: StoreGcArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    // Pending runs may refer to contents that no indexed run refers to.
    contents_writer::bring_up_to_date(&current.home, &mut current.store, Busy::Wait)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    let (forgotten, given) = match args.limits {
        true => over_limits(&mut current, args.dry_run)?,
        false => old_runs(&mut current, &args)?,
    };
    let ids: Vec<&str> = forgotten.iter().map(|run| run.header.id.as_str()).collect();
    answer(|out| match args.json {
        true => json::object(
            out,
            vec![
                ("dry_run", args.dry_run.into()),
                ("runs", Value::array(ids)),
                ("contents", given.objects.into()),
                ("bytes", given.bytes.into()),
            ],
        ),
        false => {
            let would = if args.dry_run {
                "would forget"
            } else {
                "forgot"
            };
            let runs = match ids.len() {
                0 => String::new(),
                1 => format!("1 run ({}), ", ids[0]),
                n => format!("{n} runs ({}), ", ids.join(" ")),
            };
            writeln!(
                out,
                "{would} {runs}{} contents; {}",
                given.objects,
                size(given.bytes)
            )
        }
    })
}

/// Removes what is over the limits of `config.toml`, and over the budget of the contents.
fn over_limits(
    current: &mut CurrentStore,
    dry: bool,
) -> Result<(Vec<RunRecord>, Reclaimed), Failure> {
    let policy = ShellPolicy::load();
    policy.warnings.iter().for_each(|warning| complain(warning));
    let (runs, freed) = match policy.limits == StoreLimits::default() {
        true => (Vec::new(), Reclaimed::default()),
        false => limits::keep(current, policy.limits, 0, dry)?,
    };
    let _lock = keep_lock(&current.home)?;
    let (home, store) = (&current.home, &mut *current.store);
    let more = contents_budget::keep(home, store, &policy.contents, 0, dry)?;
    Ok((runs, freed + more))
}

/// Removes the runs that the options mean, and what no run refers to.
fn old_runs(
    current: &mut CurrentStore,
    args: &StoreGcArgs,
) -> Result<(Vec<RunRecord>, Reclaimed), Failure> {
    let all = own_runs(current)?;
    let mut forgotten: Vec<RunRecord> = match args.older_than {
        Some(seconds) => {
            let age = seconds.saturating_mul(1_000_000_000);
            let now = backstory_session::Moment::now();
            all.iter()
                .filter(|run| now.age_of(&run.header) > age)
                .cloned()
                .collect()
        }
        None => Vec::new(),
    };
    let none = HashSet::new();
    let mut given = reclaim(current, &forgotten, &none, args.dry_run)?;
    if let Some(most) = args.max_size {
        // One run after the other: what only this run refers to is known once the run is removed.
        let gone: HashSet<RunKey> = forgotten.iter().map(|run| run.key).collect();
        let mut rest: Vec<&RunRecord> = all.iter().filter(|run| !gone.contains(&run.key)).collect();
        while total(current)? > most.saturating_add(if args.dry_run { given.bytes } else { 0 }) {
            let Some(oldest) = rest.pop() else { break };
            forgotten.push(oldest.clone());
            let more = match args.dry_run {
                true => reclaim(current, &forgotten, &none, true)?,
                false => reclaim(current, std::slice::from_ref(oldest), &none, false)?,
            };
            given = match args.dry_run {
                true => more,
                false => given + more,
            };
        }
    }
    if !args.dry_run {
        remove_left_files(&current.home);
        // Also for runs that `rm` removed, and after a `gc` that was killed.
        current.store.compact()?;
    }
    Ok((forgotten, given))
}
