//! Bad input: each gets a message that says what to do.

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;

use super::server::{ServedPlace, encoded};

#[test]
fn a_taken_port_is_reported_with_what_to_do() {
    let place = ServedPlace::new();
    place.write("a", "x");
    place.record(&["cp", "a", "b"]);
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut child = place
        .backstory(&["serve", "--port", &port])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = child.wait().unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!((status.code(), out.as_str()), (Some(1), ""));
    assert!(
        err.contains(&format!("port {port} is taken")) && err.contains("--port 0"),
        "{err}"
    );
}

#[test]
fn a_path_run_or_version_that_is_not_in_the_store_is_not_found() {
    let place = ServedPlace::new();
    place.write("a", "x");
    place.record(&["cp", "a", "b"]);
    let server = place.serve(&[]);
    for route in [
        "/file?path=/no/such/file",
        "/lineage?path=/no/such/file",
        "/runs/nosuchrun",
        "/runs/nosuchrun/processes",
        "/versions/v99999999999999",
        "/versions/v99999999999999/content",
        "/no/such/route",
    ] {
        let answer = server.ask("GET", route, &[]);
        assert_eq!(answer.status, 404, "{route}: {}", answer.text());
        assert_eq!(answer.json()["error"]["code"], "not_found", "{route}");
        assert!(
            !answer.json()["error"]["message"]
                .as_str()
                .unwrap()
                .is_empty()
        );
    }
    for route in [
        "/file?path=relative",
        "/file",
        "/runs?colour=red",
        "/runs?limit=many",
        "/runs?name=%5B",
        "/versions/12",
        "/runs?text=%zz",
        "/lineage",
    ] {
        let answer = server.ask("GET", route, &[]);
        assert_eq!(answer.status, 400, "{route}: {}", answer.text());
    }
}

#[test]
fn a_subject_that_is_neither_file_nor_run_is_refused_at_the_start() {
    let place = ServedPlace::new();
    place.write("a", "x");
    place.record(&["cp", "a", "b"]);
    let output = place
        .backstory(&["serve", "nothing-of-this-name"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("neither a recorded file nor a run"), "{err}");
    let server = place.serve(&["b"]);
    let path = encoded(place.path("b")).to_lowercase();
    assert!(
        !path.is_empty() && server.address.contains("/file?path="),
        "{}",
        server.address
    );
}

#[test]
fn a_store_that_is_damaged_meanwhile_is_reported_and_a_rebuilt_one_is_read() {
    let place = ServedPlace::new();
    place.write("a", "x");
    place.record(&["cp", "a", "b"]);
    let server = place.serve(&[]);
    assert_eq!(server.get("/runs")["total"], 1);
    let database = place.store().join("graph.db");
    std::fs::write(place.store().join("garbage"), vec![7; 100_000]).unwrap();
    std::fs::rename(place.store().join("garbage"), &database).unwrap();
    for ending in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(place.store().join(format!("graph.db{ending}")));
    }
    let answer = server.ask("GET", "/runs/latest", &[]);
    assert_eq!(answer.status, 500, "{}", answer.text());
    assert_eq!(answer.json()["error"]["code"], "damaged");
    assert!(answer.text().contains("graph.db"));
    std::fs::remove_file(&database).unwrap();
    let indexed = place.backstory(&["index"]).status().unwrap();
    assert!(indexed.success());
    assert_eq!(server.get("/runs")["total"], 1);
}
