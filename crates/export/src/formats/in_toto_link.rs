//! in-toto's link metadata (specification 1.0, section 4.4): the evidence for one step of a supply
//! chain, which `in-toto-verify` compares with the layout.
//!
//! The name of the step is that of the run. `in-toto-sign` adds the signature.

use serde_json::{Map, Value, json};

use super::notation::{purl, text};
use crate::family::Family;
use crate::format::{Format, Target};
use crate::inventory::{Inventory, InventoryFile};
use crate::{Error, Result, View};

/// `in-toto-link`
pub struct InTotoLink;

impl Format for InTotoLink {
    fn name(&self) -> &'static str {
        "in-toto-link"
    }
    fn about(&self) -> &'static str {
        "in-toto's evidence for a step of a layout; the run's name is that of the step"
    }
    fn family(&self) -> Family {
        Family::Standard
    }
    fn proven_by(&self) -> &'static str {
        "in-toto-verify"
    }
    fn hint(&self) -> Option<&'static str> {
        Some("in-toto-sign -f OUT -k KEY")
    }
    fn warnings(&self, view: &View) -> Vec<String> {
        let unnamed = view.runs.iter().find(|run| run.summary.name.is_none());
        let warning = unnamed.map(|run| {
            format!(
                "the step is named {0}, because the run has no name: `backstory name {0} NAME` gives it one",
                run.summary.id
            )
        });
        warning.into_iter().collect()
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let [run] = &view.runs[..] else {
            return Err(Error::Nothing {
                subject: view.subject.clone(),
                what: "single run that made it",
                advice: "a link is about one step: export each run by itself",
            });
        };
        let bill = Inventory::of(view)?;
        let files = |wanted: &dyn Fn(&InventoryFile) -> bool| -> Map<String, Value> {
            let items = bill.items.iter().filter(|item| wanted(item));
            // A file that is left out would satisfy a rule that disallows it.
            let named = items.map(|item| {
                let sums = item.sums.as_ref();
                let digests = sums.map_or_else(|| json!({}), |sums| json!({"sha256": sums.sha256}));
                (text(view.shown(&item.path)), digests)
            });
            named.collect()
        };
        let packages = bill.packages.iter();
        let packages: Vec<String> = packages
            .map(|package| purl(package, &run.machine.distribution))
            .collect();
        let status = run
            .summary
            .signal
            .map_or(run.summary.exit, |signal| Some(-signal));
        let link = json!({
            "signatures": [],
            "signed": {
                "_type": "link",
                "name": run.summary.name.as_ref().unwrap_or(&run.summary.id),
                "command": run.summary.command.iter().map(|word| text(word)).collect::<Vec<_>>(),
                "materials": files(&|item| !item.made),
                "products": files(&|item| item.result),
                "byproducts": {
                    "return-value": status,
                    "complete": run.summary.complete,
                    "peers": run.peers,
                },
                "environment": {
                    "workdir": text(&run.summary.cwd),
                    "run": run.summary.id,
                    "packages": packages,
                },
            },
        });
        serde_json::to_writer_pretty(&mut *target.stream(), &link).map_err(std::io::Error::from)?;
        Ok(())
    }
}
