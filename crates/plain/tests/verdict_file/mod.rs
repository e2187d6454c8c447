//! A file of verdicts, as tests read and forge it.
//!
//! `crates/plain/src/known_file.rs` draws the layout. The tests have it once more, so that they
//! share nothing with the writer.

use backstory_abi::{VERDICT_NOT, VERDICT_PROGRAM};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

/// Bytes before the first entry.
pub const HEAD: usize = 20;
/// Where the checksum of the entries is.
const CHECKSUM: Range<usize> = 16..20;
/// Where the verdict of an entry is.
const VERDICT: Range<usize> = 40..48;
/// Where the names of an entry begin, behind their length.
const NAMES: usize = 52;

/// True where a later run can believe what an earlier one found out about this program. In a
/// namespace of users it may belong to another user than root. A process of any user decides about
/// files of FUSE.
pub fn lasts(program: &str) -> bool {
    const FUSE: u64 = 0x6573_5546;
    let found = fs::metadata(program).unwrap();
    let of = rustix::fs::statfs(program).unwrap();
    found.uid() == 0 && found.mode() & 0o022 == 0 && of.f_type as u64 & 0xffff_ffff != FUSE
}

/// A file of verdicts as a program of its user can write it. Each program counts as plain. One that
/// was not plain needs the libraries with these names.
pub fn forged(file: &[u8], names: &[u8]) -> Vec<u8> {
    let (mut made, mut rest) = (file[..HEAD].to_vec(), &file[HEAD..]);
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[VERDICT.end..NAMES].try_into().unwrap());
        let (entry, after) = rest.split_at(NAMES + length as usize);
        let verdict = u64::from_le_bytes(entry[VERDICT].try_into().unwrap());
        if verdict == VERDICT_PROGRAM | VERDICT_NOT {
            made.extend(&entry[..VERDICT.start]);
            made.extend(VERDICT_PROGRAM.to_le_bytes());
            made.extend((names.len() as u32).to_le_bytes());
            made.extend(names);
        } else {
            made.extend(entry);
        }
        rest = after;
    }
    seal(&mut made);
    made
}

/// Gives a file of verdicts the checksum of its entries.
pub fn seal(file: &mut [u8]) {
    let checksum = crc32fast::hash(&file[HEAD..]);
    file[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
}
