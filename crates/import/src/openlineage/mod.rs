//! OpenLineage: run events, one a line or in an array. What `backstory export openlineage` writes,
//! and events of other tools.
//!
//! Each run of a job is an activity. A dataset of the namespace `file` is a file; any other is a
//! thing with the URI of its namespace and its name. A dataset with a version is one entity; the
//! states of others follow from the times of the runs.

mod events;

use crate::beginning::is_json_with;
use crate::description::{self, Locations};
use crate::{Error, Findings, ImportFormat, ImportJob, RecordLog};
use events::EventReader;

/// The name of the format in messages.
const FORMAT: &str = "log of OpenLineage events";

/// `openlineage`
pub(crate) struct OpenLineageFormat;

impl ImportFormat for OpenLineageFormat {
    fn name(&self) -> &'static str {
        "openlineage"
    }

    fn about(&self) -> &'static str {
        "OpenLineage run events, one a line or as an array"
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        is_json_with(beginning, &["\"runId\"", "\"job\""])
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let mut reader = EventReader::new(Locations::of(job));
        for file in &job.files.files {
            let mut is_full = false;
            let read = crate::json::sequence(job, file, FORMAT, |event| {
                reader.event(&event)?;
                is_full = reader.is_full();
                match is_full {
                    true => Err("there are too many events".to_owned()),
                    false => Ok(()),
                }
            });
            if is_full {
                return Err(Error::too_large(&file.path));
            }
            read?;
            if !reader.has_events() {
                return Err(Error::not_of_format(
                    &file.path,
                    FORMAT,
                    "it has no event with a \"run\" and a \"job\"".to_owned(),
                ));
            }
        }
        let name = reader.name();
        Ok(description::run(
            job,
            known,
            records,
            name.as_bytes(),
            reader.finish(),
        ))
    }
}
