//! The graph as tables in Parquet: `runs`, `activities`, `entities` and `edges`, joined by their
//! ids.
//!
//! Times are in UTC, to the microsecond. A name that is not UTF-8 stands unchanged in a column of
//! bytes, beside its readable form.

mod column;
mod file;
mod tables;
mod thrift;

use crate::family::Family;
use crate::format::{Format, Shape, Target};
use crate::{Error, Result, View};
use file::write;
use tables::{activities, edges, entities, runs};

/// `parquet`
pub struct Parquet;

impl Format for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }
    fn about(&self) -> &'static str {
        "the graph as tables for DuckDB, pandas, Spark"
    }
    fn family(&self) -> Family {
        Family::Data
    }
    fn proven_by(&self) -> &'static str {
        "DuckDB"
    }
    fn shape(&self) -> Shape {
        Shape::Directory
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let directory = target.directory();
        for (table, columns) in [
            ("runs", runs(view)),
            ("activities", activities(view)),
            ("entities", entities(view)),
            ("edges", edges(view)),
        ] {
            write(&directory.join(format!("{table}.parquet")), &columns)
                .map_err(|source| Error::Table { table, source })?;
        }
        Ok(())
    }
}
