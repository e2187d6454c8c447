//! Records of comma-separated values, as the server writes them in its log.
//!
//! In: whole lines. Out: records, and the fields of one. A quoted field may have several lines, and
//! two quotes in it stand for one.
//!
//! A server that is killed, or whose disk is full, leaves a record without its end. The quotes of
//! all later records then seem to be turned around. A quote at a place where no record has one
//! shows that. A text within quotes cannot: its own quotes are doubled.

/// Longest record that is put together: a statement of PostgreSQL has at most a gibibyte.
const LONGEST: usize = if cfg!(test) { 1 << 12 } else { 1 << 31 };

/// Puts lines together to records.
#[derive(Debug, Default)]
pub(crate) struct CsvRecords {
    /// The lines of a record that goes on.
    unfinished: Vec<u8>,
    /// They end inside quotes.
    is_quoted: bool,
    /// The beginning of this record is unknown.
    is_cut: bool,
    /// A quote of this record is at a wrong place.
    is_broken: bool,
}

impl CsvRecords {
    /// Records behind a text that is not read. `quotes`: the number of quotes in that text.
    pub(crate) fn behind(quotes: u64) -> CsvRecords {
        let is_quoted = quotes % 2 == 1;
        CsvRecords {
            unfinished: Vec::new(),
            is_quoted,
            is_cut: is_quoted,
            is_broken: false,
        }
    }

    /// The records that these lines end. One behind a record without its end may begin with that
    /// record: [`fields`] refuses it.
    pub(crate) fn take(&mut self, text: &[u8]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            self.unfinished.extend_from_slice(line);
            self.follow_quotes(line);
            if self.is_quoted && self.unfinished.len() <= LONGEST {
                continue;
            }
            // Of a record that is too long, the first part is refused, and the others are left out.
            let record = std::mem::take(&mut self.unfinished);
            let is_cut = std::mem::replace(&mut self.is_cut, self.is_quoted);
            if std::mem::take(&mut self.is_broken) || !is_cut {
                records.push(record);
            }
        }
        records
    }

    /// Finds out whether a line ends inside quotes. A line that begins outside of them begins a
    /// record.
    fn follow_quotes(&mut self, line: &[u8]) {
        let mut behind = 0;
        while let Some(at) = next_quote(line, behind) {
            let before = at.checked_sub(1).and_then(|at| line.get(at));
            let after = line.get(at + 1);
            behind = at + 1;
            if !self.is_quoted && matches!(before, None | Some(b',')) {
                self.is_quoted = true;
                continue;
            }
            // Outside of quotes, it is the end of a field whose beginning seemed to be an end.
            self.is_broken |= !self.is_quoted;
            match after {
                // Two quotes stand for one.
                Some(b'"') => {
                    self.is_quoted = true;
                    behind += 1;
                }
                None | Some(b',' | b'\n') => self.is_quoted = false,
                // It is the beginning of a field.
                Some(_) => (self.is_quoted, self.is_broken) = (true, true),
            }
        }
    }
}

/// The place of the first quote from a place on.
fn next_quote(line: &[u8], from: usize) -> Option<usize> {
    let rest = line.get(from..)?;
    Some(from + rest.iter().position(|byte| *byte == b'"')?)
}

/// The number of quotes in a text.
pub(crate) fn quotes(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'"').count() as u64
}

/// The fields of a record. `None` if a quoted field has no end, or another one has a quote.
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
                (!field.contains(&b'"')).then_some(())?;
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
        assert_eq!(fields(b"a\"b,2\n"), None);
    }

    /// A record whose text has several lines, and the same without its end.
    const WHOLE: &[u8] = b"1,\"ann\",\"a \"\"b\"\",\n\"\"c\",,2\n";
    const TORN: &[u8] = b"1,\"ann\",\"a \"\"b";

    #[test]
    fn a_record_without_its_end_hides_only_the_record_behind_it() {
        for end in 1..TORN.len() {
            // The server goes on in the same line, or in the next one.
            for between in [&b""[..], &b"\n"[..]] {
                let text = [&TORN[..end], between, WHOLE, WHOLE, WHOLE].concat();
                let found = CsvRecords::default().take(&text);
                let read = found.iter().filter(|record| *record == WHOLE).count();
                assert!(read >= 2, "{end}: {}", String::from_utf8_lossy(&text));
                let is_refused = |record: &&Vec<u8>| fields(record).is_none();
                let refused = found.iter().filter(is_refused).count();
                assert!(refused <= 1, "{end}: {}", String::from_utf8_lossy(&text));
            }
        }
    }

    #[test]
    fn a_log_that_had_a_record_without_its_end_is_read_from_its_end_on() {
        let mut records = CsvRecords::behind(quotes(TORN) + quotes(WHOLE));
        let found = records.take(&[WHOLE, WHOLE].concat());
        assert_eq!(found, [WHOLE.to_vec(), WHOLE.to_vec()]);
    }

    #[test]
    fn a_text_in_quotes_cannot_begin_a_record() {
        let forged = b"1,\"ann\",\"a\n2,\"\"bob\"\",\"\"x\"\"\n\",,2\n";
        let found = CsvRecords::default().take(&[&forged[..], WHOLE].concat());
        assert_eq!(found, [forged.to_vec(), WHOLE.to_vec()]);
    }

    #[test]
    fn a_record_that_does_not_end_takes_bounded_memory() {
        let mut records = CsvRecords::default();
        let mut found = records.take(b"1,\"begins\n");
        for _ in 0..LONGEST {
            found.extend(records.take(b"goes on\n"));
            assert!(records.unfinished.len() <= LONGEST);
        }
        assert!(found.iter().all(|record| fields(record).is_none()));
        assert!(!found.is_empty());
        assert_eq!(
            records.take(b"ends\"\n3,4\n").last(),
            Some(&b"3,4\n".to_vec())
        );
    }
}
