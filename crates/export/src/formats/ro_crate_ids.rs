//! Identifiers in a Research Object Crate, and references to them.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::notation::escaped;
use crate::inventory::InventoryStep;

/// JSON-LD references to these identifiers, each once.
pub(super) fn references(ids: impl Iterator<Item = impl Into<String>>) -> Vec<Value> {
    let unique: BTreeSet<String> = ids.map(Into::into).into_tree();
    unique.into_iter().map(|id| json!({"@id": id})).collect()
}

/// The identifier of a step's action.
pub(super) fn action_id(step: &InventoryStep) -> String {
    format!("#action-{}-{}", step.run, escaped(step.name.as_bytes()))
}
