//! The columns of tables as positions of buffers in a file.
//!
//! In: a table. Out: its buffers, and where they are.

use serde::{Deserialize, Serialize};

use crate::columns::{ArrayKind, Column, ColumnArray};

/// One column.
#[derive(Debug, Serialize, Deserialize)]
pub struct ColumnLayout {
    /// Its name.
    pub name: String,
    /// True if a row may have no value.
    pub nullable: bool,
    /// Its values.
    pub array: ArrayLayout,
}

/// An array: its type, its rows, and the positions and lengths of its buffers.
#[derive(Debug, Serialize, Deserialize)]
pub struct ArrayLayout {
    /// The type of a value.
    pub kind: ArrayKind,
    /// How many values there are.
    pub rows: usize,
    /// The bitmap of the rows that have a value.
    pub nulls: Option<Extent>,
    /// The buffers, in Arrow's order for the type.
    pub buffers: Vec<Extent>,
    /// The words behind labels, or the items of lists.
    pub children: Vec<ArrayLayout>,
}

/// A position, and the number of bytes from there.
pub type Extent = (usize, usize);

/// Buffers, and their positions. Each position is a multiple of 64.
#[derive(Default)]
pub struct LaidOut {
    /// In the order of their positions.
    pub buffers: Vec<(usize, Vec<u8>)>,
    end: usize,
}

impl LaidOut {
    /// Adds the buffers of a table.
    pub fn add(&mut self, columns: Vec<Column>) -> Vec<ColumnLayout> {
        let layouts = columns.into_iter().map(|column| ColumnLayout {
            name: column.name,
            nullable: column.nullable,
            array: self.array(column.array),
        });
        layouts.collect()
    }

    fn array(&mut self, array: ColumnArray) -> ArrayLayout {
        let children = array.children.into_iter();
        ArrayLayout {
            kind: array.kind,
            rows: array.rows,
            children: children.map(|child| self.array(child)).collect(),
            nulls: array.nulls.map(|nulls| self.buffer(nulls)),
            buffers: array
                .buffers
                .into_iter()
                .map(|one| self.buffer(one))
                .collect(),
        }
    }

    fn buffer(&mut self, buffer: Vec<u8>) -> Extent {
        let extent = (self.end, buffer.len());
        self.end = (self.end + buffer.len()).next_multiple_of(64);
        self.buffers.push((extent.0, buffer));
        extent
    }
}
