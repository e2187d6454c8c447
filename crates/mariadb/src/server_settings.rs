//! The server's settings are checked before anything is made.

use std::path::PathBuf;
use std::sync::Arc;

use backstory_database::built_in_functions::BuiltInFunctions;
use backstory_database::sql_dialect::SqlDialect;
use backstory_vocabulary::RowsMode;

use crate::connection::Connection;
use backstory_database::error::Error;

/// The facts about a server that recording uses.
#[derive(Debug, Clone)]
pub(crate) struct ServerSettings {
    /// The log of statements.
    pub(crate) audit_log: PathBuf,
    /// Events of the binlog have checksums.
    pub(crate) checksums: bool,
    pub(crate) dialect: SqlDialect,
    /// The path of the server's socket.
    pub(crate) socket: String,
    /// The server's process.
    pub(crate) server_pid: Option<u32>,
    /// When the server began, in s since 1970.
    pub(crate) started: i64,
    /// Connections begin with this value.
    pub(crate) autocommit: bool,
    /// The functions of the server itself.
    pub(crate) built_in: Arc<BuiltInFunctions>,
}

impl ServerSettings {
    /// Reads and checks the settings that a watch needs, with or without rows.
    pub(crate) fn read(
        connection: &mut Connection,
        rows: RowsMode,
    ) -> Result<ServerSettings, Error> {
        let variables = connection.query("SHOW GLOBAL VARIABLES")?;
        let variable = |wanted: &str| -> String {
            let found = variables
                .iter()
                .find(|row| row[0].as_deref() == Some(wanted));
            let value = found.and_then(|row| row.get(1)?.clone());
            value.unwrap_or_default()
        };
        check(&variable, rows)?;
        let data = PathBuf::from(variable("datadir"));
        let pid_file = data.join(variable("pid_file"));
        let pid = std::fs::read_to_string(pid_file).ok();
        let uptime = "SELECT unix_timestamp() - VARIABLE_VALUE FROM \
            information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME'";
        let started = connection.value(uptime)?;
        let listed = connection.query("SELECT FUNCTION FROM information_schema.SQL_FUNCTIONS")?;
        let names = listed
            .into_iter()
            .filter_map(|row| row.into_iter().next().flatten());
        Ok(ServerSettings {
            audit_log: data.join(variable("server_audit_file_path")),
            checksums: variable("binlog_checksum") != "NONE",
            dialect: SqlDialect::MariaDb {
                lower_case: variable("lower_case_table_names") != "0",
            },
            socket: variable("socket"),
            server_pid: pid.and_then(|pid| pid.trim().parse().ok()),
            started: started.parse::<f64>().map_or(0, |seconds| seconds as i64),
            autocommit: variable("autocommit") != "OFF",
            built_in: Arc::new(BuiltInFunctions::new(names)),
        })
    }

    /// Offset of the log's local times in seconds east of UTC, at this moment.
    pub(crate) fn zone_offset(connection: &mut Connection) -> Result<i64, Error> {
        let statement = "SELECT timestampdiff(SECOND, utc_timestamp(), \
            convert_tz(utc_timestamp(), '+00:00', 'SYSTEM'))";
        Ok(connection.value(statement)?.parse().unwrap_or(0))
    }
}

