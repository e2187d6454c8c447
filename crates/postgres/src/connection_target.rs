//! The server, database and user that a connection is for.

use crate::Error;
use crate::percent::decoded;

/// The server, database and user that a connection is for.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionTarget {
    /// A host name or address, or the directory of the server's socket.
    pub host: String,
    /// TCP port, or the number in the name of the socket.
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
    /// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE` or `host=… port=… user=… dbname=…`. The
    /// other parts come from `environment` (`PGHOST`, `PGPORT`, `PGUSER`, `PGDATABASE`,
    /// `PGPASSWORD`), and then from libpq's defaults.
    ///
    /// # Errors
    ///
    /// The text is neither.
    pub fn parse(
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<ConnectionTarget, Error> {
        let wrong = || Error::Target(without_password(text));
        let given = match text.split_once("://") {
            Some(("postgres" | "postgresql", rest)) => of_uri(rest).ok_or_else(wrong)?,
            Some(_) => return Err(wrong()),
            None => of_words(text).ok_or_else(wrong)?,
        };
        let or = |value: Option<String>, name: &str| value.or_else(|| environment(name));
        let user = or(given.user, "PGUSER").or_else(|| environment("USER"));
        let user = user.unwrap_or_else(|| "postgres".to_owned());
        let port = or(given.port, "PGPORT").unwrap_or_else(|| "5432".to_owned());
        Ok(ConnectionTarget {
            host: or(given.host, "PGHOST").unwrap_or_else(|| "/var/run/postgresql".to_owned()),
            port: port.parse().map_err(|_| wrong())?,
            database: or(given.database, "PGDATABASE").unwrap_or_else(|| user.clone()),
            password: or(given.password, "PGPASSWORD"),
            user,
        })
    }

    /// The server in the names of entities. All names of this machine are `localhost`.
    pub fn name(&self) -> String {
        let local = self.host.starts_with('/') || ["127.0.0.1", "::1"].contains(&&*self.host);
        let host = if local { "localhost" } else { &self.host };
        format!("postgres://{host}:{}/{}", self.port, self.database)
    }
}

/// A connection's text without its password, for messages and logs.
pub fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        let words = text.split_whitespace();
        let kept = words.filter(|word| !word.starts_with("password="));
        return kept.collect::<Vec<_>>().join(" ");
    };
    match rest.rsplit_once('@') {
        Some((who, at)) => {
            let user = who.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{at}")
        }
        None => text.to_owned(),
    }
}

#[derive(Default)]
struct GivenParts {
    host: Option<String>,
    port: Option<String>,
    user: Option<String>,
    database: Option<String>,
    password: Option<String>,
}

fn of_uri(rest: &str) -> Option<GivenParts> {
    let some = |text: &str| (!text.is_empty()).then(|| decoded(text));
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = place.split_once('/').unwrap_or((place, ""));
    let (who, at) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    let (host, port) = match at.strip_prefix('[') {
        Some(six) => {
            let (host, port) = six.split_once(']')?;
            (host, port.strip_prefix(':').unwrap_or(port))
        }
        None => at.split_once(':').unwrap_or((at, "")),
    };
    let mut given = GivenParts {
        host: some(host),
        port: some(port),
        user: some(user),
        database: some(database),
        password: some(password),
    };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        set(&mut given, name, decoded(value));
    }
    Some(given)
}

fn of_words(text: &str) -> Option<GivenParts> {
    let mut given = GivenParts::default();
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=')?;
        set(&mut given, name, value.trim_matches('\'').to_owned());
    }
    Some(given)
}

/// Sets a part by libpq's name for it. Other parameters change nothing here.
fn set(given: &mut GivenParts, name: &str, value: String) {
    match name {
        "host" | "hostaddr" => given.host = Some(value),
        "port" => given.port = Some(value),
        "user" => given.user = Some(value),
        "dbname" => given.database = Some(value),
        "password" => given.password = Some(value),
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> ConnectionTarget {
        ConnectionTarget::parse(text, |name| (name == "PGPORT").then(|| "7".to_owned())).unwrap()
    }

    #[test]
    fn a_uri_and_words_name_the_same_server() {
        let uri = target("postgres://ann:s%40c@127.0.0.1:5433/bank");
        let words = target("host=127.0.0.1 port=5433 user=ann password=s@c dbname=bank");
        assert!(uri == words);
        assert_eq!(uri.name(), "postgres://localhost:5433/bank");
        let six = target("postgresql://ann@[::1]/x");
        assert_eq!((&*six.host, six.port, &*six.database), ("::1", 7, "x"));
        assert_eq!(target("postgres:///x?host=/run/pg").host, "/run/pg");
    }

    #[test]
    fn a_password_is_in_no_message() {
        for text in ["mysql://ann:secret@h/x", "host password=secret"] {
            let error = ConnectionTarget::parse(text, |_| None).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
