//! The text that names a connection to MariaDB.

use backstory_database::connection_target::ConnectionTarget;
use backstory_database::connection_uri::{ConnectionParts, without_password};
use backstory_database::error::Error;

const FORMS: &str = "mysql://USER@HOST:PORT/DATABASE, or mysql://USER@/DATABASE?socket=PATH";
/// Where Debian's server has its socket.
const SOCKET: &str = "/run/mysqld/mysqld.sock";
/// The port of a server.
const PORT: u16 = 3306;

/// Reads `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, or `mariadb://`. `?socket=PATH` names the
/// server's socket. So does a host with slashes. As for the server's own clients, no host, and
/// `localhost` without a port, mean the socket. A password comes from `MYSQL_PWD`, too, and a
/// socket and port from `MYSQL_UNIX_PORT` and `MYSQL_TCP_PORT`.
///
/// # Errors
///
/// The text is no such connection.
pub fn connection_target(
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<ConnectionTarget, Error> {
    let wrong = || Error::Target {
        text: without_password(text),
        forms: FORMS,
    };
    let rest = match text.split_once("://") {
        Some(("mysql" | "mariadb", rest)) => rest,
        _ => return Err(wrong()),
    };
    let given = ConnectionParts::of_uri(rest).ok_or_else(wrong)?;
    let parameter = |wanted: &str| {
        let found = given.parameters.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone())
    };
    let has_port = given.port.is_some();
    let port = given.port.clone().or_else(|| environment("MYSQL_TCP_PORT"));
    let port = port.map_or(Ok(PORT), |port| port.parse().map_err(|_| wrong()));
    let local = |host: &String| host != "localhost" || has_port;
    let host = parameter("socket").or_else(|| given.host.clone().filter(local));
    let host = host.or_else(|| environment("MYSQL_UNIX_PORT"));
    let user = given.user.clone().or_else(|| environment("USER"));
    Ok(ConnectionTarget {
        scheme: "mariadb",
        host: host.unwrap_or_else(|| SOCKET.to_owned()),
        port: port?,
        user: user.unwrap_or_else(|| "root".to_owned()),
        database: given.database.clone().ok_or_else(wrong)?,
        password: given.password.clone().or_else(|| environment("MYSQL_PWD")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> ConnectionTarget {
        let socket = |name: &str| (name == "MYSQL_PWD").then(|| "p".to_owned());
        connection_target(text, &socket).unwrap()
    }

    #[test]
    fn localhost_means_the_socket_unless_a_port_is_given() {
        let tcp = target("mysql://ann:s%40c@localhost:3307/bank");
        assert_eq!(
            (&*tcp.host, tcp.port, &*tcp.user),
            ("localhost", 3307, "ann")
        );
        assert_eq!(tcp.password.as_deref(), Some("s@c"));
        assert_eq!(target("mariadb://ann@localhost/bank").host, SOCKET);
        assert_eq!(target("mysql:///bank?socket=/tmp/s").host, "/tmp/s");
        assert_eq!(target("mysql://a@%2Ftmp%2Fs/bank").host, "/tmp/s");
        let name = target("mysql://a@127.0.0.1/bank").name();
        assert_eq!(name, "mariadb://localhost:3306/bank");
    }

    #[test]
    fn a_password_is_in_no_message() {
        for text in ["postgres://ann:secret@h/x", "mysql://ann:secret@h"] {
            let error = connection_target(text, &|_| None).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
