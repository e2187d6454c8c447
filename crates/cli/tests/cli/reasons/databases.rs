//! A watched database.

use super::Place;
use backstory_testkit::postgres::PostgresServer;

#[test]
pub(super) fn a_gap_of_a_watched_database_is_reported() {
    let place = Place::new();
    let server = PostgresServer::start("a gap of a database", &place.stage, "").unwrap();
    let Some(server) = server else { return };
    let mut watch = server.watched(&place.stage, &[]).unwrap();
    let stop = ["-m", "fast", "-w", "stop"];
    server.control(&place.stage, &stop).unwrap();
    watch.ended().unwrap();
    let show = place.json(&["show", "--json"]);
    let because = show["incomplete_because"].to_string();
    assert!(
        because.contains("the record of the database has a gap: row changes"),
        "{show}"
    );
}
