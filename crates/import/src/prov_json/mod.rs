//! W3C PROV as PROV-JSON: what `backstory export prov-json` writes, and documents of other tools.
//!
//! | module | what it does |
//! | --- | --- |
//! | `document` | reads the sections of a document as they come |
//! | `terms` | values: texts, times, names with a prefix |
//! | `nodes` | activities and entities |
//! | `relations` | what relates them |
//! | `completion` | what is known at the end only |
//!
//! An entity is a file if it has a location in a file system, or if its name is a `file:` URI. Any
//! other entity is a thing with the URI of its name. An activity that is no command of backstory is
//! a named part of some tool's work.

mod completion;
mod document;
mod nodes;
mod relations;
mod terms;

pub(crate) use terms::{command_words, time};

use crate::beginning::is_json_with;
use crate::description::{self, Locations};
use crate::{Error, Findings, ImportFormat, ImportJob, RecordLog};
use document::ProvDocument;
use nodes::ProvReader;

/// The name of the format in messages.
const FORMAT: &str = "PROV-JSON";

/// `prov-json`
pub(crate) struct ProvJsonFormat;

impl ImportFormat for ProvJsonFormat {
    fn name(&self) -> &'static str {
        "prov-json"
    }

    fn about(&self) -> &'static str {
        "W3C PROV-JSON, as `backstory export prov-json`, Python's prov and CWLProv write it"
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        is_json_with(beginning, &["\"prov:"]) && !is_json_with(beginning, &["\"@graph\""])
    }

    fn files_within(&self) -> &'static [&'static str] {
        &["metadata/provenance/primary.cwlprov.json"]
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let mut reader = ProvReader::new(Locations::of(job));
        for file in &job.files.files {
            reader.begin_file();
            crate::json::document(job, file, FORMAT, ProvDocument(&mut reader)).map_err(
                |error| match reader.is_full() {
                    true => Error::too_large(&file.path),
                    false => error,
                },
            )?;
            if !reader.has_statements() {
                return Err(Error::not_of_format(
                    &file.path,
                    FORMAT,
                    "it has no \"entity\", no \"activity\" and no relation".to_owned(),
                ));
            }
        }
        let name = job
            .files
            .files
            .first()
            .and_then(|file| file.path.file_name());
        let name = name.map_or(&b"document"[..], std::os::unix::ffi::OsStrExt::as_bytes);
        Ok(description::run(job, known, records, name, reader.finish()))
    }
}
