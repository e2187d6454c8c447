//! Snakemake's own record of its jobs: the files of `.snakemake/metadata`, one for each output.
//!
//! A job is an activity. Its inputs are those that its rule declares, and its outputs are the files
//! that Snakemake found afterwards. The record has no file that a command opened besides.

mod jobs;

use crate::beginning::is_json_with;
use crate::description::{self, Locations};
use crate::{Error, Findings, ImportFormat, ImportJob, RecordLog};
use jobs::JobReader;

/// The name of the format in messages.
const FORMAT: &str = "file of .snakemake/metadata";

/// `snakemake`
pub(crate) struct SnakemakeFormat;

impl ImportFormat for SnakemakeFormat {
    fn name(&self) -> &'static str {
        "snakemake"
    }

    fn about(&self) -> &'static str {
        "all files of Snakemake's directory .snakemake/metadata"
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        is_json_with(beginning, &["\"rule\"", "\"shellcmd\"", "\"job_hash\""])
    }

    fn files_within(&self) -> &'static [&'static str] {
        &[".snakemake/metadata/*", "metadata/*"]
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let mut reader = JobReader::new(Locations::of(job));
        for file in &job.files.files {
            let mut count = 0;
            let malformed = |why: String| Error::not_of_format(&file.path, FORMAT, why);
            let output = jobs::output_of(&file.path)
                .ok_or_else(|| malformed("its name is no output in base 64".to_owned()))?;
            crate::json::sequence(job, file, FORMAT, |record| {
                count += 1;
                reader.record(&file.path, &output, &record)
            })?;
            if count != 1 {
                return Err(malformed("it is not one object of JSON".to_owned()));
            }
            if reader.is_full() {
                return Err(Error::too_large(&file.path));
            }
        }
        Ok(description::run(
            job,
            known,
            records,
            b"snakemake",
            reader.finish(),
        ))
    }
}
