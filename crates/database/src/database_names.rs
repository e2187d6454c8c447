//! The names of a database's things in a run.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::catalog::TableName;
use crate::logged_transaction::ClientSession;
use crate::percent::encoded;
use crate::row_change::{ColumnValue, RowImage};

/// The name of this machine for its own clients. MariaDB has it for those through the socket file,
/// too.
const LOCALHOST: &str = "localhost";

/// The names of a session's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionNames {
    /// The names that the connection can have for its client.
    pub names: Vec<String>,
    /// The connection certainly has these names: all are names of one address.
    pub is_certain: bool,
}

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

    /// The names that a session's connection can have for its client. If the client was not found,
    /// the log alone tells of it. That of MariaDB may not tell TCP from the socket file.
    pub fn connection(&self, session: &ClientSession) -> ConnectionNames {
        let certain = |names| ConnectionNames {
            names,
            is_certain: true,
        };
        let client = &session.client;
        if !client.is_unknown() || !client.server.is_empty() {
            return certain(client.server.clone());
        }
        let tcp = |host: IpAddr| format!("tcp:{}", SocketAddr::new(host, self.port));
        let sockets: &[String] = match (session.host.parse::<IpAddr>(), session.port) {
            // A client on this machine has the server's address. One on another machine has not.
            (Ok(host), _) => {
                return ConnectionNames {
                    names: vec![tcp(host)],
                    is_certain: host.is_loopback(),
                };
            }
            (Err(_), Some(0)) => return certain(self.sockets.clone()),
            (Err(_), None) => &self.sockets[..],
            (Err(_), Some(_)) => &[],
        };
        // The address at which another machine reached the server is unknown.
        let names = match &*session.host {
            LOCALHOST => {
                let hosts: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                [sockets, &hosts.map(tcp)].concat()
            }
            _ => Vec::new(),
        };
        ConnectionNames {
            names,
            is_certain: false,
        }
    }

    /// The kind of the facts about a changed row.
    pub fn row_kind(&self) -> String {
        format!("{}.row", self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOCKET: &str = "unix:/run/s.sock";

    /// The names of the connection of a client that was not found.
    fn connection(host: &str, port: Option<u16>) -> (Vec<String>, bool) {
        let names = DatabaseNames {
            base: "mariadb://localhost:3306".to_owned(),
            separator: '/',
            kind: "mariadb",
            sockets: vec![SOCKET.to_owned()],
            port: 3306,
            rounding: 0,
        };
        let session = ClientSession {
            host: host.to_owned(),
            port,
            ..ClientSession::default()
        };
        let found = names.connection(&session);
        (found.names, found.is_certain)
    }

    #[test]
    fn a_local_client_that_was_not_found_is_possibly_one_of_tcp_and_certainly_none_of_the_socket() {
        let tcp = ["tcp:127.0.0.1:3306", "tcp:[::1]:3306"];
        let all = [&[SOCKET][..], &tcp].concat();
        let of =
            |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
        assert_eq!(connection("localhost", None), (of(&all), false));
        assert_eq!(connection("localhost", Some(40000)), (of(&tcp), false));
    }

    #[test]
    fn a_connection_that_the_server_tells_is_certain() {
        for (host, port, expected) in [
            ("localhost", Some(0), SOCKET),
            ("[local]", Some(0), SOCKET),
            ("127.0.0.1", None, "tcp:127.0.0.1:3306"),
            ("::1", Some(40000), "tcp:[::1]:3306"),
        ] {
            let expected = (vec![expected.to_owned()], true);
            assert_eq!(connection(host, port), expected, "{host} {port:?}");
        }
    }

    #[test]
    fn a_client_whose_address_may_be_that_of_another_machine_has_a_possible_connection() {
        for address in ["192.0.2.7", "2001:db8::7"] {
            let host: IpAddr = address.parse().unwrap();
            let name = format!("tcp:{}", SocketAddr::new(host, 3306));
            assert_eq!(connection(address, Some(40000)), (vec![name], false));
        }
    }

    #[test]
    fn a_client_of_another_machine_that_was_not_found_has_no_connection_through_the_socket() {
        for port in [None, Some(40000)] {
            assert_eq!(connection("client.lab", port), (Vec::new(), false));
        }
    }
}
