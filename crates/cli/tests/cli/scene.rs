//! `scene`: from a file, an address or a time to the request behind it.
//!
//! The story: an upload leaves the directory of uploads. The report finds its request, the
//! reconstruction stops at the write, and the repaired server refuses the same bytes.

use std::fs;

use backstory_testkit::need::{needs, skipped};
use serde_json::Value;

use super::deep_replay::compiled;
use super::{Answer, Place};

const SERVER: &str = include_str!("../../../../examples/incident/upload.py");
const CLIENT: &str = include_str!("../../../../examples/incident/client.py");

/// The run of the story.
struct Story {
    place: Place,
}

impl Story {
    /// Records the server while the client sends its uploads. `None`: there is no Python.
    fn recorded(options: &str) -> Option<Story> {
        let place = Place::new();
        place.write_aged("upload.py", SERVER);
        Story::recorded_in(place, options, "/usr/bin/python3 upload.py")
    }

    /// The same with a script as the command, whose interpreter is a script that executes Python.
    fn recorded_as_script(options: &str) -> Option<Story> {
        let place = Place::new();
        place.write("shim", "#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n");
        place.write("upload.py", &format!("#!./shim\n{SERVER}"));
        assert_eq!(place.shell("chmod +x shim upload.py").status, 0);
        place.age("upload.py");
        Story::recorded_in(place, options, "./upload.py")
    }

    /// Records the server, as this command starts it.
    fn recorded_in(place: Place, options: &str, command: &str) -> Option<Story> {
        if !needs("a server with a mistake", &["/usr/bin/python3"]) {
            return None;
        }
        place.write_aged("client.py", CLIENT);
        let line = format!(
            "/usr/bin/python3 client.py & $B record {options} --name story --contents=lazy -- \
             {command} 3 && wait"
        );
        let answer = place.shell(&line);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
        assert_eq!(answer.out, "photo.txt 201\n../page.py 201\nnotes.txt 201\n");
        assert_eq!(place.run(&["index", "--wait"]).status, 0);
        Some(Story { place })
    }

    fn scene(&self, subject: &str) -> Value {
        let scene = self.place.json(&["scene", subject, "--json"]);
        assert!(
            !scene["incidents"].as_array().unwrap().is_empty(),
            "{scene:#}"
        );
        scene
    }

    /// Runs the request of the story again. `None`: this machine has no namespaces.
    fn again(&self, command: &str, more: &[&str]) -> Option<Answer> {
        let words = command
            .split(' ')
            .skip(2)
            .filter(|word| *word != "--with" && *word != "gdb");
        let words: Vec<&str> = words.collect();
        let answer = self
            .place
            .replay(words[1], &[&words[..1], &words[2..], more].concat());
        if answer.err.contains("namespace") {
            skipped("the reconstruction of a request", &answer.err);
            return None;
        }
        Some(answer)
    }
}

