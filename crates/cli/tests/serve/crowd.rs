//! Many clients while the store is written.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::server::ServedPlace;

#[test]
fn a_hundred_clients_read_while_runs_are_appended() {
    const RUNS: usize = 4;
    let place = ServedPlace::new();
    place.write("a", "text\n");
    place.record(&["cp", "a", "b0"]);
    let server = place.serve(&[]);
    let version = server.version(&place.path("b0"));
    let routes = [
        "/runs".to_owned(),
        "/store".to_owned(),
        "/runs/latest".to_owned(),
        "/runs/latest/processes".to_owned(),
        format!("/lineage?version={version}"),
        format!("/versions/{version}/content"),
        "/live".to_owned(),
    ];
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=RUNS {
                place.record(&["cp", "a", &format!("b{number}")]);
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
        for client in 0..100 {
            let (routes, server, done) = (&routes, &server, &done);
            scope.spawn(move || {
                for turn in 0.. {
                    let route = &routes[(client + turn) % routes.len()];
                    let answer = server.ask("GET", route, &[]);
                    assert_eq!(answer.status, 200, "{route}: {}", answer.text());
                    if turn >= 4 && done.load(Ordering::Relaxed) == RUNS {
                        return;
                    }
                }
            });
        }
    });
    let until = Instant::now() + Duration::from_secs(120);
    while server.get("/runs")["total"] != RUNS + 1 {
        assert!(Instant::now() < until, "{}", server.get("/runs")["total"]);
        std::thread::sleep(Duration::from_millis(50));
    }
    // No question left a lock behind: the database can be written, and made anew.
    let newest = server.get("/runs?limit=1")["runs"][0]["run"].clone();
    let newest = newest.as_str().unwrap();
    for args in [&["note", newest, "seen"][..], &["store", "rebuild"]] {
        let changed = place.backstory(args).output().unwrap();
        assert!(changed.status.success(), "{args:?}: {changed:?}");
    }
    assert_eq!(server.get("/runs")["total"], RUNS + 1);
}
