//! The text that names a connection to PostgreSQL.

use backstory_database::connection_target::ConnectionTarget;
use backstory_database::connection_uri::{ConnectionParts, without_password};
use backstory_database::error::Error;

const FORMS: &str = "postgres://USER@HOST:PORT/DATABASE, or host=... port=... dbname=... user=...";

/// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE` or `host=… port=… user=… dbname=…`. The
/// other parts come from `environment` (`PGHOST`, `PGPORT`, `PGUSER`, `PGDATABASE`, `PGPASSWORD`),
/// and then from libpq's defaults.
///
/// # Errors
///
/// The text is neither.
pub fn connection_target(
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<ConnectionTarget, Error> {
    let wrong = || Error::Target {
        text: without_password(text),
        forms: FORMS,
    };
    let given = match text.split_once("://") {
        Some(("postgres" | "postgresql", rest)) => {
            let mut given = ConnectionParts::of_uri(rest).ok_or_else(wrong)?;
            for (name, value) in std::mem::take(&mut given.parameters) {
                set(&mut given, &name, value);
            }
            given
        }
        Some(_) => return Err(wrong()),
        None => of_words(text).ok_or_else(wrong)?,
    };
    let or = |value: Option<String>, name: &str| value.or_else(|| environment(name));
    let user = or(given.user, "PGUSER").or_else(|| environment("USER"));
    let user = user.unwrap_or_else(|| "postgres".to_owned());
    let port = or(given.port, "PGPORT").unwrap_or_else(|| "5432".to_owned());
    Ok(ConnectionTarget {
        scheme: "postgres",
        host: or(given.host, "PGHOST").unwrap_or_else(|| "/var/run/postgresql".to_owned()),
        port: port.parse().map_err(|_| wrong())?,
        database: or(given.database, "PGDATABASE").unwrap_or_else(|| user.clone()),
        password: or(given.password, "PGPASSWORD"),
        user,
    })
}

fn of_words(text: &str) -> Option<ConnectionParts> {
    let mut given = ConnectionParts::default();
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=')?;
        set(&mut given, name, value.trim_matches('\'').to_owned());
    }
    Some(given)
}

/// Sets a part by libpq's name for it. Other parameters change nothing here.
fn set(given: &mut ConnectionParts, name: &str, value: String) {
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
        let environment = |name: &str| (name == "PGPORT").then(|| "7".to_owned());
        connection_target(text, &environment).unwrap()
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
            let error = connection_target(text, &|_| None).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
