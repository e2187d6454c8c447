//! Logs of PROBE: the archive that `probe record` writes after it has transcribed its log.
//!
//! | module | what it does |
//! | --- | --- |
//! | `archive` | finds the logs of threads in the archive, and reads their operations |
//! | `operation` | the operations, as MessagePack has them |
//! | `processes` | makes activities of programs, and joins those that started others |
//! | `uses` | makes relations of operations |
//!
//! The archive is read twice: for the processes, and for their operations. Each thread has a log of
//! its own, and no operation has a time. So the log does not tell the order of two processes.
//!
//! The layout is that of PROBE's commit 53c5027. Fields that it does not fill are ignored: the
//! error number, the program's own path, and the number that an open gets.
//!
//! Invariant: memory grows with programs, files and relations, not with the archive.

mod archive;
mod operation;
mod processes;
mod uses;

use crate::description::{self, Locations};
use crate::{Error, Findings, ImportFormat, ImportJob, RecordLog};
use archive::read_operations;
use processes::ProcessReader;
use uses::UseReader;

/// The name of the format in messages.
const FORMAT: &str = "log of PROBE (probe record)";

/// `probe`
pub(crate) struct ProbeFormat;

impl ImportFormat for ProbeFormat {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn about(&self) -> &'static str {
        "the log that `probe record` writes: an archive with operations in MessagePack"
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        archive::is_like(beginning)
    }

    fn is_compressed(&self) -> bool {
        true
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let file = job.only_file("a log of PROBE is one file: import each by itself")?;
        let malformed = |why: String| Error::not_of_format(&file.path, FORMAT, why);
        let mut processes = ProcessReader::default();
        read_operations(file, |epoch, operation| {
            processes.operation(epoch, operation);
            !processes.is_full()
        })?;
        if processes.is_full() {
            return Err(Error::too_large(&file.path));
        }
        if processes.is_empty() {
            return Err(malformed("no process of it has begun".to_owned()));
        }
        let mut uses = UseReader::new(processes.finish(Locations::of(job)));
        let damage = read_operations(file, |epoch, operation| {
            uses.operation(epoch, operation);
            !uses.is_full()
        })?;
        if uses.is_full() {
            return Err(Error::too_large(&file.path));
        }
        (job.done)(file.bytes);
        let run = uses.finish(damage);
        Ok(description::run(job, known, records, b"probe", run))
    }
}
