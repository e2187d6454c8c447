//! The password of a connection, from where libpq looks for it.
//!
//! In order: the connection itself, `PGPASSWORD`, and the file `PGPASSFILE` or `~/.pgpass`.

use std::path::PathBuf;

use backstory_files::regular;
use postgres::Config;
use postgres::config::Host;

/// Adds user and password where the connection has none.
pub fn complete(config: &mut Config) {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    if config.get_user().is_none()
        && let Some(user) = variable("PGUSER").or_else(|| variable("USER"))
    {
        config.user(&user);
    }
    if config.get_password().is_some() {
        return;
    }
    if let Some(password) = variable("PGPASSWORD") {
        config.password(password);
        return;
    }
    let own = || variable("HOME").map(|home| PathBuf::from(home).join(".pgpass"));
    let file = variable("PGPASSFILE").map(PathBuf::from).or_else(own);
    let text = file
        .and_then(|file| regular::read(&file).ok())
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let (host, user) = (
        host(config),
        config.get_user().unwrap_or_default().to_owned(),
    );
    let port = config
        .get_ports()
        .first()
        .copied()
        .unwrap_or(5432)
        .to_string();
    let database = config.get_dbname().unwrap_or(&user).to_owned();
    if let Some(password) = find(&text, [&host, &port, &database, &user]) {
        config.password(password);
    }
}

/// The host as the file of passwords names it.
fn host(config: &Config) -> String {
    match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(_)) | None => "localhost".to_owned(),
    }
}

/// The password in the first line for host, port, database and user. `*` matches all.
fn find(text: &str, wanted: [&str; 4]) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| {
        let [known @ .., password] = <[String; 5]>::try_from(fields).ok()?;
        let mut pairs = known.iter().zip(wanted);
        pairs
            .all(|(known, wanted)| known == "*" || known == wanted)
            .then_some(password)
    })
}

/// The fields of a line. A backslash makes the next character part of a field.
fn fields(line: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut characters = line.chars();
    while let Some(one) = characters.next() {
        match (one, found.last_mut()) {
            (':', _) => found.push(String::new()),
            ('\\', Some(last)) => last.extend(characters.next()),
            (other, Some(last)) => last.push(other),
            (_, None) => (),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_matches_has_the_password() {
        let text = "# h:1:d:u:comment\nother:1:d:u:no\nh:*:d:u:a\\:b\\\\c\n*:*:*:*:late\n";
        assert_eq!(find(text, ["h", "1", "d", "u"]).unwrap(), "a:b\\c");
        assert_eq!(find(text, ["x", "1", "d", "u"]).unwrap(), "late");
        assert_eq!(find("h:1:d:u", ["h", "1", "d", "u"]), None);
    }
}
