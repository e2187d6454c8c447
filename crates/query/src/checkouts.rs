//! The git work trees that a run used, as they were then.

use std::collections::HashSet;

use backstory_store::{Annotation, AnnotationKind, Store};
use serde::{Deserialize, Serialize};

use crate::Result;

/// The state of one work tree.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Checkout {
    /// Its top directory.
    #[serde(skip)]
    pub root: String,
    /// The commit that was checked out. `None` before the first commit, or if it is not known.
    pub commit: Option<String>,
    /// Why the commit is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// The branch. `None` if a commit was checked out without a branch.
    pub branch: Option<String>,
    /// True once the work tree was compared with the commit, or if that is not possible any more.
    pub examined: bool,
    /// The tracked files that differed from the commit, without those that the run wrote itself.
    /// `None` if that is not known.
    pub changed: Option<Vec<String>>,
}

impl Checkout {
    /// The state in an annotation. `None` for an annotation of another kind.
    pub fn of(annotation: &Annotation) -> Option<Checkout> {
        let value = annotation.value.as_deref()?;
        if annotation.kind != AnnotationKind::Checkout {
            return None;
        }
        let mut checkout: Checkout = serde_json::from_str(value).ok()?;
        checkout.root.clone_from(&annotation.key);
        Some(checkout)
    }

    /// The annotation of a run with this state.
    pub fn annotation(&self, run: &str) -> Annotation {
        Annotation {
            run: run.to_owned(),
            kind: AnnotationKind::Checkout,
            key: self.root.clone(),
            // Strings and lists of strings always have a JSON form.
            value: serde_json::to_string(self).ok(),
        }
    }
}

/// The work trees that a run used.
pub fn checkouts(store: &dyn Store, run: &str) -> Result<Vec<Checkout>> {
    let all = store.annotations(run)?;
    Ok(all.iter().filter_map(Checkout::of).collect())
}

/// The ids of the runs that used a work tree at a commit whose hash begins with `commit`.
pub fn runs_at_commit(store: &dyn Store, commit: &str) -> Result<HashSet<String>> {
    let all = store.annotations_of(AnnotationKind::Checkout, None)?;
    let at = |one: &Annotation| {
        let commit_of = Checkout::of(one).and_then(|checkout| checkout.commit);
        commit_of.is_some_and(|hash| hash.starts_with(commit))
    };
    Ok(all.into_iter().filter(at).map(|one| one.run).collect())
}
