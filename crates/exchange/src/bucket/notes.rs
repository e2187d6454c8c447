//! The annotations and signatures of a run, of several objects or stores.

use backstory_store::annotation_history::{AnnotationHistory, StampedAnnotation};
use backstory_store::annotations;

use crate::message::short_digest;
use crate::{Parcel, signature};

use super::objects;

/// Annotations and signatures of one run. The order in which they were added does not matter.
#[derive(Debug, Default)]
pub struct Notes {
    annotations: Vec<StampedAnnotation>,
    signatures: String,
}

/// Annotations and signatures in the form of their sections.
pub struct NoteTexts {
    pub lines: String,
    pub signatures: String,
}

impl Notes {
    /// Adds those that an archive has of this run.
    pub fn add(&mut self, run: &str, parcel: &Parcel) {
        let of_run = parcel.annotations.iter().filter(|one| one.run == run);
        self.annotations.extend(of_run.cloned());
        let signatures = parcel.signatures.get(run).into_iter().flatten();
        signatures.for_each(|one| self.signatures += one);
    }

    /// The texts, as a store with the same annotations and signatures has them.
    pub fn texts(&self, run: &str) -> NoteTexts {
        let lines = annotations::to_lines(&self.annotations);
        let history = AnnotationHistory::from_lines(lines.as_bytes());
        let merged: Vec<_> = history.of_run(run).collect();
        NoteTexts {
            lines: annotations::to_lines(&merged),
            signatures: signature::blocks(self.signatures.as_bytes()).concat(),
        }
    }
}

impl NoteTexts {
    /// The name of their object.
    pub fn name(&self, run: &str) -> String {
        objects::notes(
            run,
            &short_digest(&self.lines),
            &short_digest(&self.signatures),
        )
    }

    /// True if there is neither an annotation nor a signature.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.signatures.is_empty()
    }
}
