//! A watched database.

use super::Place;
use backstory_eventlog::Reason;
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

#[test]
pub(super) fn a_statement_that_cannot_be_parsed_is_reported() {
    let place = Place::new();
    let server = PostgresServer::begin("a statement without a parser", &place.stage, &[]);
    let Some(server) = server.unwrap() else {
        return;
    };
    let watch = server.watched(&place.stage, &[]).unwrap();
    // PL/pgSQL in a DO block is a language of its own.
    let statement = "DO LANGUAGE plpgsql $$ BEGIN PERFORM 1; END $$";
    server.execute(&place.stage, statement).unwrap();
    watch.end().unwrap();
    let show = place.json(&["show", "--json"]);
    let because = show["incomplete_because"].to_string();
    let sentence = Reason::unparsed(1).to_string();
    assert!(because.contains(&sentence), "{show}");
}
