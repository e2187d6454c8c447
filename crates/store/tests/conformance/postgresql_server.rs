//! A PostgreSQL server for this suite. It lives as long as the process of the tests. Each store
//! gets a schema of its own.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstory_store::ConnectionFile;
use backstory_testkit::postgres::PostgresServer;
use backstory_testkit::stage::Stage;
use postgres::{Client, NoTls};

/// The port of the server. `None` where PostgreSQL is not installed.
pub fn port() -> Option<u16> {
    static PORT: OnceLock<Option<u16>> = OnceLock::new();
    *PORT.get_or_init(|| {
        let stage = Stage::new("/bin/true").unwrap();
        let settings = "max_connections = 120\nlog_statement = none\nlog_duration = off\n\
            logging_collector = off\nlog_destination = stderr";
        let server = PostgresServer::start("the engine postgresql", &stage, settings);
        Some(server.unwrap()?.until_exit(stage).unwrap())
    })
}

pub fn is_installed() -> bool {
    port().is_some()
}

/// A connection of the server's superuser.
pub fn superuser() -> Client {
    let url = format!("postgresql://ann@127.0.0.1:{}/bank", port().unwrap());
    Client::connect(&url, NoTls).unwrap()
}

/// A new schema, which any user may use.
pub fn new_schema() -> String {
    static SCHEMAS: AtomicUsize = AtomicUsize::new(0);
    let name = format!("store{}", SCHEMAS.fetch_add(1, Ordering::Relaxed));
    let make = format!("CREATE SCHEMA {name}; GRANT USAGE ON SCHEMA {name} TO public");
    superuser().batch_execute(&make).unwrap();
    name
}

/// The connection of a user to a schema, through a port.
pub fn connection(user: &str, port: u16, schema: &str) -> String {
    format!("postgresql://{user}@127.0.0.1:{port}/bank?options=-csearch_path%3D{schema}")
}

/// Writes the file that names the database of a store, unless it has one.
pub fn name_database(dir: &Path) {
    let path = dir.join("graph.postgresql");
    if path.exists() {
        return;
    }
    std::fs::create_dir_all(dir).unwrap();
    let connection = connection("ann", port().unwrap(), &new_schema());
    ConnectionFile::new(&connection)
        .unwrap()
        .write(&path)
        .unwrap();
}
