//! The annotations of a recorded run: tags, parameters, the git work tree, metrics.

use std::path::PathBuf;

use backstory_session as session;
use backstory_store::annotations::{self, Annotation, AnnotationRecord};
use backstory_store::{AnnotationKind, Home};

use crate::args::record::RecordArgs;
use crate::checkout;
use crate::error::Failure;
use crate::parameter_file;

/// The annotations that the run has before its command starts: tags, parameters, and the commit of
/// the current directory's git work tree.
///
/// # Errors
///
/// A file with parameters cannot be read.
pub fn said_before(run: &str, args: &RecordArgs) -> Result<Vec<AnnotationRecord>, Failure> {
    let mut said = Vec::new();
    for (key, value) in &args.tag {
        said.push(annotation(
            run,
            AnnotationKind::Tag,
            key,
            value,
            &args.redact,
        ));
    }
    for path in &args.param_from {
        for (key, value) in parameter_file::read(path).map_err(Failure::misuse)? {
            let kind = AnnotationKind::Parameter;
            said.push(annotation(run, kind, &key, &value, &args.redact));
        }
    }
    let here = std::env::current_dir().ok();
    if let Some(checkout) = here.and_then(|here| checkout::at(&here)) {
        said.push(AnnotationRecord::Set(checkout.annotation(run)));
    }
    Ok(said)
}

fn annotation(
    run: &str,
    kind: AnnotationKind,
    key: &str,
    value: &str,
    redact: &[String],
) -> AnnotationRecord {
    AnnotationRecord::Set(Annotation {
        run: run.to_owned(),
        kind,
        key: key.to_owned(),
        value: Some(session::redacted_value(key, value, redact)),
    })
}

/// Adds the metrics of a run, as the command left them in these files. The values of secret
/// names are redacted.
///
/// # Errors
///
/// A file cannot be read, or the store cannot be written.
pub fn add_metrics(
    home: &Home,
    run: &str,
    files: &[PathBuf],
    redact: &[String],
) -> Result<(), Failure> {
    let mut found = Vec::new();
    for path in files {
        for (key, value) in parameter_file::read(path).map_err(Failure::not_found)? {
            let kind = AnnotationKind::Metric;
            found.push(annotation(run, kind, &key, &value, redact));
        }
    }
    match found.is_empty() {
        true => Ok(()),
        false => Ok(annotations::append(home, &found)?),
    }
}
