//! Follows a binlog through its files, event by event.
//!
//! In: events, in the order of the stream, and the catalog. Out: committed groups, and the place
//! where another stream goes on.
//!
//! Invariant: the groups before the place have been returned, and those behind it have not. An
//! event that cannot be read does not move it.

use backstory_database::error::Error;

use crate::binlog_event::{BinlogEvent, decode, frame};
use crate::catalog_reader::ServerCatalog;
use crate::row_groups::{CommittedGroup, RowGroups};

/// A place in the binlog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BinlogPosition {
    pub(crate) file: String,
    pub(crate) offset: u64,
}

/// Reads events.
#[derive(Debug)]
pub(crate) struct EventReader {
    checksums: bool,
    file: String,
    groups: RowGroups,
    /// Everything before has been received.
    pub(crate) position: BinlogPosition,
    /// The server reported that changes are not in its binlog.
    pub(crate) incidents: u64,
}

impl EventReader {
    /// Begins at a position. `checksums`: each event ends with one.
    pub(crate) fn begin(position: BinlogPosition, checksums: bool) -> EventReader {
        EventReader {
            checksums,
            file: position.file.clone(),
            groups: RowGroups::default(),
            position,
            incidents: 0,
        }
    }

    /// Takes the next event. A commit completes a group. `look` reads the catalog again.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        catalog: &mut ServerCatalog,
        look: &mut dyn FnMut(&mut ServerCatalog),
    ) -> Result<Option<CommittedGroup>, Error> {
        let kind = bytes.get(4).copied().unwrap_or_default();
        let wrong = || Error::Protocol(format!("a damaged event of kind {kind}"));
        let frame = frame(bytes, self.checksums).ok_or_else(wrong)?;
        let event = decode(frame).ok_or_else(wrong)?;
        match &event {
            BinlogEvent::Rotate { file, position } => {
                self.file.clone_from(file);
                self.position = BinlogPosition {
                    file: file.clone(),
                    offset: *position,
                };
                return Ok(None);
            }
            BinlogEvent::Format { checksums } => {
                self.checksums = *checksums;
                return Ok(None);
            }
            BinlogEvent::Incident => self.incidents += 1,
            _ => (),
        }
        if self.groups.lacks(&event, catalog) {
            look(catalog);
            self.groups.is_outdated = false;
        }
        let place = format!("{}:{}", self.file, frame.next);
        let group = self.groups.take(event, &place, catalog).ok_or_else(wrong)?;
        if frame.next > 0 && !self.groups.is_in_transaction() {
            self.position = BinlogPosition {
                file: self.file.clone(),
                offset: frame.next,
            };
        }
        Ok(group)
    }

    /// Rows whose columns are not known by name.
    pub(crate) fn unnamed(&self) -> u64 {
        self.groups.unnamed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz_entry::{captured_catalog, captured_events};

    #[test]
    fn a_damaged_event_does_not_move_the_place_where_another_stream_goes_on() {
        let mut catalog = captured_catalog();
        let begin = BinlogPosition {
            file: "binlog.1".to_owned(),
            offset: 4,
        };
        let mut reader = EventReader::begin(begin, true);
        let mut take =
            |reader: &mut EventReader, bytes: &[u8]| reader.take(bytes, &mut catalog, &mut |_| ());
        let mut groups = 0;
        for bytes in captured_events() {
            let before = reader.position.clone();
            // The checksum of a file's first event may differ.
            if bytes[4] != 15 {
                let mut damaged = bytes.clone();
                damaged[20] ^= 4;
                assert!(take(&mut reader, &damaged).is_err());
                assert_eq!(reader.position, before);
            }
            groups += usize::from(take(&mut reader, &bytes).unwrap().is_some());
        }
        assert_eq!(groups, 5);
    }
}