/// Asserts that the request came out as recorded, its file included. The header `Date` of the
/// response may have another second, and the verdict then names that.
fn assert_equal_but_for_its_date(answer: &Answer) {
    assert_eq!(answer.status, 0, "{answer:?}");
    let mut lines = answer.err.lines();
    let is_equal = |line: &str| {
        line.starts_with("equal: ") || line.starts_with("equal but for volatile parts: ")
    };
    assert!(lines.clone().any(is_equal), "{answer:?}");
    let is_date = |line: &str| line.ends_with(": a date from the clock");
    let is_fine = lines.all(|line| !line.starts_with("  volatile: ") || is_date(line));
    assert!(is_fine, "{answer:?}");
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{path}: {value:#}"))
}

#[test]
fn the_request_behind_a_file_is_found_and_the_repaired_server_refuses_its_bytes() {
    let Some(story) = Story::recorded("--deep --outputs full") else {
        return;
    };
    let scene = story.scene("page.py");
    assert_eq!(scene["incidents"].as_array().unwrap().len(), 1, "{scene:#}");
    let one = &scene["incidents"][0];
    assert_eq!(
        (one["found_by"].as_str(), &one["request"]["number"]),
        (Some("request"), &2.into())
    );
    assert!(
        text(one, "/request/peer").starts_with("127.0.0.1:"),
        "{one:#}"
    );
    let received = text(one, "/request/received/text");
    assert!(
        received.starts_with("POST /?name=../page.py HTTP/1.1\\r\n"),
        "{received}"
    );
    assert!(received.ends_with("print('not an upload')"), "{received}");
    assert!(
        received.contains("Authorization: <redacted>\\r"),
        "{received}"
    );
    assert!(!received.contains("0123456789abcdef"), "{received}");
    assert!(
        text(one, "/request/sent/text").starts_with("HTTP/1.0 201 Created"),
        "{one:#}"
    );
    assert_eq!(one["files"].as_array().unwrap().len(), 1, "{one:#}");
    let left = &one["files"][0];
    assert_eq!(left["path"], story.place.path("page.py"), "{one:#}");
    assert_eq!(
        (&left["acts"], &left["now"]),
        (&serde_json::json!(["write"]), &"unchanged".into())
    );
    assert_eq!(text(left, "/digest").len(), 64, "{left:#}");
    let command = text(one, "/reconstruct");
    assert!(command.starts_with("backstory replay --deep ") && command.contains(" --request 2 "));

    let Some(answer) = story.again(command, &[]) else {
        return;
    };
    assert_equal_but_for_its_date(&answer);
    if needs("a reconstruction under strace", &["strace"]) {
        let with = "strace -f -e trace=openat";
        let answer = story.again(command, &["--with", with]).unwrap();
        let opens = answer.err.lines().filter(|line| line.contains("O_CREAT"));
        let opened: Vec<&str> = opens.filter(|line| line.contains("uploads/")).collect();
        assert!(
            opened.len() == 1 && opened[0].contains("uploads/../page.py"),
            "{answer:?}"
        );
    }
    story.place.write(
        "repaired.py",
        &SERVER.replace("CHECKED = False", "CHECKED = True"),
    );
    let answer = story
        .again(command, &["--input", "upload.py=repaired.py"])
        .unwrap();
    assert_eq!(answer.status, 1, "{answer:?}");
    assert!(
        answer.err.contains("different: ")
            && answer.err.contains("201 Created")
            && answer.err.contains("403 Forbidden"),
        "{answer:?}"
    );
}

#[test]
fn gdb_stops_where_the_request_writes_the_file() {
    if !needs("a reconstruction under gdb", &["gdb"]) {
        return;
    }
    let Some(story) = Story::recorded("--deep") else {
        return;
    };
    // The call that makes the file, and the one that writes into it.
    assert_gdb_stops(&story, "openat", ".*page.py", "\"uploads/../page.py\"");
    assert_gdb_stops(&story, "write", "print.*", "\"print('not an upload')");
}

#[test]
fn gdb_stops_where_a_script_that_is_the_command_writes_the_file() {
    if !needs("a reconstruction under gdb", &["gdb"]) {
        return;
    }
    let Some(story) = Story::recorded_as_script("--deep") else {
        return;
    };
    assert_gdb_stops(&story, "write", "print.*", "\"print('not an upload')");
}

/// The story whose server is started by a shell, which is the command of the run.
fn recorded_in_shell() -> Option<Story> {
    let place = Place::new();
    place.write_aged("upload.py", SERVER);
    let command = "sh -c '/usr/bin/python3 upload.py $0; true'";
    Story::recorded_in(place, "--deep", command)
}

#[test]
fn commands_of_scene_and_when_name_the_server_that_a_shell_started() {
    let Some(story) = recorded_in_shell() else {
        return;
    };
    let scene = story.scene("page.py");
    let one = &scene["incidents"][0];
    let process = format!(" --process {} --with gdb", one["process"]["pid"]);
    let command = text(one, "/reconstruct");
    assert!(command.ends_with(&process), "{one:#}");
    let request = one["request"]["number"].to_string();
    let search = ["when", "--run", "story", "--request", &request, "upload"];
    let answer = story.place.run(&search);
    if answer.err.contains("namespace") {
        return skipped("a search in a deep run", &answer.err);
    }
    assert!(answer.out.trim_end().ends_with(&process), "{answer:?}");
}

#[test]
fn gdb_stops_in_a_server_that_a_shell_started() {
    if !needs("a reconstruction under gdb", &["gdb"]) {
        return;
    }
    let Some(story) = recorded_in_shell() else {
        return;
    };
    assert_gdb_stops(&story, "write", "print.*", "\"print('not an upload')");
}

/// Asserts that the command of the report, under gdb, stops at a call whose second argument begins
/// so, and shows it.
#[track_caller]
fn assert_gdb_stops(story: &Story, call: &str, begins: &str, seen: &str) {
    let scene = story.scene("page.py");
    let command = text(&scene["incidents"][0], "/reconstruct");
    let with = format!(
        "gdb -q -batch -ex 'catch syscall {call}' \
         -ex 'condition 1 $_regex((char *)$rsi, \"{begins}\")' -ex run -ex 'x/s $rsi'"
    );
    if let Some(answer) = story.again(command, &["--with", &with]) {
        let shown = answer.out + &answer.err;
        let is_stopped = shown.contains("Catchpoint 1") && shown.contains(seen);
        assert!(is_stopped, "{call}: {shown}");
    }
}

#[test]
fn an_address_and_a_time_lead_to_the_same_requests() {
    let Some(story) = Story::recorded("--deep") else {
        return;
    };
    let one = &story.scene("page.py")["incidents"][0];
    let by_peer = story.scene(text(one, "/request/peer"));
    assert_eq!(
        by_peer["incidents"].as_array().unwrap().len(),
        1,
        "{by_peer:#}"
    );
    assert_eq!(by_peer["incidents"][0]["request"], one["request"]);
    let of_host = story.scene("127.0.0.1");
    assert_eq!(
        of_host["incidents"].as_array().unwrap().len(),
        3,
        "{of_host:#}"
    );
    let moment = format!("@{}", one["time"]);
    let by_time = story.scene(&moment);
    assert_eq!(
        by_time["incidents"][0]["request"], one["request"],
        "{by_time:#}"
    );
    story
        .place
        .run(&["scene", "192.0.2.7:80"])
        .is_error(1, &["192.0.2.7:80", "backstory peers"]);
    story
        .place
        .run(&["scene", "no-such-file"])
        .is_error(1, &["no-such-file"]);
}

/// A server in C that does not ask who connects.
const INCURIOUS: &str = r#"
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr *address = (struct sockaddr *)&own;
    socklen_t size = sizeof own;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, address, size) || listen(listener, 5) ||
        getsockname(listener, address, &size))
        return 1;
    FILE *port = fopen("port.new", "w");
    fprintf(port, "%d", ntohs(own.sin_port));
    fclose(port);
    rename("port.new", "port");
    for (int n = 0; n < 2; n++) {
        char got[100];
        int connection = accept(listener, 0, 0);
        if (read(connection, got, sizeof got) <= 0 || write(connection, "done\n", 5) != 5)
            return 1;
        close(connection);
    }
    return 0;
}
"#;

