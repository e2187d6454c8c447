//! Rollback journals of SQLite: the pages of a database before an unfinished transaction.
//!
//! ```text
//! journal := (head, padding to a sector, record*)*
//! head    := magic (8 bytes), records, nonce, pages of the database before, sector, page size
//! record  := page, the page's content before, sum
//! ```
//!
//! A journal whose head has no magic number is of a finished transaction. A head that counts no
//! record is of an unfinished one: the database gets its former number of pages.
//!
//! Source: <https://www.sqlite.org/fileformat2.html>, section 3.

use crate::{Read, UnreadableContent};

const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
const HEAD: usize = 28;

/// The number of records says nothing: they fill the file.
const UNCOUNTED: u32 = u32::MAX;

fn number(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..).and_then(<[u8]>::first_chunk);
    four.copied().map_or(0, u32::from_be_bytes)
}

/// The database as it was before the unfinished transaction that a journal is of. `None` if no
/// transaction is unfinished.
pub fn rolled_back(database: &[u8], journal: &[u8]) -> Read<Option<Vec<u8>>> {
    if !journal.starts_with(&MAGIC) {
        return Ok(None);
    }
    let refused = |why: &str| Err(UnreadableContent(format!("its rollback journal {why}")));
    if journal.ends_with(&MAGIC) {
        return refused(
            "is of a transaction over several databases, and does not tell if that was finished",
        );
    }
    let (sector, size) = (number(journal, 20) as usize, number(journal, 24) as usize);
    let is_possible = |size: usize| size.is_power_of_two() && (512..=65536).contains(&size);
    if !is_possible(size) || !(32..=65536).contains(&sector) || !sector.is_power_of_two() {
        return refused("has a page size that is not possible");
    }
    let before = (number(journal, 16) as usize).saturating_mul(size);
    if before > database.len().saturating_add(journal.len()) {
        return refused("is of a larger database");
    }
    let mut pages = database.to_vec();
    pages.resize(before, 0);
    let mut is_known = vec![false; before / size];
    let mut at = 0;
    while number(journal, at + 8) > 0 && journal[at..].starts_with(&MAGIC) {
        let (records, nonce) = (number(journal, at + 8), number(journal, at + 12));
        at += sector.max(HEAD);
        let most = match records {
            UNCOUNTED => usize::MAX,
            counted => counted as usize,
        };
        let all = journal.get(at..).unwrap_or_default();
        for record in all.chunks_exact(size + 8).take(most) {
            let content = &record[4..size + 4];
            if sum(content, nonce) != number(record, size + 4) {
                // The transaction had not begun to change the database after this record.
                return Ok(Some(pages));
            }
            at += record.len();
            let page = (number(record, 0) as usize).wrapping_sub(1);
            // The first record of a page has its content before the transaction.
            if let Some(known) = is_known.get_mut(page).filter(|known| !**known) {
                *known = true;
                pages[page * size..][..size].copy_from_slice(content);
            }
        }
        at = at.next_multiple_of(sector);
        if at >= journal.len() {
            break;
        }
    }
    Ok(Some(pages))
}

/// The sum of a record: the nonce, and each 200th byte from the end.
fn sum(content: &[u8], nonce: u32) -> u32 {
    let mut at = content.len().saturating_sub(200);
    let mut sum = nonce;
    while at > 0 {
        sum = sum.wrapping_add(u32::from(content[at]));
        at = at.saturating_sub(200);
    }
    sum
}
