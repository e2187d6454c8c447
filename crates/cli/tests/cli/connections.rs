//! A client and a server that are recorded in two runs have one connection.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use backstory_testkit::need;
use serde_json::{Value, json};

use super::Place;

/// Answers one question: what it got goes into `asked`, and `answer` is sent back.
const SERVER: &str = "import socket\n\
    s = socket.socket()\n\
    s.bind(('0.0.0.0', 0))\n\
    s.listen()\n\
    open('port', 'w').write(str(s.getsockname()[1]))\n\
    peer, _ = s.accept()\n\
    open('asked', 'wb').write(peer.recv(100))\n\
    peer.sendall(open('answer', 'rb').read())\n";

/// Sends `question`, and writes the reply into `got`.
const CLIENT: &str = "import socket\n\
    s = socket.create_connection(('127.0.0.1', int(open('port').read())))\n\
    s.sendall(open('question', 'rb').read())\n\
    open('got', 'wb').write(s.recv(100))\n";

/// A place with the recorded runs of a server and its client. `None` without Python.
fn asked() -> Option<Place> {
    if !need::needs("a client and a server", &["python3"]) {
        return None;
    }
    let place = Place::new();
    for (name, content) in [
        ("server.py", SERVER),
        ("client.py", CLIENT),
        ("question", "what?"),
        ("answer", "that."),
    ] {
        place.write(name, content);
    }
    let mut server = place
        .command(&["record", "--wait", "--", "python3", "server.py"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&place.path("port"), &mut server);
    place.record("python3 client.py");
    assert!(server.wait().unwrap().success());
    place.run(&["index", "--wait"]);
    Some(place)
}

/// Waits until the server has written its port.
fn wait_for(path: &str, server: &mut Child) {
    let begin = Instant::now();
    while std::fs::read(path).map_or(0, |port| port.len()) == 0 {
        assert!(server.try_wait().unwrap().is_none(), "the server ended");
        assert!(begin.elapsed() < Duration::from_secs(120), "no server");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The file names of an answer.
fn files(place: &Place, words: &[&str]) -> Vec<String> {
    let answer = place.json(&[words, &["--all", "--json"]].concat());
    let nodes = answer["nodes"].as_array().unwrap().iter();
    let paths = nodes.filter_map(|node| node["path"].as_str());
    let here = format!("{}/", place.path("").trim_end_matches('/'));
    let mut names: Vec<String> = paths
        .filter_map(|path| path.strip_prefix(&here))
        .filter(|name| ["question", "answer", "asked", "got"].contains(name))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn of_and_uses_follow_a_connection_to_the_run_of_the_other_end() {
    let Some(place) = asked() else { return };
    assert_eq!(files(&place, &["of", "got"]), ["answer", "got", "question"]);
    assert_eq!(files(&place, &["of", "asked"]), ["asked", "question"]);
    assert_eq!(
        files(&place, &["uses", "question"]),
        ["asked", "got", "question"]
    );
    assert_eq!(files(&place, &["uses", "answer"]), ["answer", "got"]);
}

#[test]
fn both_ends_of_a_connection_are_in_the_table_of_connections() {
    let Some(place) = asked() else { return };
    let port = std::fs::read_to_string(place.path("port")).unwrap();
    let sql = "SELECT role, own, other, scope, network, c.run = p.run AS same, \
        (SELECT path FROM files WHERE file = c.file) AS sent, \
        (SELECT path FROM files WHERE file = c.reply) AS got \
        FROM connections c JOIN processes p USING (process) ORDER BY role";
    let found = place.json(&["query", "--json", sql]);
    let [client, server] = found.as_array().unwrap().as_slice() else {
        panic!("{found}")
    };
    let address = format!("127.0.0.1:{port}");
    assert_eq!(client["other"], json!(address));
    assert_eq!(
        (&client["own"], &client["other"]),
        (&server["other"], &server["own"])
    );
    assert_eq!(client["network"], server["network"]);
    for (end, role) in [(client, "client"), (server, "server")] {
        assert_eq!(
            (&end["role"], &end["scope"]),
            (&json!(role), &json!("loopback"))
        );
        assert_eq!(end["same"], json!(1));
        let name = end["sent"].as_str().unwrap();
        assert!(name.starts_with("tcp:127.0.0.1:"), "{end}");
        assert_eq!(end["got"], Value::from(format!("{name} (reply)")));
    }
}
