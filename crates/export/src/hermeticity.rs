//! The things that a result depends on beside its inputs: the network, files from elsewhere, and
//! whatever makes a second build differ.
//!
//! In: a view, and the store that it came from. Out: the facts.
//!
//! Invariant: what is not known does not count as hermetic.

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Bytes;
use backstory_query::ReplayVerdict;
use backstory_store::Store;
use serde_json::{Value, json};

use crate::inventory::{Inventory, InventoryFile};
use crate::{Result, View};

/// A network address that a run talked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkUse {
    /// `tcp:192.0.2.1:443`
    pub address: Bytes,
    /// Names that it can have had.
    pub names: Vec<String>,
    /// A process received from it. True if that is not known.
    pub received: bool,
    /// The number of the run in the view.
    pub run: usize,
}

/// The facts about a result.
#[derive(Debug, Default)]
pub struct Hermeticity {
    /// The network addresses.
    pub network: Vec<NetworkUse>,
    /// Inputs that no package provides, and that lie outside of the directories of the runs.
    pub outside: BTreeSet<Bytes>,
    /// Inputs whose content is not known.
    pub unknown: BTreeSet<Bytes>,
    /// Inputs that the build did not declare. `None` if that was not asked, or is not known.
    pub undeclared: Option<BTreeSet<Bytes>>,
    /// Whether the last faithful replays gave the same outputs. `None` if a run was not replayed.
    pub reproducible: Option<bool>,
    /// Outputs that differed in a replay.
    pub different: Vec<String>,
    /// The records of all runs are complete.
    pub complete: bool,
}

impl Hermeticity {
    /// The facts about a view.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub fn of(store: &dyn Store, view: &View, inventory: &Inventory) -> Result<Hermeticity> {
        let mut facts = Hermeticity {
            complete: view.runs.iter().all(|run| run.summary.complete),
            reproducible: Some(true),
            ..Hermeticity::default()
        };
        for (at, run) in view.runs.iter().enumerate() {
            let id = run.summary.id.as_str();
            facts.add_network(store, at, id)?;
            let verdicts = store.annotations(id)?;
            let verdicts = verdicts.iter().filter_map(ReplayVerdict::of);
            let last = verdicts
                .filter(|verdict| verdict.faithful)
                .max_by_key(|verdict| verdict.ended);
            let same = last
                .as_ref()
                .map(|last| last.identical && last.unknown == 0);
            facts.reproducible = match (facts.reproducible, same) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            let differing = last
                .into_iter()
                .flat_map(|last| [last.different, last.missing]);
            facts.different.extend(differing.flatten());
        }
        for item in inputs(inventory) {
            if is_outside(view, item) {
                facts.outside.insert(item.path.clone());
            }
            let content = view.contents.of(item.run, &item.path, item.version);
            if content.is_none_or(|content| content.digest.is_none()) {
                facts.unknown.insert(item.path.clone());
            }
        }
        Ok(facts)
    }

    fn add_network(&mut self, store: &dyn Store, run: usize, id: &str) -> Result<()> {
        let mut by_address: BTreeMap<Bytes, NetworkUse> = BTreeMap::new();
        for contact in backstory_query::peers(store, id)? {
            if contact.connected == Some(false)
                || !backstory_query::is_network_peer(&contact.address)
            {
                continue;
            }
            let known = by_address
                .entry(contact.address.clone())
                .or_insert(NetworkUse {
                    address: contact.address,
                    names: Vec::new(),
                    received: false,
                    run,
                });
            known.received |= contact.received || contact.connected.is_none();
            for name in contact.names {
                if !known.names.contains(&name.name) {
                    known.names.push(name.name);
                }
            }
        }
        self.network.extend(by_address.into_values());
        Ok(())
    }

    /// True if all is known, and nothing came from elsewhere. A replay that differed, or an
    /// undeclared input, is not hermetic. Without a replay or without declarations, that question
    /// stays open.
    pub fn is_hermetic(&self) -> bool {
        self.complete
            && self.network.is_empty()
            && self.outside.is_empty()
            && self.unknown.is_empty()
            && self.undeclared.as_ref().is_none_or(BTreeSet::is_empty)
            && self.reproducible != Some(false)
    }

    /// The facts as a member of an attestation.
    pub fn json(&self) -> Value {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let paths = |list: &BTreeSet<Bytes>| -> Vec<String> { list.iter().map(text).collect() };
        let network = self.network.iter().map(|one| {
            json!({"address": text(&one.address), "names": one.names, "received": one.received})
        });
        json!({
            "hermetic": self.is_hermetic(),
            "network": network.collect::<Vec<_>>(),
            "inputsFromElsewhere": paths(&self.outside),
            "inputsWithoutDigest": paths(&self.unknown),
            "undeclaredInputs": self.undeclared.as_ref().map(paths),
            "reproducible": self.reproducible,
            "differentInReplay": self.different,
        })
    }
}

/// The files that existed before their run, and that no package provides.
pub fn inputs(inventory: &Inventory) -> impl Iterator<Item = &InventoryFile> {
    inventory.items.iter().filter(|item| !item.made)
}

/// True for an input that no package provides and that is not below the directory of any run.
pub fn is_outside(view: &View, item: &InventoryFile) -> bool {
    let below = |cwd: &[u8]| {
        let rest = item.path.strip_prefix(cwd);
        rest.is_some_and(|rest| cwd == b"/" || rest.first() == Some(&b'/'))
    };
    !view.runs.iter().any(|run| below(&run.summary.cwd))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undeclared_input_is_not_hermetic_and_unknown_declarations_leave_it_open() {
        let mut facts = Hermeticity {
            complete: true,
            ..Hermeticity::default()
        };
        assert!(facts.is_hermetic());
        assert_eq!(facts.json()["undeclaredInputs"], Value::Null);
        facts.undeclared = Some(BTreeSet::new());
        assert!(facts.is_hermetic());
        let forgotten: Bytes = b"/work/forgotten.h".as_slice().into();
        facts.undeclared = Some(BTreeSet::from([forgotten]));
        assert!(!facts.is_hermetic());
        let listed = json!(["/work/forgotten.h"]);
        assert_eq!(facts.json()["undeclaredInputs"], listed);
    }
}
