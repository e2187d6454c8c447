//! The side that the user started: sends requests and reads replies.
//!
//! Invariant: the other side is not trusted. Lists ascend, so that they end; ids and digests have
//! their form; texts for the user are short.

use std::io::{BufReader, BufWriter, Read, Write};

use backstory_files::Digest;

use crate::archive_stream::{ArchiveReader, ArchiveWriter};
use crate::frame::{self, Kind};
use crate::incoming::Accepted;
use crate::message::{self, PAGE, Reply, Request};
use crate::{Error, Result, RunEntry};

/// Longest text of the other side that is shown, in bytes.
const LONGEST_TEXT: usize = 2000;

/// A connection to a store that [`serve`](crate::serve) serves.
pub struct Connection<'a> {
    input: BufReader<Box<dyn Read + 'a>>,
    output: BufWriter<Box<dyn Write + 'a>>,
    /// The version of the other program.
    pub program: String,
}

impl<'a> Connection<'a> {
    /// Begins an exchange. `program` is the version of this program; `select` are the options of
    /// `log` that select the runs to offer.
    ///
    /// # Errors
    /// [`Error::Connection`] if the other side is no such store, or speaks another version.
    pub fn begin(
        input: impl Read + 'a,
        output: impl Write + 'a,
        program: &str,
        select: &[String],
    ) -> Result<Connection<'a>> {
        let mut connection = Connection {
            input: BufReader::new(Box::new(input)),
            output: BufWriter::new(Box::new(output)),
            program: String::new(),
        };
        // A lost connection shows in the greeting that does not come.
        let greeted = frame::greet(&mut connection.output);
        match frame::greeting(&mut connection.input) {
            Ok(frame::VERSION) => greeted?,
            Ok(other) => {
                return Err(Error::Connection(format!(
                    "the other side speaks version {other} of the protocol, and this program version {}: install the same version of backstory on both",
                    frame::VERSION
                )));
            }
            Err(bytes) if bytes.is_empty() => {
                return Err(Error::Connection("it ended before it began".to_owned()));
            }
            Err(bytes) => {
                return Err(Error::Connection(format!(
                    "the other side prints \"{}\" instead of the protocol: its shell's startup files must print nothing",
                    bytes.escape_ascii()
                )));
            }
        }
        let hello = Request::Hello {
            program: program.to_owned(),
            select: select.to_vec(),
        };
        match connection.ask(&hello)? {
            Reply::Hello { program } => connection.program = short(program),
            _ => return Err(unfit()),
        }
        Ok(connection)
    }

    fn send(&mut self, request: &Request) -> Result<()> {
        let text = serde_json::to_vec(request)
            .map_err(|error| Error::Protocol(format!("a request has no form in JSON: {error}")))?;
        frame::write(&mut self.output, Kind::Message, &text)?;
        frame::flush(&mut self.output)
    }

    fn reply(&mut self) -> Result<Reply> {
        let (kind, payload) = frame::read(&mut self.input)?
            .ok_or_else(|| Error::Connection("the connection ended".to_owned()))?;
        if kind != Kind::Message {
            return Err(unfit());
        }
        match serde_json::from_slice(&payload) {
            Ok(Reply::Failed { message }) => Err(Error::OtherSide(short(message))),
            Ok(reply) => Ok(reply),
            Err(error) => Err(Error::Protocol(format!("a reply cannot be read: {error}"))),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Reply> {
        self.send(request)?;
        self.reply()
    }

    /// At most 1,000 runs of the other store behind this one, in the order of their ids.
    pub fn runs(&mut self, after: Option<&str>) -> Result<Vec<RunEntry>> {
        let request = Request::Runs {
            after: after.map(str::to_owned),
        };
        let Reply::Runs { runs } = self.ask(&request)? else {
            return Err(unfit());
        };
        check_page(after, runs.iter().map(|entry| entry.run.as_str()))?;
        for entry in &runs {
            message::check_run(&entry.run)?;
            message::digest(&entry.digest)?;
        }
        Ok(runs)
    }

    /// At most 1,000 stored contents of a run behind this one, in the order of their digests.
    pub fn contents_of(&mut self, run: &str, after: Option<&Digest>) -> Result<Vec<(Digest, u64)>> {
        let after = after.map(Digest::to_string);
        let request = Request::ContentsOf {
            run: run.to_owned(),
            after: after.clone(),
        };
        let Reply::Contents { contents } = self.ask(&request)? else {
            return Err(unfit());
        };
        check_page(
            after.as_deref(),
            contents.iter().map(|(text, _)| text.as_str()),
        )?;
        let parsed = contents.iter();
        parsed
            .map(|(text, size)| Ok((message::digest(text)?, *size)))
            .collect()
    }

    /// Those of these contents that the other store does not have.
    pub fn lacking(&mut self, digests: &[Digest]) -> Result<Vec<Digest>> {
        let request = Request::Lacking {
            digests: message::texts(digests),
        };
        let Reply::Lacking { digests: lacking } = self.ask(&request)? else {
            return Err(unfit());
        };
        let mut lacking = message::digests(&lacking)?;
        lacking.retain(|digest| digests.contains(digest));
        Ok(lacking)
    }

    /// Reads an archive with a run.
    pub fn read_run<T>(
        &mut self,
        run: &str,
        take: impl FnOnce(&mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        let run = run.to_owned();
        self.read_archive(&Request::ReadRun { run }, take)
    }

    /// Reads an archive with contents.
    pub fn read_contents<T>(
        &mut self,
        digests: &[Digest],
        take: impl FnOnce(&mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        let digests = message::texts(digests);
        self.read_archive(&Request::ReadContents { digests }, take)
    }

    /// Reads an archive with the annotations and signatures of at most 1,000 runs.
    pub fn read_annotations<T>(
        &mut self,
        runs: &[String],
        take: impl FnOnce(&mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        let runs = runs.to_vec();
        self.read_archive(&Request::ReadAnnotations { runs }, take)
    }

    fn read_archive<T>(
        &mut self,
        request: &Request,
        take: impl FnOnce(&mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        let Reply::Archive = self.ask(request)? else {
            return Err(unfit());
        };
        let mut archive = ArchiveReader::new(&mut self.input);
        let taken = take(&mut archive);
        archive.end(taken)
    }

    /// Sends an archive, which the other store adds.
    pub fn send_archive(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<Accepted> {
        self.send(&Request::Accept)?;
        let sent = ArchiveWriter::new(&mut self.output).send(write);
        if let Err(error) = &sent
            && !error.concerns_one_run()
        {
            // The other side may have said why before it ended.
            return sent.map(|()| Accepted::default());
        }
        let replied = self.reply();
        sent?;
        let Reply::Accepted {
            added,
            known,
            lacking,
            annotations,
        } = replied?
        else {
            return Err(unfit());
        };
        Ok(Accepted {
            added,
            known,
            lacking: message::digests(&lacking)?,
            annotations,
        })
    }

    /// Ends the exchange. Returns what the other side reports about runs that it cannot index.
    pub fn finish(&mut self) -> Result<Vec<String>> {
        match self.ask(&Request::Finish)? {
            Reply::Finished { problems } => {
                Ok(problems.into_iter().take(PAGE).map(short).collect())
            }
            _ => Err(unfit()),
        }
    }
}

/// Checks that a page ascends from the last item of the page before.
fn check_page<'t>(after: Option<&str>, items: impl Iterator<Item = &'t str>) -> Result<()> {
    let (mut last, mut count) = (after.unwrap_or_default().to_owned(), 0);
    for item in items {
        count += 1;
        if item <= last.as_str() || count > PAGE {
            return Err(Error::Protocol(
                "a list does not ascend, or is too long".to_owned(),
            ));
        }
        last = item.to_owned();
    }
    Ok(())
}

fn unfit() -> Error {
    Error::Protocol("a reply does not fit its request".to_owned())
}

fn short(text: String) -> String {
    message::shortened(&text, LONGEST_TEXT).to_owned()
}
