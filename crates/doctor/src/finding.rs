//! The result of an examination: the facts and the verdict.

use backstory_vocabulary::vocabulary;

vocabulary! {
    /// Whether something is good enough to record with.
    pub enum Fitness: "verdict" {
        /// It is as recording needs it.
        Works = "works",
        /// Recording works, with the consequence that the finding names.
        Limited = "limited",
        /// Recording cannot work.
        Fails = "fails",
    }
}

/// One subject that was examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The subject. Part of the JSON interface: a name is added, never changed.
    pub name: &'static str,
    /// Whether it is good enough.
    pub verdict: Fitness,
    /// The facts.
    pub found: String,
    /// The consequence for recordings. Empty if it works.
    pub consequence: String,
    /// The remedy. Empty if it works.
    pub remedy: String,
}

impl Finding {
    /// A subject that is as recording needs it.
    pub(crate) fn works(name: &'static str, found: impl Into<String>) -> Finding {
        Finding {
            name,
            verdict: Fitness::Works,
            found: found.into(),
            consequence: String::new(),
            remedy: String::new(),
        }
    }

    /// A subject that limits what a recording contains, or how fast it is.
    pub(crate) fn limited(
        name: &'static str,
        found: impl Into<String>,
        consequence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            verdict: Fitness::Limited,
            consequence: consequence.into(),
            remedy: remedy.into(),
            ..Finding::works(name, found)
        }
    }

    /// A subject without which nothing can be recorded.
    pub(crate) fn fails(
        name: &'static str,
        found: impl Into<String>,
        consequence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            verdict: Fitness::Fails,
            ..Finding::limited(name, found, consequence, remedy)
        }
    }
}
