//! The inputs of builds that the builds did not declare, for policies and attestations.
//!
//! In: a view. Out: paths of files. The build tool of each run is asked for its rules.

use std::collections::{BTreeSet, HashSet};

use backstory_declared::systems::PROGRAMS;
use backstory_declared::{BuildRun, compare, declarations};
use backstory_eventlog::event::Bytes;
use backstory_export::View;
use backstory_export::hermeticity;
use backstory_export::inventory::Inventory;
use backstory_workflow::ownership::Ownership;
use backstory_workflow::recording::Recording;

use crate::current_store::CurrentStore;
use crate::error::{Failure, chain};

/// For each run the files that it read and that its build does not declare, as `inputs
/// --undeclared` lists them. `None` for a run without declarations.
pub fn of_runs(
    current: &CurrentStore,
    view: &View,
) -> Result<Vec<Option<HashSet<Bytes>>>, Failure> {
    let of_run = |id: &str| {
        let recording = Recording::without_lookups(&current.store, id)?;
        let index = current.home.packages_path();
        let mut ownership = Ownership::indexed(&index, [recording.cwd()]);
        let build = BuildRun::of(&recording, &mut ownership, &PROGRAMS);
        let (rules, declared_by) =
            declarations(&build).map_err(|error| Failure::not_found(chain(&error)))?;
        let found = compare(&build, &rules, None).undeclared.into_iter();
        Ok((!declared_by.is_empty()).then(|| found.map(|one| one.path).collect()))
    };
    let ids = view.runs.iter().map(|run| run.summary.id.as_str());
    ids.map(of_run).collect()
}

/// The inputs of a view that their build does not declare. `None` if a run has no declarations.
pub fn of_view(
    current: &CurrentStore,
    view: &View,
    inventory: &Inventory,
) -> Result<Option<BTreeSet<Bytes>>, Failure> {
    let by_run: Option<Vec<HashSet<Bytes>>> = of_runs(current, view)?.into_iter().collect();
    Ok(by_run.map(|by_run| {
        hermeticity::inputs(inventory)
            .filter(|item| by_run[item.run].contains(&item.path))
            .map(|item| item.path.clone())
            .collect()
    }))
}
