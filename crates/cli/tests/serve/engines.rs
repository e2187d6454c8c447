//! A store of another engine than SQLite, and one that gets another engine while it is served.

use super::server::ServedPlace;

/// The engines of this build beside SQLite.
const ENGINES: &[&str] = &[
    #[cfg(feature = "lsm")]
    "lsm",
    #[cfg(feature = "redb")]
    "redb",
];

#[test]
fn a_server_answers_while_other_commands_use_the_store_of_any_engine() {
    let place = ServedPlace::new();
    place.write("a", "text\n");
    place.record(&["cp", "a", "b0"]);
    let server = place.serve(&[]);
    assert_eq!(server.get("/runs")["total"], 1);
    let run = |args: &[&str]| {
        let ran = place.backstory(args).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {ran:?}");
    };
    for (number, engine) in (1..).zip(ENGINES) {
        run(&["store", "migrate", "--to", engine]);
        assert_eq!(server.get("/runs")["total"], number, "{engine}");
        place.record(&["cp", "a", &format!("b{number}")]);
        run(&["index", "--wait"]);
        assert_eq!(server.get("/runs")["total"], number + 1, "{engine}");
        let version = server.version(&place.path(format!("b{number}")));
        let lineage = server.get(&format!("/lineage?version={version}"));
        assert!(
            lineage["nodes"]
                .as_array()
                .is_some_and(|nodes| nodes.len() > 1)
        );
        run(&["log"]);
    }
    run(&["store", "migrate", "--to", "sqlite"]);
    assert_eq!(server.get("/runs")["total"], ENGINES.len() + 1);
}
