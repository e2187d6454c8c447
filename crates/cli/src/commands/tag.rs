//! `tag`: attaches tags to a run, or prints them.

use std::io::Write;
use std::path::Path;

use backstory_store::annotation_history::{self, StampedAnnotation};
use backstory_store::{Annotation, AnnotationKind, RunAnnotations};

use super::{Outcome, answer};
use crate::args::search::TagArgs;
use crate::current_store::CurrentStore;
use crate::error::one_line;

/// Attaches the tags. They go to the journal, from which every store is filled.
pub fn run(args: TagArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let run = current.run(Some(&args.run))?;
    if args.tags.is_empty() {
        let mut tags = current.store.annotations(&run)?;
        tags.retain(|one| one.kind == AnnotationKind::Tag);
        return answer(|out| {
            tags.iter().try_for_each(|tag| {
                let value = tag.value.as_deref().unwrap_or_default();
                writeln!(out, "{}={}", one_line(&tag.key), one_line(value))
            })
        });
    }
    let set = |(key, value): (String, String)| {
        StampedAnnotation::of(Annotation {
            run: run.clone(),
            kind: AnnotationKind::Tag,
            key,
            value: Some(value).filter(|value| !value.is_empty()),
        })
    };
    let records = args.tags.into_iter().map(set).collect();
    annotation_history::append_newest(&current.home, records)?;
    Ok(0)
}