/// The same in Node.js, at all addresses of the machine.
const INCURIOUS_NODE: &str = r#"
const fs = require("fs");
let left = 2;
const server = require("net").createServer(connection => {
    connection.once("data", () => connection.end("done\n"));
    if (--left === 0) server.close();
});
server.listen(0, () => {
    fs.writeFileSync("port.new", String(server.address().port));
    fs.renameSync("port.new", "port");
});
"#;

/// Asserts that the peers of both requests of this server are known, and lead to the requests.
fn assert_peers_lead_to_requests(place: Place, server: &str) {
    place.write_aged("client.py", CGI_CLIENT);
    let line = format!("/usr/bin/python3 client.py & $B record --deep -- {server} && wait");
    let answer = place.shell(&line);
    assert_eq!(answer.status, 0, "{answer:?}");
    let story = Story { place };
    let requests = story.place.json(&["requests", "--json"]);
    let requests = requests.as_array().unwrap();
    assert_eq!(requests.len(), 2, "{requests:#?}");
    for request in requests {
        let of_peer = story.scene(text(request, "/peer"));
        let found = of_peer["incidents"].as_array().unwrap();
        assert_eq!(found.len(), 1, "{of_peer:#}");
        assert_eq!(found[0]["request"]["number"], request["number"]);
    }
    let of_host = story.scene("127.0.0.1");
    let found = of_host["incidents"].as_array().unwrap();
    assert_eq!(found.len(), 2, "{of_host:#}");
}

