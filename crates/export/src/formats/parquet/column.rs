//! Columns of a table.

use backstory_eventlog::event::Time;

/// A column: for each row a value or nothing.
pub enum Column {
    Text(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Number(Vec<Option<i64>>),
    Moment(Vec<Option<Time>>),
    Truth(Vec<Option<bool>>),
}

/// The columns of a table, by name.
pub type Columns = Vec<(&'static str, Column)>;

impl Column {
    /// A column of texts.
    pub fn of_text<T: ToString>(values: impl Iterator<Item = Option<T>>) -> Column {
        Column::Text(
            values
                .map(|value| value.map(|value| value.to_string()))
                .collect(),
        )
    }

    /// A column of numbers.
    pub fn of_numbers<T: Into<i64>>(values: impl Iterator<Item = Option<T>>) -> Column {
        Column::Number(values.map(|value| value.map(Into::into)).collect())
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Column::Text(values) => values.len(),
            Column::Bytes(values) => values.len(),
            Column::Number(values) => values.len(),
            Column::Moment(values) => values.len(),
            Column::Truth(values) => values.len(),
        }
    }
}
