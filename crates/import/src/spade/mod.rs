//! SPADE's DSL: lines with vertices and edges, as SPADE's reporter of this name reads them.
//!
//! | module | what it does |
//! | --- | --- |
//! | `line` | splits a line into keys and values |
//! | `statement` | takes out what SPADE itself knows |
//! | `vertices` | activities and entities of the terms of OPM and PROV |
//! | `edges` | what relates them |
//!
//! SPADE does not prescribe the keys of vertices. Those that its own reporters for Linux write have
//! a place in the graph. Others become notes of activities.

mod edges;
mod line;
mod statement;
mod vertices;

use crate::beginning::has_line;
use crate::description::{self, Locations};
use crate::lines::{LineFile, LogLine};
use crate::{Error, Findings, ImportFormat, ImportJob, RecordLog};
use vertices::SpadeReader;

/// The name of the format in messages.
const FORMAT: &str = "file of SPADE's DSL";

/// `spade`
pub(crate) struct SpadeFormat;

impl ImportFormat for SpadeFormat {
    fn name(&self) -> &'static str {
        "spade"
    }

    fn about(&self) -> &'static str {
        "vertices and edges in SPADE's DSL, as `backstory export opm` and SPADE's programs write it"
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        has_line(beginning, |line| {
            line.starts_with(b"type:") && memchr::memmem::find(line, b" ").is_some()
        })
    }

    fn is_of_lines(&self) -> bool {
        true
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let mut reader = SpadeReader::new(Locations::of(job));
        let mut line = LogLine::default();
        for at in 0..job.files.files.len() {
            let path = &job.files.files[at].path;
            let mut file = LineFile::open(job.files, at)?;
            let before = reader.statements;
            loop {
                let read = file.next(&mut line)?;
                if read == 0 {
                    break;
                }
                (job.done)(read);
                reader.line(&line.bytes);
                if reader.is_full() {
                    return Err(Error::too_large(path));
                }
            }
            if reader.statements == before {
                let why = "no line has a \"type\" of SPADE".to_owned();
                return Err(Error::not_of_format(path, FORMAT, why));
            }
        }
        Ok(description::run(
            job,
            known,
            records,
            b"spade",
            reader.finish(),
        ))
    }
}
