//! The verdicts of replays of a run, as annotations of the run.
//!
//! `replay` appends one when it has compared the outputs. The store keeps no files of a replay: its
//! directory belongs to the user.

use backstory_store::{Annotation, AnnotationKind};
use serde::{Deserialize, Serialize};

/// How a replay of a run came out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayVerdict {
    /// When it ended, in nanoseconds since 1970.
    #[serde(skip)]
    pub ended: i64,
    /// No output is known to differ, and the exit status is the recorded one.
    pub identical: bool,
    /// The user changed neither the command nor its inputs for this replay.
    pub faithful: bool,
    /// The exit status of the replayed command.
    pub exit: i32,
    /// The recorded outputs.
    pub outputs: usize,
    /// Outputs whose recorded content is not known.
    pub unknown: usize,
    /// Paths of outputs with another content, as text.
    pub different: Vec<String>,
    /// Paths of outputs that the replay did not leave, as text.
    pub missing: Vec<String>,
    /// Files that the replay left and the recorded run did not.
    pub new: usize,
    /// How long the command ran, in ns.
    pub took: u64,
}

impl ReplayVerdict {
    /// The most paths of a list.
    pub const PATHS: usize = 100;

    /// The verdict in an annotation. `None` for an annotation of another kind.
    pub fn of(annotation: &Annotation) -> Option<ReplayVerdict> {
        let value = annotation.value.as_deref()?;
        if annotation.kind != AnnotationKind::Replay {
            return None;
        }
        let mut verdict: ReplayVerdict = serde_json::from_str(value).ok()?;
        verdict.ended = annotation.key.parse().ok()?;
        Some(verdict)
    }

    /// The annotation of a run with this verdict.
    pub fn annotation(&self, run: &str) -> Annotation {
        Annotation {
            run: run.to_owned(),
            kind: AnnotationKind::Replay,
            key: self.ended.to_string(),
            // Numbers, strings and lists of strings always have a JSON form.
            value: serde_json::to_string(self).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_read_from_its_annotation() {
        let verdict = ReplayVerdict {
            ended: 17,
            identical: false,
            outputs: 3,
            different: vec!["/a \"b\"".to_owned()],
            ..ReplayVerdict::default()
        };
        let annotation = verdict.annotation("7hx2k9qa");
        assert_eq!(ReplayVerdict::of(&annotation), Some(verdict));
        let tag = Annotation {
            kind: AnnotationKind::Tag,
            ..annotation
        };
        assert_eq!(ReplayVerdict::of(&tag), None);
    }
}
