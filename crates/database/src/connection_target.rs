//! The server, database and user that a connection is for.
//!
//! Absent: how the text of a connection is read, and its defaults, which differ from server to
//! server.

/// The server, database and user that a connection is for.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionTarget {
    /// The first word in the names of entities: `postgres`, `mariadb`.
    pub scheme: &'static str,
    /// A host name or address, or the path of the server's socket or of its directory.
    pub host: String,
    /// TCP port. PostgreSQL has it in the name of its socket, too.
    pub port: u16,
    /// The user.
    pub user: String,
    /// The database.
    pub database: String,
    /// The password, if one is given.
    pub password: Option<String>,
}

impl std::fmt::Debug for ConnectionTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name())
    }
}

impl ConnectionTarget {
    /// True if the connection is through a socket file.
    pub fn is_socket(&self) -> bool {
        self.host.starts_with('/')
    }

    /// Host and port, or the path of the socket or of its directory.
    pub fn address(&self) -> String {
        match self.is_socket() {
            true => self.host.clone(),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// The server in the names of entities. All names of this machine are `localhost`.
    pub fn server_name(&self) -> String {
        let local = self.is_socket() || ["127.0.0.1", "::1"].contains(&&*self.host);
        let host = if local { "localhost" } else { &self.host };
        format!("{}://{host}:{}", self.scheme, self.port)
    }

    /// The server and the database.
    pub fn name(&self) -> String {
        format!("{}/{}", self.server_name(), self.database)
    }
}
