//! The watches of databases that are still being recorded, as far as a lineage lacks them.
//!
//! In: a lineage, and the header of a watch. Out: whether a process of the lineage had a connection
//! to the watched server meanwhile. Its transactions are known when the watch has ended.
//!
//! Absent: connections to MariaDB through its socket file, of which a header has no name.

use backstory_eventlog::run::RunHeader;
use backstory_graph::model::EntityKind;
use backstory_query as query;
use backstory_query::answer::{Lineage, Node};

/// True if a lineage has a connection to the server of a watch since the watch began.
pub fn is_missed(lineage: &Lineage, watch: &RunHeader) -> bool {
    let Some(port) = watch.database.as_deref().and_then(port) else {
        return false;
    };
    // PostgreSQL has the port in the name of its socket file.
    let ends = [format!(":{port}"), format!("/.s.PGSQL.{port}")];
    let is_server = |node: usize| match &lineage.nodes[node] {
        Node::Entity {
            kind: EntityKind::Socket,
            path,
            ..
        } => {
            let name = query::address_of(path).unwrap_or_default();
            ends.iter().any(|end| name.ends_with(end.as_bytes()))
        }
        _ => false,
    };
    lineage.links.iter().any(|link| {
        link.interval.end >= watch.started && (is_server(link.from) || is_server(link.to))
    })
}

/// The port in `SCHEME://HOST:PORT/DATABASE`.
fn port(database: &str) -> Option<&str> {
    let (_, rest) = database.split_once("://")?;
    let (server, _) = rest.split_once('/')?;
    Some(server.rsplit_once(':')?.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tree::tests::{command, file, link};
    use backstory_graph::model::{Interval, Relation};
    use backstory_query::answer::Flow;

    /// Whether a watch of port 3306 since second 10 is missed.
    fn is_told(connection: &str, kind: EntityKind, last: i64) -> bool {
        let mut socket = file(connection, 0);
        if let Node::Entity { kind: own, .. } = &mut socket {
            *own = kind;
        }
        let mut received = link(1, 0, Flow::Used(Relation::Read));
        received.interval = Interval {
            start: 0,
            end: last,
        };
        let lineage = Lineage {
            nodes: vec![command("mariadb", 1), socket],
            roots: 1,
            links: vec![received],
            cut: false,
            reach: Vec::new(),
        };
        let watch = RunHeader {
            database: Some("mariadb://localhost:3306/bank".to_owned()),
            started: 10,
            ..RunHeader::default()
        };
        is_missed(&lineage, &watch)
    }

    #[test]
    fn a_watch_is_missed_by_a_lineage_with_a_later_connection_to_its_server() {
        use EntityKind::{File, Socket};
        for (connection, kind, last, expected) in [
            ("tcp:127.0.0.1:3306 (reply)", Socket, 10, true),
            ("tcp:[::1]:3306", Socket, 20, true),
            ("unix:/run/.s.PGSQL.3306", Socket, 20, true),
            ("tcp:127.0.0.1:3306", Socket, 9, false),
            ("tcp:127.0.0.1:13306", Socket, 20, false),
            ("tcp:127.0.0.1:3306", File, 20, false),
        ] {
            let told = is_told(connection, kind, last);
            assert_eq!(told, expected, "{connection} {last}");
        }
    }
}
