//! Workflow Run RO-Crate: the metadata file of a crate, as `backstory export ro-crate`, runcrate
//! and workflow engines write it.
//!
//! | module | what it does |
//! | --- | --- |
//! | `document` | reads the nodes of the JSON-LD document as they come |
//! | `nodes` | actions, files and values |
//! | `actions` | makes activities and relations of actions |
//!
//! A file is named by its path outside the crate, if the crate gives it (`alternateName`), and else
//! by its path in the crate.

mod actions;
mod document;
mod nodes;

use crate::beginning::is_json_with;
use crate::description::{self, Locations};
use crate::{Error, Findings, ImportFormat, ImportJob, RecordLog};
use document::CrateDocument;
use nodes::CrateReader;

/// The name of the format in messages.
const FORMAT: &str = "metadata file of a Workflow Run RO-Crate";

/// `ro-crate`
pub(crate) struct RoCrateFormat;

impl ImportFormat for RoCrateFormat {
    fn name(&self) -> &'static str {
        "ro-crate"
    }

    fn about(&self) -> &'static str {
        "ro-crate-metadata.json of a Workflow Run RO-Crate"
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        is_json_with(beginning, &["w3id.org/ro/crate/"])
    }

    fn files_within(&self) -> &'static [&'static str] {
        &["ro-crate-metadata.json"]
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let mut reader = CrateReader::new(Locations::of(job));
        for file in &job.files.files {
            reader.begin_crate(&file.path);
            let read = crate::json::document(job, file, FORMAT, CrateDocument(&mut reader));
            if reader.is_full() {
                return Err(Error::too_large(&file.path));
            }
            read?;
            if !reader.has_actions() {
                return Err(Error::not_of_format(
                    &file.path,
                    FORMAT,
                    "it has no \"@graph\" with a \"CreateAction\"".to_owned(),
                ));
            }
        }
        let name = reader.name().to_owned();
        Ok(description::run(
            job,
            known,
            records,
            name.as_bytes(),
            reader.finish(),
        ))
    }
}