#[test]
fn an_address_leads_to_the_requests_of_a_server_that_passes_none_to_accept() {
    let place = Place::new();
    let what = "a server that passes no address";
    if needs(what, &["/usr/bin/python3"]) && compiled(&place, "", "server", INCURIOUS) {
        assert_peers_lead_to_requests(place, "./server");
    }
    if needs(what, &["/usr/bin/python3", "node"]) {
        let place = Place::new();
        place.write_aged("server.js", INCURIOUS_NODE);
        assert_peers_lead_to_requests(place, "node server.js");
    }
}

#[test]
fn the_report_fits_on_a_screen_and_its_pages_have_the_same() {
    let Some(story) = Story::recorded("--deep --outputs full") else {
        return;
    };
    let text = story.place.run(&["scene", "page.py"]).out;
    assert!(text.lines().count() <= 40, "{text}");
    for part in [
        "Request 2 of run ",
        "from 127.0.0.1:",
        "| POST /?name=../page.py",
        "wrote page.py",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for form in ["--markdown", "--html"] {
        let page = story.place.run(&["scene", "page.py", form]).out;
        for part in [
            "Request 2 of run ",
            "POST /?name=../page.py",
            "--request 2 --with gdb",
        ] {
            assert!(page.contains(part), "{form} {part}: {page}");
        }
        assert!(!page.contains("0123456789abcdef"), "{page}");
    }
}

#[test]
fn without_a_deep_log_the_report_names_the_process_and_says_what_is_not_known() {
    let Some(story) = Story::recorded("") else {
        return;
    };
    let scene = story.scene("page.py");
    let one = &scene["incidents"][0];
    assert_eq!(
        (one["found_by"].as_str(), &one["request"]),
        (Some("process"), &Value::Null)
    );
    assert_eq!(one["connections"][0]["role"], "server", "{one:#}");
    assert!(
        one["limits"].to_string().contains("record --deep"),
        "{one:#}"
    );
    let argv = one["process"]["argv"].to_string();
    assert!(argv.contains("upload.py"), "{one:#}");
}

/// A server that executes a program for each request, as CGI does: the program has the connection
/// as its standard input and output.
const CGI: &str = r#"
import os, socket
s = socket.create_server(("127.0.0.1", 0))
with open("port.new", "w") as f: f.write(str(s.getsockname()[1]))
os.rename("port.new", "port")
for n in range(2):
    c, a = s.accept()
    head = b""
    while not head.endswith(b"\n"): head += c.recv(1)
    pid = os.fork()
    if pid == 0:
        os.dup2(c.fileno(), 0); os.dup2(c.fileno(), 1)
        os.execv("/bin/sh", ["sh", "-c", "head -c 5 > " + head.decode().strip() + "; echo done"])
    c.close(); os.waitpid(pid, 0)
"#;

const CGI_CLIENT: &str = r#"
import os, socket, time
while not os.path.exists("port"): time.sleep(0.01)
for name in ["one", "two"]:
    c = socket.create_connection(("127.0.0.1", int(open("port").read())))
    c.sendall(name.encode() + b"\nbody!"); assert c.recv(9) == b"done\n"; c.close()
"#;

#[test]
fn a_file_that_a_program_of_the_server_wrote_leads_to_the_servers_request() {
    if !needs("a server that executes programs", &["/usr/bin/python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("cgi.py", CGI);
    place.write_aged("client.py", CGI_CLIENT);
    let line = "/usr/bin/python3 client.py & $B record --deep --outputs full -- \
                /usr/bin/python3 cgi.py && wait";
    let answer = place.shell(line);
    assert_eq!(answer.status, 0, "{answer:?}");
    let story = Story { place };
    let scene = story.scene("two");
    let one = &scene["incidents"][0];
    assert_eq!(one["request"]["number"], 2, "{scene:#}");
    assert_eq!(text(one, "/request/received/text"), "two\nbody!", "{one:#}");
    assert_eq!(text(one, "/request/sent/text"), "done\n", "{one:#}");
    let started = one["started"].to_string();
    assert!(started.contains("head"), "{one:#}");
    let all = story.place.json(&["requests", "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 2, "{all:#}");
}

/// A server whose other threads write the files, as those of Node do.
const POOL: &str = r#"
import os, socket
from concurrent.futures import ThreadPoolExecutor
def store(name):
    with open(name, "w") as file: file.write("stored")
with ThreadPoolExecutor(1) as pool:
    pool.submit(int).result()
    s = socket.create_server(("127.0.0.1", 0))
    with open("port.new", "w") as f: f.write(str(s.getsockname()[1]))
    os.rename("port.new", "port")
    for n in range(2):
        c, a = s.accept()
        name = c.recv(9).split()[0].decode()
        pool.submit(store, name).result()
        c.sendall(b"done\n"); c.close()
"#;

/// A server that was recorded deeply while a client asked it. Both are programs of Python.
#[track_caller]
fn served(server: &str, client: &str) -> Story {
    let place = Place::new();
    place.write_aged("server.py", server);
    place.write_aged("client.py", client);
    let line =
        "/usr/bin/python3 client.py & $B record --deep -- /usr/bin/python3 server.py && wait";
    let answer = place.shell(line);
    assert_eq!(answer.status, 0, "{answer:?}");
    Story { place }
}

#[test]
fn a_file_that_another_thread_wrote_leads_to_the_request_of_that_moment_and_says_so() {
    if !needs("a server with threads", &["/usr/bin/python3"]) {
        return;
    }
    let story = served(POOL, CGI_CLIENT);
    let scene = story.scene("two");
    let one = &scene["incidents"][0];
    let found = (one["found_by"].as_str(), &one["request"]["number"]);
    assert_eq!(found, (Some("time"), &2.into()), "{one:#}");
    assert!(
        one["limits"].to_string().contains("at that moment"),
        "{one:#}"
    );
    assert_eq!(one["files"][0]["path"], story.place.path("two"), "{one:#}");
}

/// A server whose event loop reads both of its requests before it works on them.
const LOOP: &str = r#"
import os, select, socket
s = socket.create_server(("127.0.0.1", 0))
with open("port.new", "w") as f: f.write(str(s.getsockname()[1]))
os.rename("port.new", "port")
peers = [s.accept()[0] for n in range(2)]
select.select(peers, [], [])
for name in [peer.recv(9).decode() for peer in peers]:
    with open(name, "w") as file: file.write("stored")
for peer in peers: peer.sendall(b"done\n"); peer.close()
"#;

const LOOP_CLIENT: &str = r#"
import os, socket, time
while not os.path.exists("port"): time.sleep(0.01)
address = ("127.0.0.1", int(open("port").read()))
peers = [socket.create_connection(address) for n in range(2)]
for peer, name in zip(peers, (b"one", b"two")): peer.sendall(name)
for peer in peers: assert peer.recv(9) == b"done\n"; peer.close()
"#;

#[test]
fn a_file_of_an_event_loop_that_had_read_several_requests_is_found_by_time_with_the_others_named() {
    if !needs("a server with an event loop", &["/usr/bin/python3"]) {
        return;
    }
    let story = served(LOOP, LOOP_CLIENT);
    // The file of the first request. The thread read the second one last.
    let scene = story.scene("one");
    let one = &scene["incidents"][0];
    let found = (one["found_by"].as_str(), &one["request"]["number"]);
    assert_eq!(found, (Some("time"), &2.into()), "{one:#}");
    let limits = one["limits"].to_string();
    assert!(
        limits.contains("may have acted for request 1, too"),
        "{one:#}"
    );
}

/// A server that connects to the ports which a request names, and then writes a file.
const RELAY: &str = r#"
import os, socket
s = socket.create_server(("127.0.0.1", 0))
with open("port.new", "w") as f: f.write(str(s.getsockname()[1]))
os.rename("port.new", "port")
for n in range(2):
    c, a = s.accept()
    name, *ports = c.recv(100).decode().split()
    for port in ports:
        try: socket.create_connection(("127.0.0.1", int(port))).close()
        except ConnectionRefusedError: pass
    with open(name, "w") as file: file.write("stored")
    c.sendall(b"done\n"); c.close()
"#;

/// Names a port that listens, and one that refuses.
const RELAY_CLIENT: &str = r#"
import os, socket, time
while not os.path.exists("port"): time.sleep(0.01)
listens, refuses = socket.create_server(("127.0.0.1", 0)), socket.socket()
refuses.bind(("127.0.0.1", 0))
ports = [str(s.getsockname()[1]) for s in (listens, refuses)]
with open("ports", "w") as f: f.write(" ".join(ports))
for words in (["one"], ["two", *ports]):
    c = socket.create_connection(("127.0.0.1", int(open("port").read())))
    c.sendall(" ".join(words).encode()); assert c.recv(9) == b"done\n"; c.close()
"#;

#[test]
fn the_further_connections_of_a_request_are_in_its_report_and_in_no_other() {
    if !needs("a server that connects further", &["/usr/bin/python3"]) {
        return;
    }
    let story = served(RELAY, RELAY_CLIENT);
    let ports = fs::read_to_string(story.place.path("ports")).unwrap();
    let (listens, refuses) = ports.split_once(' ').unwrap();
    let scene = story.scene("two");
    let one = &scene["incidents"][0];
    assert_eq!(one["request"]["number"], 2, "{one:#}");
    let connections = one["connections"].as_array().unwrap().iter();
    let connections: Vec<_> = connections
        .map(|one| (text(one, "/address"), text(one, "/role"), &one["connected"]))
        .collect();
    let address = |port: &str| format!("127.0.0.1:{port}");
    let (reached, refused) = (address(listens), address(refuses));
    let wanted = [
        (reached.as_str(), "client", &Value::Bool(true)),
        (refused.as_str(), "client", &Value::Bool(false)),
    ];
    assert_eq!(connections, wanted, "{one:#}");
    let page = story.place.run(&["scene", "two"]).out;
    for part in [format!("to {reached}"), format!("failed {refused}")] {
        assert!(page.contains(&part), "{part}: {page}");
    }
    let first = story.scene("one");
    let none = serde_json::json!([]);
    assert_eq!(first["incidents"][0]["connections"], none, "{first:#}");
}

#[test]
fn a_deep_log_that_is_gone_or_cut_leaves_a_report_that_says_so() {
    let Some(story) = Story::recorded("--deep") else {
        return;
    };
    let runs = story.place.stage.store().join("runs");
    let all = fs::read_dir(&runs)
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let deep = all
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "deep"))
        .unwrap();
    let bytes = fs::read(&deep).unwrap();
    for length in [0, 3, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&deep, &bytes[..length]).unwrap();
        let scene = story.scene("page.py");
        assert!(
            !scene["incidents"][0]["limits"].to_string().is_empty(),
            "{length}: {scene:#}"
        );
    }
    fs::write(&deep, b"this is no deep log, and it is long enough").unwrap();
    let scene = story.scene("page.py");
    assert!(
        scene["notes"].to_string().contains("is not used"),
        "{scene:#}"
    );
    fs::remove_file(&deep).unwrap();
    assert_eq!(story.scene("page.py")["incidents"][0]["deep"], false);
}
