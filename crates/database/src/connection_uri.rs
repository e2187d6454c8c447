//! The text that names a connection to a server.

use crate::percent::decoded;

/// The parts of a connection that a text gives.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ConnectionParts {
    /// A host name or address, or a path.
    pub host: Option<String>,
    /// The TCP port.
    pub port: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// The database.
    pub database: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The other parameters, behind `?`.
    pub parameters: Vec<(String, String)>,
}

impl ConnectionParts {
    /// Reads `USER:PASSWORD@HOST:PORT/DATABASE?NAME=VALUE&...`, what stands behind `SCHEME://`.
    /// `None` if a parameter has no value or an address does not end.
    pub fn of_uri(rest: &str) -> Option<ConnectionParts> {
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
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), decoded(value)))
        });
        Some(ConnectionParts {
            host: some(host),
            port: some(port),
            user: some(user),
            database: some(database),
            password: some(password),
            parameters: pairs.collect::<Option<_>>()?,
        })
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
