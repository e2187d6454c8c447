//! Serves a store to the other side: reads requests, writes replies.
//!
//! Invariant: a request that fails is answered by its reason, and the next one is read. Bytes that
//! are no request end the service.

use std::io::{Read, Write};

use backstory_vocabulary::error_chain;

use crate::archive_stream::{ArchiveReader, ArchiveWriter};
use crate::frame::{self, Kind};
use crate::message::{self, PAGE, Reply, Request};
use crate::peer::{Expected, Peer};
use crate::{Error, Result};

/// Serves `peer` until the other side ends the stream. `program` is the version of this program.
pub fn serve(
    peer: &mut dyn Peer,
    program: &str,
    mut input: &mut dyn Read,
    output: &mut dyn Write,
) -> Result<()> {
    frame::greet(output)?;
    match frame::greeting(&mut input) {
        Ok(frame::VERSION) => {}
        Ok(_) => return Ok(()),
        Err(bytes) if bytes.is_empty() => return Ok(()),
        Err(_) => {
            return Err(Error::Protocol(
                "`backstory store push` and `pull` run this command; it has no use for people"
                    .to_owned(),
            ));
        }
    }
    while let Some((kind, payload)) = frame::read(&mut input)? {
        let request = match kind {
            Kind::Message => serde_json::from_slice::<Request>(&payload),
            _ => return Err(Error::Protocol("an archive came without a request".into())),
        };
        let request = request
            .map_err(|error| Error::Protocol(format!("a request cannot be read: {error}")))?;
        match reply(peer, program, request, &mut input, output) {
            Ok(()) => {}
            Err(error) if error.concerns_one_run() => {
                let message = error_chain(&error);
                send(output, &Reply::Failed { message })?;
            }
            Err(error) => return Err(error),
        }
        frame::flush(output)?;
    }
    Ok(())
}

fn reply(
    peer: &mut dyn Peer,
    program: &str,
    request: Request,
    input: &mut dyn Read,
    output: &mut dyn Write,
) -> Result<()> {
    let reply = match request {
        Request::Hello { select, .. } => {
            peer.select(&select)?;
            Reply::Hello {
                program: program.to_owned(),
            }
        }
        Request::Runs { after } => Reply::Runs {
            runs: peer.runs(after.as_deref())?,
        },
        Request::ContentsOf { run, after } => {
            message::check_run(&run)?;
            let after = after.as_deref().map(message::digest).transpose()?;
            let contents = peer.contents_of(&run, after.as_ref())?;
            let texts = contents.into_iter();
            Reply::Contents {
                contents: texts
                    .map(|(digest, size)| (digest.to_string(), size))
                    .collect(),
            }
        }
        Request::Lacking { digests } => Reply::Lacking {
            digests: message::texts(&peer.lacking(&message::digests(&digests)?)?),
        },
        Request::ReadRun { run } => {
            message::check_run(&run)?;
            return archive(output, |out| peer.write_run(&run, out));
        }
        Request::ReadContents { digests } => {
            let digests = message::digests(&digests)?;
            return archive(output, |out| peer.write_contents(&digests, out));
        }
        Request::ReadAnnotations { runs } => {
            if runs.len() > PAGE {
                return Err(Error::Protocol(format!(
                    "more than {PAGE} runs in a request"
                )));
            }
            runs.iter().try_for_each(|run| message::check_run(run))?;
            return archive(output, |out| peer.write_annotations(&runs, out));
        }
        Request::Accept => {
            let mut archive = ArchiveReader::new(input);
            let accepted = peer.accept(&mut archive, Expected::Anything);
            let mut accepted = archive.end(accepted)?;
            accepted.lacking.truncate(PAGE);
            Reply::Accepted {
                added: accepted.added,
                known: accepted.known,
                lacking: message::texts(&accepted.lacking),
                annotations: accepted.annotations,
            }
        }
        Request::Finish => Reply::Finished {
            problems: peer.finish()?,
        },
    };
    send(output, &reply)
}

/// Replies with an archive. The reason of a failure is within the archive's frames.
fn archive(output: &mut dyn Write, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    send(output, &Reply::Archive)?;
    match ArchiveWriter::new(output).send(write) {
        Err(error) if error.concerns_one_run() => Ok(()),
        sent => sent,
    }
}

fn send(output: &mut dyn Write, reply: &Reply) -> Result<()> {
    let text = serde_json::to_vec(reply)
        .map_err(|error| Error::Protocol(format!("a reply has no form in JSON: {error}")))?;
    frame::write(output, Kind::Message, &text)
}
