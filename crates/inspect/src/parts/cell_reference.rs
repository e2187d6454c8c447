//! The names that spreadsheets give to cells: `B3`, `Sheet2!B3`, `'My sheet'!B3`.

use backstory_inspection::file_parts::NoPart;

/// A cell by its name. Column and row count from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellReference {
    /// The sheet, if the name has one.
    pub sheet: Option<String>,
    /// The column.
    pub column: usize,
    /// The row.
    pub row: usize,
}

impl CellReference {
    /// Reads a name. An apostrophe in a quoted sheet is doubled.
    ///
    /// # Errors
    /// The name has another form.
    pub fn read(text: &str) -> Result<CellReference, NoPart> {
        let (sheet, cell) = match text.rsplit_once('!') {
            Some((sheet, cell)) => (Some(unquoted(sheet)), cell),
            None => (None, text),
        };
        let (column, row) = column_and_row(cell).ok_or_else(|| {
            NoPart::Misnamed("give a column and a row, as in B3 or Sheet2!B3".to_owned())
        })?;
        Ok(CellReference { sheet, column, row })
    }

    /// The same for a format that has no sheets.
    ///
    /// # Errors
    /// The name has another form, or a sheet.
    pub fn without_sheet(text: &str) -> Result<CellReference, NoPart> {
        let cell = CellReference::read(text)?;
        match cell.sheet {
            None => Ok(cell),
            Some(_) => Err(NoPart::Misnamed(
                "the file has one table and no sheets: give a column and a row, as in B3"
                    .to_owned(),
            )),
        }
    }
}

fn unquoted(sheet: &str) -> String {
    let inner = sheet
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    inner.map_or_else(|| sheet.to_owned(), |inner| inner.replace("''", "'"))
}

/// Reads `B3`. Column and row count from 0.
pub fn column_and_row(cell: &str) -> Option<(usize, usize)> {
    /// More letters than any program has columns.
    const LETTERS: usize = 4;
    let letters = cell.bytes().take_while(u8::is_ascii_alphabetic).count();
    if letters == 0 || letters > LETTERS {
        return None;
    }
    let (letters, digits) = cell.split_at(letters);
    let column = letters.bytes().fold(0, |column, letter| {
        column * 26 + usize::from(letter.to_ascii_uppercase() - b'A' + 1)
    });
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    let row: usize = digits.parse().ok().filter(|_| is_number)?;
    Some((column - 1, row.checked_sub(1)?))
}

/// The name of a cell: `B3`. Row and column count from 0.
pub fn name(row: usize, column: usize) -> String {
    let mut letters = Vec::new();
    let mut left = column + 1;
    while left > 0 {
        letters.push(b'A' + ((left - 1) % 26) as u8);
        left = (left - 1) / 26;
    }
    letters.reverse();
    format!("{}{}", String::from_utf8_lossy(&letters), row + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_the_name_that_spreadsheets_give_it() {
        for (row, column, cell) in [
            (0, 0, "A1"),
            (2, 25, "Z3"),
            (0, 26, "AA1"),
            (9, 701, "ZZ10"),
            (0, 702, "AAA1"),
        ] {
            assert_eq!(name(row, column), cell);
            assert_eq!(column_and_row(cell), Some((column, row)));
        }
        assert_eq!(column_and_row("b3"), Some((1, 2)));
        for bad in ["", "A", "3", "A0", "A-1", "A+1", "ABCDE1", "Ä1", "A1 "] {
            assert_eq!(column_and_row(bad), None, "{bad:?}");
        }
        assert_eq!(column_and_row("A99999999999999999999999"), None);
    }

    #[test]
    fn a_sheet_stands_before_the_cell_and_may_be_quoted() {
        for (text, sheet) in [
            ("B3", None),
            ("Doses!B3", Some("Doses")),
            ("My sheet!B3", Some("My sheet")),
            ("'My sheet'!B3", Some("My sheet")),
            ("'It''s'!B3", Some("It's")),
            ("a!b!B3", Some("a!b")),
        ] {
            let cell = CellReference::read(text).unwrap();
            assert_eq!(cell.sheet.as_deref(), sheet, "{text}");
            assert_eq!((cell.column, cell.row), (1, 2), "{text}");
            assert_eq!(CellReference::without_sheet(text).is_ok(), sheet.is_none());
        }
    }
}
