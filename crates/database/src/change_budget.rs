//! The row changes of one transaction that are kept.
//!
//! In: the changes of a transaction, in their order. Out: whether more of them are kept. A caller
//! counts the others, and keeps one change of each table, so that the tables are known.

use crate::row_change::{ColumnValue, RowChange};

/// Most row changes of a transaction that are kept.
pub(crate) const MOST_ROWS: usize = 100_000;
/// Most bytes of these changes. A server may send them compressed.
pub(crate) const MOST_BYTES: usize = 256 << 20;

/// The number and the memory of the changes that are kept of the open transaction.
#[derive(Debug)]
pub struct ChangeBudget {
    most_bytes: usize,
    rows: usize,
    bytes: usize,
}

impl Default for ChangeBudget {
    fn default() -> ChangeBudget {
        ChangeBudget::of_bytes(MOST_BYTES)
    }
}

impl ChangeBudget {
    /// A budget of so many bytes for each transaction.
    pub fn of_bytes(most_bytes: usize) -> ChangeBudget {
        ChangeBudget {
            most_bytes,
            rows: 0,
            bytes: 0,
        }
    }

    /// Begins the next transaction.
    pub fn begin(&mut self) {
        self.rows = 0;
        self.bytes = 0;
    }

    /// True if the changes that are kept take the whole budget.
    pub fn is_spent(&self) -> bool {
        self.rows >= MOST_ROWS || self.bytes >= self.most_bytes
    }

    /// Counts a change that is kept.
    pub fn spend(&mut self, change: &RowChange) {
        let images = [&change.before, &change.after];
        self.rows += 1;
        let bytes = images.into_iter().flatten().map(|row| memory(row));
        self.bytes += bytes.sum::<usize>();
    }
}

/// The memory that the values of a row take, about.
fn memory(row: &[(String, ColumnValue)]) -> usize {
    let of = |(name, value): &(String, ColumnValue)| {
        let text = match value {
            ColumnValue::Text(text) => text.len(),
            _ => 0,
        };
        size_of::<(String, ColumnValue)>() + name.len() + text
    };
    row.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_change::{RowImage, RowOperation};

    fn insertion(after: RowImage) -> RowChange {
        RowChange {
            table: 1,
            operation: RowOperation::Insert,
            before: None,
            whole_before: true,
            after: Some(after),
            statement: None,
        }
    }

    #[test]
    fn a_budget_is_spent_by_bytes_until_the_next_transaction_begins() {
        let mut budget = ChangeBudget::of_bytes(2000);
        let row = insertion(vec![("a".to_owned(), ColumnValue::Text("x".repeat(1000)))]);
        budget.spend(&row);
        assert!(!budget.is_spent());
        budget.spend(&row);
        assert!(budget.is_spent());
        budget.begin();
        assert!(!budget.is_spent());
    }

    #[test]
    fn a_budget_is_spent_by_rows_without_values() {
        let mut budget = ChangeBudget::default();
        let row = insertion(RowImage::new());
        for _ in 1..MOST_ROWS {
            budget.spend(&row);
        }
        assert!(!budget.is_spent());
        budget.spend(&row);
        assert!(budget.is_spent());
    }
}
