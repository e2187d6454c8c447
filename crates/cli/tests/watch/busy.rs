//! A watch ends although the clients of its server go on.

use std::process::Stdio;

use backstory_testkit::database_server::DatabaseServer;
use backstory_testkit::mariadb::MariadbServer;
use backstory_testkit::postgres::PostgresServer;
use backstory_testkit::procs::eventually;

use crate::watch::place::DatabasePlace;

/// A client changes rows without a pause of 300 ms, and for longer than the test lasts.
fn ends<S: DatabaseServer>(what: &str, pause: &str) {
    let Some(place) = DatabasePlace::<S>::new(what, &[]) else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY)");
    let watch = place.watched();
    let script = place.work.join("busy.sql");
    let lines = (0..4000).map(|key| format!("INSERT INTO a VALUES ({key});\n{pause}\n"));
    std::fs::write(&script, lines.collect::<String>()).unwrap();
    let line = format!("exec {}", place.server.executes_file(&script));
    let mut command = place.stage.command("sh");
    let command = command.args(["-c", &line]).stdout(Stdio::null());
    let mut client = command.spawn().unwrap();
    let has_begun = || !place.query("SELECT id FROM a WHERE id = 20").is_empty();
    assert!(eventually(std::time::Duration::from_secs(120), has_begun));
    let said = watch.end().unwrap();
    let goes_on = client.try_wait().unwrap().is_none();
    client.kill().unwrap();
    client.wait().unwrap();
    assert!(goes_on, "{said}");
    place.row_has("a", "20", "VALUES (20)");
}

#[test]
#[ignore = "a server of its own"]
fn a_watch_of_a_busy_postgresql_server_ends() {
    ends::<PostgresServer>("a busy server", "\\! sleep 0.02");
}

#[test]
#[ignore = "a server of its own"]
fn a_watch_of_a_busy_mariadb_server_ends() {
    ends::<MariadbServer>("a busy server of MariaDB", "DO sleep(0.02);");
}
