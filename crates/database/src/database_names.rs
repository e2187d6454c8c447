//! The names of a database's things in a run.

use std::net::IpAddr;

use crate::catalog::TableName;
use crate::logged_transaction::ClientSession;
use crate::percent::encoded;
use crate::row_change::{ColumnValue, RowImage};

/// How a database names its things in a run.
#[derive(Debug, Clone)]
pub struct DatabaseNames {
    /// The database, `SCHEME://HOST:PORT/DATABASE`. Where a schema is a database, the server alone.
    pub base: String,
    /// What stands between a schema and a table: `.`, or `/` where a schema is a database.
    pub separator: char,
    /// The kind of the facts about a transaction. Facts about rows have `.row` behind it.
    pub kind: &'static str,
    /// The names of connections through the server's socket file.
    pub sockets: Vec<String>,
    /// TCP port of the server.
    pub port: u16,
    /// Times of the log are rounded down: an event came up to so many ns later.
    pub rounding: i64,
}

impl DatabaseNames {
    /// The name of a table.
    pub fn table(&self, (schema, table): &TableName) -> String {
        format!(
            "{}/{}{}{}",
            self.base,
            encoded(schema, ""),
            self.separator,
            encoded(table, "")
        )
    }

    /// The name of a row. `None` if no key is known.
    pub fn row(&self, table: &TableName, key: &[String], image: &RowImage) -> Option<String> {
        let mut parts = Vec::new();
        for column in key {
            let value = image
                .iter()
                .find(|(name, _)| name == column)
                .map(|(_, value)| value);
            let Some(ColumnValue::Text(value)) = value else {
                return None;
            };
            parts.push(format!("{}={}", encoded(column, "."), encoded(value, ".")));
        }
        let name = || format!("{}?{}", self.table(table), parts.join("&"));
        (!parts.is_empty()).then(name)
    }

    /// The names that a session's connection can have for its client.
    pub fn connection(&self, session: &ClientSession) -> Vec<String> {
        match session.client.is_unknown() {
            false => session.client.server.clone(),
            true if session.host.parse::<IpAddr>().is_err() => self.sockets.clone(),
            true if !session.client.server.is_empty() => session.client.server.clone(),
            true if session.host.contains(':') => {
                vec![format!("tcp:[{}]:{}", session.host, self.port)]
            }
            true => vec![format!("tcp:{}:{}", session.host, self.port)],
        }
    }

    /// The kind of the facts about a changed row.
    pub fn row_kind(&self) -> String {
        format!("{}.row", self.kind)
    }
}
