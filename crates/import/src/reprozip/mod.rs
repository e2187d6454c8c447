//! Traces of ReproZip: `.reprozip-trace/trace.sqlite3`, or a pack (`.rpz`) that has one.
//!
//! | module | what it does |
//! | --- | --- |
//! | `pack` | finds the trace in a pack |
//! | `tables`, `rows` | reads the tables of the trace |
//! | `opens` | makes activities of programs, and relations of opened files |
//!
//! ReproZip logs which files were opened, and how. It logs no read, no write, no close, no pipe, no
//! rename and no end of a process. So a write of a file that was opened
//! for writing is `possible`, until the run ended.

mod opens;
mod pack;
mod rows;
mod tables;

use crate::description::{self, Locations};
use crate::{Error, Findings, ImportFormat, ImportJob, RecordLog};
use opens::TraceReader;
use pack::Trace;

/// The name of the format in messages.
const FORMAT: &str = "trace of ReproZip (trace.sqlite3 or .rpz)";

/// `reprozip`
pub(crate) struct ReproZipFormat;

impl ImportFormat for ReproZipFormat {
    fn name(&self) -> &'static str {
        "reprozip"
    }

    fn about(&self) -> &'static str {
        "a trace of ReproZip: .reprozip-trace/trace.sqlite3, or a pack (.rpz)"
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        pack::is_like(beginning)
    }

    fn files_within(&self) -> &'static [&'static str] {
        &[".reprozip-trace/trace.sqlite3", "trace.sqlite3"]
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let file = job.only_file("a trace of ReproZip is one file: import each by itself")?;
        let mut reader = TraceReader::new(Locations::of(job), job.files.changed());
        let trace = pack::trace(file)
            .map_err(|error| Error::not_of_format(&file.path, FORMAT, error.to_string()))?;
        let path = match &trace {
            Trace::Itself => file.path.clone(),
            Trace::Packed(copy) => copy.path().to_owned(),
            Trace::Missing(first) => {
                return Err(Error::NoPack {
                    path: file.path.clone(),
                    first: first.clone(),
                });
            }
        };
        tables::read(&path, &mut reader).map_err(|error| match reader.is_full() {
            true => Error::too_large(&file.path),
            false => Error::not_of_format(&file.path, FORMAT, error.to_string()),
        })?;
        (job.done)(file.bytes);
        Ok(description::run(
            job,
            known,
            records,
            b"reprozip",
            reader.finish(),
        ))
    }
}
