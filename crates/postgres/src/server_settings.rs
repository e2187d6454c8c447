//! The server's settings are checked before anything is made.

use std::path::PathBuf;

use backstory_database::error::Error;
use backstory_vocabulary::RowsMode;

use crate::connection::Connection;
use crate::log_line::LogFormat;

const RESTART: &str = "change it with ALTER SYSTEM, and restart the server";
const RELOAD: &str = "change it with ALTER SYSTEM, and call pg_reload_conf()";

/// The facts about a server that recording uses.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerSettings {
    /// The directory of the log's files.
    pub(crate) log_directory: PathBuf,
    /// The form of the log's lines.
    pub(crate) log_format: LogFormat,
    /// Time zone of the log's times.
    pub(crate) log_zone: String,
    /// The directory of the server's socket.
    pub(crate) socket_directory: String,
}

impl ServerSettings {
    /// Reads and checks the settings that a watch needs, with or without rows.
    pub(crate) fn read(
        connection: &mut Connection,
        rows: RowsMode,
    ) -> Result<ServerSettings, Error> {
        let mut show = |name: &str| setting(connection, name);
        let number: u32 = show("server_version_num")?.parse().unwrap_or(0);
        let version = show("server_version")?;
        wants(
            number >= 150_000,
            "the version of the server",
            &version,
            "15 or later",
            "upgrade the server",
        )?;
        let mut wrong = WrongSettings::default();
        let collector = show("logging_collector")?;
        wrong.unless(
            collector == "on",
            "logging_collector",
            &collector,
            "on",
            RESTART,
        );
        let kinds = show("log_destination")?;
        let has = |wanted: &str| kinds.split(',').any(|kind| kind.trim() == wanted);
        let (json, csv) = (has("jsonlog"), has("csvlog"));
        let wanted = "jsonlog or csvlog among others";
        wrong.unless(json || csv, "log_destination", &kinds, wanted, RELOAD);
        let statements = show("log_statement")?;
        wrong.unless(
            statements == "all",
            "log_statement",
            &statements,
            "all",
            RELOAD,
        );
        let language = show("lc_messages")?;
        let english = ["", "C", "POSIX"].contains(&&*language)
            || language.starts_with("C.")
            || language.starts_with("en");
        wrong.unless(english, "lc_messages", &language, "C or English", RELOAD);
        let data_directory = PathBuf::from(show("data_directory")?);
        let log_directory = data_directory.join(show("log_directory")?);
        let log_zone = show("log_timezone")?;
        let sockets = show("unix_socket_directories")?;
        if rows == RowsMode::On {
            check_stream(connection, &mut wrong)?;
        }
        wrong.into_result()?;
        Ok(ServerSettings {
            log_directory,
            log_format: if json {
                LogFormat::Json
            } else {
                LogFormat::Csv
            },
            log_zone,
            socket_directory: sockets
                .split(',')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
        })
    }

    /// Offset of the log's local times in seconds east of UTC, at this moment.
    pub(crate) fn zone_offset(&self, connection: &mut Connection) -> Result<i64, Error> {
        let zone = self.log_zone.replace('\'', "''");
        let statement = format!(
            "SELECT extract(epoch FROM (now() AT TIME ZONE '{zone}') - (now() AT TIME ZONE 'UTC'))"
        );
        let text = connection.value(&statement)?;
        Ok(text.parse::<f64>().map_or(0, |seconds| seconds as i64))
    }
}

fn setting(connection: &mut Connection, name: &str) -> Result<String, Error> {
    connection.value(&format!("SHOW {name}"))
}

fn wants(
    holds: bool,
    setting: &'static str,
    value: &str,
    wanted: &'static str,
    remedy: &'static str,
) -> Result<(), Error> {
    match holds {
        true => Ok(()),
        false => Err(Error::setting(setting, value, wanted, remedy)),
    }
}

/// The settings that recording needs otherwise. All are named at once, so that one restart of the
/// server is enough.
#[derive(Debug, Default)]
struct WrongSettings(Vec<Error>);

impl WrongSettings {
    fn unless(
        &mut self,
        holds: bool,
        setting: &'static str,
        value: &str,
        wanted: &'static str,
        remedy: &'static str,
    ) {
        self.0
            .extend(wants(holds, setting, value, wanted, remedy).err());
    }

    fn into_result(self) -> Result<(), Error> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Error::Settings(self.0)),
        }
    }
}

/// Finds out if a server cannot stream row changes, or keeps them without a limit.
fn check_stream(connection: &mut Connection, wrong: &mut WrongSettings) -> Result<(), Error> {
    let level = setting(connection, "wal_level")?;
    let remedy = "change it with ALTER SYSTEM, and restart the server; or record statements alone, \
        with --rows off";
    wrong.unless(level == "logical", "wal_level", &level, "logical", remedy);
    let size = setting(connection, "max_slot_wal_keep_size")?;
    let silence = setting(connection, "wal_sender_timeout")?;
    // The server keeps what a slot has not received. Either setting limits how much.
    wrong.unless(
        size != "-1" || silence != "0",
        "max_slot_wal_keep_size",
        "-1 while wal_sender_timeout is 0",
        "a limit of either",
        RELOAD,
    );
    Ok(())
}

/// The watch looks at the catalog each second, which would fill the log. Only a superuser may set
/// this; for others the lines are skipped.
pub(crate) fn keep_out_of_log(session: &mut Connection) {
    let quiet = "SET log_statement = 'none'; SET log_duration = off; \
        SET log_min_duration_statement = -1; SET auto_explain.log_min_duration = -1";
    let _ = session.query(quiet);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection_target;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&[tag][..], &length, body].concat()
    }

    /// A server that lets anyone in, and answers each statement with one value.
    fn serve(mut client: TcpStream, value: &str) -> std::io::Result<()> {
        let mut buffer = [0; 4096];
        let _ = client.read(&mut buffer)?;
        let ready = message(b'Z', b"I");
        client.write_all(&[message(b'R', &[0; 4]), ready.clone()].concat())?;
        while client.read(&mut buffer)? > 0 {
            let length = (value.len() as u32).to_be_bytes();
            let row = [&[0, 1][..], &length, value.as_bytes()].concat();
            client.write_all(&[message(b'D', &row), ready.clone()].concat())?;
        }
        Ok(())
    }

    /// Why a server is refused that has this value for each setting, its version among them.
    fn refusal(value: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (client, _) = listener.accept()?;
            serve(client, value)
        });
        let text = format!("postgres://ann@127.0.0.1:{port}/bank");
        let target = connection_target(&text, &|_| None).unwrap();
        let mut connection = Connection::open(&target, false).unwrap();
        let error = ServerSettings::read(&mut connection, RowsMode::On).unwrap_err();
        drop(connection);
        server.join().unwrap().unwrap();
        error.to_string()
    }

    #[test]
    fn a_server_of_another_version_is_refused_with_the_version_that_is_needed() {
        for (value, words) in [("140011", "is 140011"), ("unknown", "is unknown")] {
            let error = refusal(value);
            assert!(
                error.contains(words) && error.contains("15 or later"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_server_of_a_newer_version_is_refused_for_its_settings_alone() {
        let error = refusal("190001");
        assert!(error.starts_with("logging_collector is 190001"), "{error}");
        for setting in ["log_destination", "log_statement", "wal_level"] {
            let words = format!("; {setting} is 190001, but recording needs ");
            assert!(error.contains(&words), "{error}");
        }
    }
}
