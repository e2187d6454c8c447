//! An archive of PROBE that is cut, or changed at a byte, is imported or refused. The program never
//! panics.

// A test stops at a failed expectation. The lint exempts only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

use backstory_import::{Error, ImportedRun};
use flate2::Compression;
use std::io::{Read, Write};
use std::path::Path;

use crate::importing;

const LOG: &[u8] = include_bytes!("../../cli/tests/import/documents/probe/names.log");

fn imported(dir: &Path, bytes: &[u8]) -> Result<ImportedRun, Error> {
    let (run, log) = importing::imported(dir, "probe", "probe_log", bytes)?;
    std::fs::remove_file(&log).unwrap();
    Ok(run)
}

fn archive() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut source = flate2::read::MultiGzDecoder::new(LOG);
    source.read_to_end(&mut bytes).unwrap();
    bytes
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), Compression::none());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn an_archive_cut_at_any_byte_is_imported_with_a_reason_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let whole = imported(dir.path(), LOG).unwrap().incomplete_because;
    assert!(!whole.join(" ").contains("ends early"), "{whole:?}");
    let mut cut = 0;
    // The last 8 bytes are a checksum, which nothing needs to read behind the end of the archive.
    for end in (0..LOG.len() - 64).step_by(29) {
        match imported(dir.path(), &LOG[..end]) {
            Ok(run) => {
                let reasons = run.incomplete_because.join(" ");
                assert!(
                    reasons.contains("the archive ends early"),
                    "{end}: {reasons}"
                );
                cut += 1;
            }
            Err(Error::Malformed { .. }) => {}
            Err(error) => panic!("{end}: {error}"),
        }
    }
    assert!(cut > 10, "{cut}");
}

#[test]
fn an_archive_with_any_byte_changed_is_imported_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive();
    for at in (0..archive.len()).step_by(307) {
        let mut bytes = archive.clone();
        bytes[at] = [0xdd, 0xc6, 0, 0xff, b'9', 0xdf][at % 6];
        match imported(dir.path(), &compressed(&bytes)) {
            Ok(_) | Err(Error::Malformed { .. }) => {}
            Err(error) => panic!("{at}: {error}"),
        }
    }
}

#[test]
fn a_log_of_a_thread_that_cannot_be_decoded_is_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut archive = archive();
    // The kind of the last operation of a log.
    let at = memchr::memmem::rfind(&archive, b"Unlink").unwrap();
    archive[at - 6] = 0xc1;
    let run = imported(dir.path(), &compressed(&archive)).unwrap();
    let reasons = run.incomplete_because.join(" ");
    assert!(reasons.contains("the logs of 1 thread cannot"), "{reasons}");
}

#[test]
fn a_file_that_is_no_log_of_probe_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut empty = [0; 1536];
    empty[..9].copy_from_slice(b"pids/1/0/");
    empty[257..262].copy_from_slice(b"ustar");
    let other = "no tar archive that gzip compressed";
    for (bytes, wanted) in [
        (Vec::new(), other),
        (b"text".to_vec(), other),
        (compressed(b"text"), other),
        (compressed(&empty), "no process of it has begun"),
    ] {
        let error = imported(dir.path(), &bytes).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}
