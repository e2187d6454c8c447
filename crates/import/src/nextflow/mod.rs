//! Nextflow's own records of a run: `trace.txt`, `.nextflow.log`, and the files of each task's
//! directory.
//!
//! | module | what it does |
//! | --- | --- |
//! | `trace` | reads the table of `-with-trace` |
//! | `task_files` | reads `.command.run`: inputs, outputs, name, directory |
//! | `tasks` | joins them: an activity for each task |
//!
//! A task is an activity. Its inputs are those that Nextflow staged, and its outputs are those that
//! its process declares. The records have no file that a script opened besides.

mod task_files;
mod tasks;
mod trace;

use crate::description::{self, Locations};
use crate::lines::{LineFile, LogLine};
use crate::{Error, Findings, ImportFormat, ImportJob, LogFile, RecordLog};
use std::os::unix::ffi::OsStrExt;
use tasks::TaskReader;

/// The name of the format in messages.
const FORMAT: &str =
    "file of Nextflow (trace.txt, .nextflow.log, .command.run, .command.sh, .exitcode)";
/// The first line of `.nextflow.log` has the command after this text.
const LAUNCHED: &[u8] = b" nextflow.cli.Launcher - $> ";

/// `nextflow`
pub(crate) struct NextflowFormat;

impl ImportFormat for NextflowFormat {
    fn name(&self) -> &'static str {
        "nextflow"
    }

    fn about(&self) -> &'static str {
        "Nextflow's trace.txt and .nextflow.log, and work/*/*/.command.* and .exitcode"
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        beginning.starts_with(b"task_id\t") || memchr::memmem::find(beginning, LAUNCHED).is_some()
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let mut reader = TaskReader::new(Locations::of(job));
        for (at, file) in job.files.files.iter().enumerate() {
            read(job, at, file, &mut reader)?;
            (job.done)(file.bytes);
            if reader.is_full() {
                return Err(Error::too_large(&file.path));
            }
        }
        let Some(described) = reader.finish() else {
            let path = job.files.files.first().map(|file| file.path.clone());
            let why = "no file has a task".to_owned();
            return Err(Error::not_of_format(&path.unwrap_or_default(), FORMAT, why));
        };
        Ok(description::run(
            job,
            known,
            records,
            b"nextflow",
            described,
        ))
    }
}

/// Takes one file.
fn read(
    job: &ImportJob<'_>,
    at: usize,
    file: &LogFile,
    reader: &mut TaskReader,
) -> Result<(), Error> {
    let name = file.path.file_name().unwrap_or_default().as_bytes();
    match name {
        b".command.run" => reader.task(&file.path).launched(&lines(job, at)?),
        b".command.sh" => reader.task(&file.path).script(&lines(job, at)?),
        b".exitcode" => reader
            .task(&file.path)
            .exited(&lines(job, at)?, file.changed),
        b".command.begin" => reader.task(&file.path).began = Some(file.changed),
        b".command.out" | b".command.err" | b".command.log" | b".command.trace" => {}
        _ => table_or_log(job, at, file, reader)?,
    }
    Ok(())
}

/// Takes a file that may have any name: the trace, or the log.
fn table_or_log(
    job: &ImportJob<'_>,
    at: usize,
    file: &LogFile,
    reader: &mut TaskReader,
) -> Result<(), Error> {
    let (mut source, mut line) = (LineFile::open(job.files, at)?, LogLine::default());
    source.next(&mut line)?;
    if let Some(found) = memchr::memmem::find(&line.bytes, LAUNCHED) {
        let command = &line.bytes[found + LAUNCHED.len()..];
        reader.launched(&file.path, command.trim_ascii());
        return Ok(());
    }
    let Some(columns) = trace::Columns::of(&line.bytes) else {
        let why = "it is none of these files: the first line of a trace begins with `task_id`";
        return Err(Error::not_of_format(&file.path, FORMAT, why.to_owned()));
    };
    while source.next(&mut line)? > 0 {
        reader.row(&columns, &line.bytes, line.is_last);
        if reader.is_full() {
            return Err(Error::too_large(&file.path));
        }
    }
    Ok(())
}

/// The most bytes of a task's file that are read. Nextflow's own part is about 10 kB.
const MOST_BYTES: usize = 4 << 20;

/// The lines of a small file.
fn lines(job: &ImportJob<'_>, at: usize) -> Result<Vec<Vec<u8>>, Error> {
    let (mut source, mut line) = (LineFile::open(job.files, at)?, LogLine::default());
    let (mut all, mut bytes) = (Vec::new(), 0);
    while bytes < MOST_BYTES && source.next(&mut line)? > 0 {
        bytes += line.bytes.len() + 64;
        all.push(std::mem::take(&mut line.bytes));
    }
    Ok(all)
}
