//! Records of comma-separated values, as the server writes them in its log.
//!
//! In: whole lines. Out: records, and the fields of one. A quoted field may have several lines, and
//! two quotes in it stand for one.

/// Puts lines together to records.
#[derive(Debug, Default)]
pub(crate) struct CsvRecords {
    /// The lines of a record that goes on.
    unfinished: Vec<u8>,
    /// They end inside quotes.
    is_quoted: bool,
    /// The beginning of this record is unknown.
    is_cut: bool,
}

impl CsvRecords {
    /// Records behind a text that is not read. `quotes`: the number of quotes in that text.
    pub(crate) fn behind(quotes: u64) -> CsvRecords {
        let is_quoted = quotes % 2 == 1;
        CsvRecords {
            unfinished: Vec::new(),
            is_quoted,
            is_cut: is_quoted,
        }
    }

    /// The records that these lines end.
    pub(crate) fn take(&mut self, text: &[u8]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            self.unfinished.extend_from_slice(line);
            self.is_quoted ^= quotes(line) % 2 == 1;
            if self.is_quoted {
                continue;
            }
            let record = std::mem::take(&mut self.unfinished);
            if !std::mem::take(&mut self.is_cut) {
                records.push(record);
            }
        }
        records
    }
}

/// The number of quotes in a text.
pub(crate) fn quotes(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'"').count() as u64
}

/// The fields of a record. `None` if a quoted field has no end.
pub(crate) fn fields(record: &[u8]) -> Option<Vec<String>> {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    let mut fields = Vec::new();
    let mut rest = record;
    loop {
        let (field, after) = match rest.strip_prefix(b"\"") {
            Some(quoted) => quoted_field(quoted)?,
            None => {
                let end = rest.iter().position(|byte| *byte == b',');
                let (field, after) = rest.split_at(end.unwrap_or(rest.len()));
                (field.to_vec(), after)
            }
        };
        fields.push(String::from_utf8_lossy(&field).into_owned());
        match after.split_first() {
            Some((b',', next)) => rest = next,
            Some(_) => return None,
            None => return Some(fields),
        }
    }
}

/// The fields of a record as they are written, with their quotes. Nothing is copied.
pub(crate) fn written_fields(record: &[u8]) -> impl Iterator<Item = &[u8]> {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    let mut is_quoted = false;
    record.split(move |byte| {
        is_quoted ^= *byte == b'"';
        *byte == b',' && !is_quoted
    })
}

/// A field behind its first quote, and what follows its last one.
fn quoted_field(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut field = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == b'"')?;
        field.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(b"\"") {
            Some(after) => {
                field.push(b'"');
                rest = after;
            }
            None => return Some((field, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_field_may_have_several_lines_and_commas() {
        let mut records = CsvRecords::default();
        assert!(records.take(b"1,\"a, \"\"b\n\n").is_empty());
        let found = records.take(b"forged,line\n\",,2\n3,4\n");
        assert_eq!(found.len(), 2);
        let wanted = ["1", "a, \"b\n\nforged,line\n", "", "2"];
        assert_eq!(fields(&found[0]).unwrap(), wanted);
        assert_eq!(fields(&found[1]).unwrap(), ["3", "4"]);
    }

    #[test]
    fn fields_as_they_are_written_end_where_the_others_do() {
        let record = b"1,\"a, \"\"b\n\",,2,\"\"\n";
        let written: Vec<&[u8]> = written_fields(record).collect();
        let wanted: [&[u8]; 5] = [b"1", b"\"a, \"\"b\n\"", b"", b"2", b"\"\""];
        assert_eq!(written, wanted);
        assert_eq!(written.len(), fields(record).unwrap().len());
    }

    #[test]
    fn a_record_whose_beginning_is_unknown_is_left_out() {
        let mut records = CsvRecords::behind(quotes(b"1,\"begins"));
        assert_eq!(records.take(b"ends\",2\n3,4\n"), [b"3,4\n".to_vec()]);
    }

    #[test]
    fn a_record_of_another_form_is_refused() {
        assert_eq!(fields(b"1,\"open"), None);
        assert_eq!(fields(b"\"a\"b,2\n"), None);
    }
}