/// Refuses a server whose settings leave out a part of the record.
fn check(variable: &dyn Fn(&str) -> String, rows: RowsMode) -> Result<(), Error> {
    const RESTART: &str = "set it in the server's configuration, and restart the server; or record \
        statements alone, with --rows off";
    const GLOBAL: &str = "change it with SET GLOBAL; connections that are open keep the old value";
    const SET: &str = "change it with SET GLOBAL";
    const INSTALL: &str = "execute INSTALL SONAME 'server_audit'";
    let wants = |setting: &'static str, holds: bool, wanted, remedy| match holds {
        true => Ok(()),
        false => Err(Error::setting(setting, &variable(setting), wanted, remedy)),
    };
    let version = variable("version");
    let mut numbers = version
        .split(['.', '-'])
        .map(|part| part.parse::<u32>().ok());
    let number = (numbers.next().flatten(), numbers.next().flatten());
    let is_maria = version.contains("MariaDB") && number >= (Some(10), Some(11));
    wants(
        "version",
        is_maria,
        "MariaDB 10.11 or later",
        "upgrade the server",
    )?;
    let is = |name: &str, wanted: &str| variable(name).eq_ignore_ascii_case(wanted);
    if rows == RowsMode::On {
        wants("log_bin", is("log_bin", "ON"), "ON", RESTART)?;
        wants("binlog_format", is("binlog_format", "ROW"), "ROW", GLOBAL)?;
    }
    let logging = variable("server_audit_logging");
    wants(
        "server_audit_logging",
        !logging.is_empty(),
        "the plug-in server_audit",
        INSTALL,
    )?;
    wants(
        "server_audit_logging",
        is("server_audit_logging", "ON"),
        "ON",
        SET,
    )?;
    let kind = is("server_audit_output_type", "file");
    wants("server_audit_output_type", kind, "file", SET)?;
    let events = variable("server_audit_events").to_ascii_uppercase();
    let events: Vec<&str> = events.split(',').map(str::trim).collect();
    let all = ["CONNECT", "QUERY", "TABLE"]
        .iter()
        .all(|one| events.contains(one));
    let wanted = "nothing, or CONNECT,QUERY,TABLE";
    wants("server_audit_events", all || events == [""], wanted, SET)?;
    let users = variable("server_audit_incl_users");
    wants("server_audit_incl_users", users.is_empty(), "nothing", SET)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [(&str, &str); 7] = [
        ("version", "10.11.19-MariaDB-0+deb12u1-log"),
        ("log_bin", "ON"),
        ("binlog_format", "ROW"),
        ("server_audit_logging", "ON"),
        ("server_audit_output_type", "file"),
        ("server_audit_events", "CONNECT,QUERY,TABLE"),
        ("server_audit_incl_users", ""),
    ];

    /// The error about a server of which one setting is another one.
    fn error_with(changed: (&'static str, &'static str), rows: RowsMode) -> Option<String> {
        let variable = move |name: &str| {
            let value = GOOD.iter().find(|one| one.0 == name);
            match name == changed.0 {
                true => changed.1.to_owned(),
                false => value.map_or(String::new(), |one| one.1.to_owned()),
            }
        };
        check(&variable, rows).err().map(|error| error.to_string())
    }

    #[test]
    fn each_setting_that_is_wrong_is_named_with_its_remedy() {
        assert_eq!(error_with(("other", "x"), RowsMode::On), None);
        assert_eq!(error_with(("server_audit_events", ""), RowsMode::On), None);
        let wrong = [
            (("version", "8.0.36"), "upgrade"),
            (("version", "10.6.1-MariaDB"), "10.11 or later"),
            (("log_bin", "OFF"), "restart the server"),
            (("log_bin", "OFF"), "--rows off"),
            (("binlog_format", "MIXED"), "SET GLOBAL"),
            (("server_audit_logging", ""), "INSTALL SONAME"),
            (("server_audit_logging", "OFF"), "SET GLOBAL"),
            (("server_audit_output_type", "syslog"), "file"),
            (("server_audit_events", "QUERY"), "CONNECT,QUERY,TABLE"),
            (("server_audit_incl_users", "ann"), "nothing"),
        ];
        for (setting, words) in wrong {
            let error = error_with(setting, RowsMode::On).unwrap();
            assert!(
                error.starts_with(setting.0) && error.contains(words),
                "{error}"
            );
        }
    }

    #[test]
    fn a_server_of_a_newer_version_is_accepted_with_the_same_settings() {
        for version in ["11.8.3-MariaDB-log", "12.0.2-MariaDB", "100.1.0-MariaDB"] {
            assert_eq!(error_with(("version", version), RowsMode::On), None);
        }
    }

    #[test]
    fn a_watch_without_rows_needs_no_binlog_but_the_log_of_statements() {
        for setting in [("log_bin", "OFF"), ("binlog_format", "STATEMENT")] {
            assert_eq!(error_with(setting, RowsMode::Off), None);
        }
        let silent = error_with(("server_audit_logging", "OFF"), RowsMode::Off);
        assert!(silent.unwrap().contains("SET GLOBAL"));
    }
}
