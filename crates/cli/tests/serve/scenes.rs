//! The page of a file's requests: what `scene` says, for the browser.

use std::process::{Command, Stdio};

use backstory_testkit::need::needs;

use super::server::{ServedPlace, encoded};

const PYTHON: &str = "/usr/bin/python3";
const SERVER: &str = include_str!("../../../../examples/incident/upload.py");
const CLIENT: &str = include_str!("../../../../examples/incident/client.py");

#[test]
fn the_requests_of_a_file_an_address_and_a_time_are_served_with_the_command_that_runs_them_again() {
    if !needs("a server with a mistake", &[PYTHON]) {
        return;
    }
    let place = ServedPlace::new();
    place.write("upload.py", SERVER);
    place.write("client.py", CLIENT);
    let mut client = Command::new(PYTHON)
        .arg("client.py")
        .current_dir(place.path(""))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let words = ["record", "--wait", "--deep", "--", PYTHON, "upload.py", "3"];
    let recorded = place.backstory(&words).output().unwrap();
    if !recorded.status.success() {
        // It would wait for the port without an end.
        client.kill().unwrap();
    }
    let answered = client.wait().unwrap();
    assert!(recorded.status.success(), "{recorded:?}");
    assert!(answered.success(), "{answered:?}");
    let indexed = place.backstory(&["index", "--wait"]).status().unwrap();
    assert!(indexed.success(), "{indexed:?}");

    let server = place.serve(&[]);
    let path = encoded(place.path("page.py"));
    let of_file = server.get(&format!("/scene?path={path}"));
    let one = &of_file["incidents"][0];
    assert_eq!(one["found_by"], "request", "{of_file:#}");
    assert_eq!(one["request"]["number"], 2, "{one:#}");
    let line = one["request"]["received"]["lines"][0].as_str().unwrap();
    assert!(line.starts_with("POST /?name=../page.py"), "{one:#}");
    let shown = one.to_string();
    assert!(!shown.contains("0123456789abcdef"), "{one:#}");
    let command = one["reconstruct"].as_str().unwrap();
    assert!(command.contains("replay --deep "), "{one:#}");
    assert!(command.contains("--request 2"), "{one:#}");

    let peer = one["request"]["peer"].as_str().unwrap();
    let by_peer = server.get(&format!("/scene?address={}", encoded(peer)));
    assert_eq!(by_peer["incidents"][0]["request"], one["request"]);
    let by_time = server.get(&format!("/scene?time={}", one["time"]));
    assert_eq!(by_time["incidents"][0]["request"], one["request"]);
}
