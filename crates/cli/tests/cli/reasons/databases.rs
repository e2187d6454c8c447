//! A watched database.

use super::Place;
use backstory_testkit::database_server::DatabaseServer;
use backstory_testkit::mariadb::MariadbServer;
use backstory_testkit::postgres::PostgresServer;

/// A server that stops while it is watched.
fn stopped<S: DatabaseServer>(what: &str, stop: fn(&mut S, &Place)) {
    let place = Place::new();
    let server = S::begin(what, &place.stage, &[]).unwrap();
    let Some(mut server) = server else { return };
    let mut watch = server.watched(&place.stage, &[]).unwrap();
    stop(&mut server, &place);
    watch.ended().unwrap();
    let show = place.json(&["show", "--json"]);
    let because = show["incomplete_because"].to_string();
    assert!(
        because.contains("the record of the database has a gap: row changes"),
        "{show}"
    );
}

#[test]
pub(super) fn a_gap_of_a_watched_database_is_reported() {
    stopped::<PostgresServer>("a gap of a database", |server, place| {
        let stop = ["-m", "fast", "-w", "stop"];
        server.control(&place.stage, &stop).unwrap();
    });
}

#[test]
fn a_gap_of_a_watched_mariadb_database_is_reported() {
    stopped::<MariadbServer>("a gap of MariaDB", |server, _| server.stop().unwrap());
}
