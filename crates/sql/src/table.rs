//! A view as a virtual table of SQLite (<https://sqlite.org/vtab.html>).
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ffi::c_int;
use std::rc::Rc;

use rusqlite::types::ValueRef;
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, VTab, VTabConnection, VTabCursor, sqlite3_vtab,
    sqlite3_vtab_cursor,
};

use crate::error::Error;
use crate::rows::{Row, Rows, Selection, Source};
use crate::schema::{Key, View};

/// Rows of a view of which nothing is known, in round numbers.
const ALL_ROWS: i64 = 10_000_000;

/// The data of a table's module.
#[derive(Clone)]
pub(crate) struct ViewSource {
    pub(crate) source: Rc<Source>,
    pub(crate) view: &'static View,
}

/// A view in a connection.
#[repr(C)]
pub(crate) struct ViewTable {
    /// SQLite's part, which must be first.
    base: sqlite3_vtab,
    of: ViewSource,
}

// SAFETY: the first field is `sqlite3_vtab`, and the layout is C's, as the trait demands.
unsafe impl VTab<'_> for ViewTable {
    type Aux = ViewSource;
    type Cursor = ViewCursor;

    fn connect(
        _: &mut VTabConnection,
        aux: Option<&ViewSource>,
        _: &[&[u8]],
    ) -> rusqlite::Result<(String, ViewTable)> {
        let of = aux.cloned().ok_or(rusqlite::Error::InvalidQuery)?;
        let table = ViewTable {
            base: sqlite3_vtab::default(),
            of,
        };
        Ok((table.of.view.declaration(), table))
    }

    /// Takes the key that leaves the fewest rows. SQLite tests the condition again.
    fn best_index(&self, info: &mut IndexInfo) -> rusqlite::Result<()> {
        let mut best: Option<(Key, usize, c_int)> = None;
        for (at, constraint) in info.constraints().enumerate() {
            let column = usize::try_from(constraint.column()).ok();
            let column = column.and_then(|column| self.of.view.columns.get(column));
            let is_equal = constraint.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ;
            if let Some(key) = column.and_then(|column| column.key)
                && is_equal
                && constraint.is_usable()
                && best.is_none_or(|(known, ..)| key < known)
            {
                best = Some((key, at, constraint.column()));
            }
        }
        let rows = match best {
            Some((key, at, column)) => {
                info.constraint_usage(at).set_argv_index(1);
                info.set_idx_num(column + 1);
                key.rows()
            }
            None => {
                info.set_idx_num(0);
                ALL_ROWS
            }
        };
        info.set_estimated_rows(rows);
        info.set_estimated_cost(rows as f64);
        Ok(())
    }

    fn open(&mut self) -> rusqlite::Result<ViewCursor> {
        Ok(ViewCursor {
            base: sqlite3_vtab_cursor::default(),
            of: self.of.clone(),
            rows: None,
            part: VecDeque::new(),
            number: 0,
        })
    }
}

/// A position in the rows of a view.
#[repr(C)]
pub(crate) struct ViewCursor {
    /// SQLite's part, which must be first.
    base: sqlite3_vtab_cursor,
    of: ViewSource,
    rows: Option<Rows>,
    /// The row at the cursor, and those behind it that are read.
    part: VecDeque<Row>,
    number: i64,
}

impl ViewCursor {
    /// Reads on if no row is left that was read.
    fn fill(&mut self) -> Result<(), Error> {
        if let Some(rows) = &mut self.rows
            && self.part.is_empty()
        {
            self.part = rows.next_part()?;
        }
        Ok(())
    }

    fn selection(&self, number: c_int, value: ValueRef<'_>) -> Selection {
        let column = usize::try_from(number - 1).ok();
        let column = column.and_then(|column| self.of.view.columns.get(column));
        match (column.map(|column| column.name), value) {
            (None, _) => Selection::All,
            (Some("run"), ValueRef::Text(run)) => {
                Selection::Run(String::from_utf8_lossy(run).into_owned())
            }
            (Some("path"), ValueRef::Text(path) | ValueRef::Blob(path)) => {
                Selection::Path(path.to_vec())
            }
            (Some(name), ValueRef::Integer(key)) => Selection::Key(name, key),
            // No run, path or key equals a value of another type.
            (Some(_), _) => Selection::Path(Vec::new()),
        }
    }
}

// SAFETY: the first field is `sqlite3_vtab_cursor`, and the layout is C's, as the trait demands.
unsafe impl VTabCursor for ViewCursor {
    fn filter(
        &mut self,
        number: c_int,
        _: Option<&str>,
        args: &Filters<'_>,
    ) -> rusqlite::Result<()> {
        let value = args.iter().next().unwrap_or(ValueRef::Null);
        let wanted = self.selection(number, value);
        self.part.clear();
        self.number = 0;
        let rows = Rows::of(&self.of.source, self.of.view.name, wanted);
        self.rows = Some(rows.map_err(module_error)?);
        self.fill().map_err(module_error)
    }

    fn next(&mut self) -> rusqlite::Result<()> {
        self.part.pop_front();
        self.number += 1;
        self.fill().map_err(module_error)
    }

    fn eof(&self) -> bool {
        self.part.is_empty()
    }

    fn column(&self, context: &mut Context, column: c_int) -> rusqlite::Result<()> {
        let row = self.part.front();
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        let Some(cell) = row.and_then(|row| row.get(column)) else {
            return Err(rusqlite::Error::InvalidColumnIndex(column));
        };
        let value = cell.value(self.of.source.store);
        context.set_result(&value.map_err(module_error)?)
    }

    fn rowid(&self) -> rusqlite::Result<i64> {
        Ok(self.number)
    }
}

/// The error's text reaches the answer through SQLite.
fn module_error(error: Error) -> rusqlite::Error {
    rusqlite::Error::ModuleError(backstory_vocabulary::error_chain(&error))
}
