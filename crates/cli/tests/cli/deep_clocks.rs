//! `replay --deep`: each thread has its own clock, and a signal from outside ends threads again.

use backstory_testkit::need::needs;

use super::Place;
use super::deep_replay::recorded_server;

/// A server as `ThreadingHTTPServer` of Python. Its first thread waits for connections, half a
/// second at a time. A thread for each request writes the date.
const DATED: &str = r#"
import http.server, os, socketserver, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/slow": time.sleep(1.1)
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers()
        self.wfile.write(b"ok")
        if self.path == "/last": threading.Thread(target=self.server.shutdown).start()
class Server(socketserver.ThreadingMixIn, socketserver.TCPServer): pass
server = Server(("127.0.0.1", 0), Handler)
with open("port.new", "w") as f: f.write(str(server.server_address[1]))
os.rename("port.new", "port")
server.serve_forever()
server.server_close()
"#;

/// Each request begins in the middle of a second. The record does not say whether a second began
/// before or after the question for the date. So none may begin near it.
const ASKS: &str = r#"
import urllib.request
CONNECT
for path in ("one", "slow", "two", "three", "last"):
    time.sleep(0.1)
    time.sleep((0.55 - time.time()) % 1)
    urllib.request.urlopen(f"http://127.0.0.1:{open('port').read()}/{path}").read()
"#;

#[test]
fn a_server_with_a_thread_for_each_request_has_the_recorded_dates_in_one_attempt() {
    let Some(place) = recorded_server("a server with threads", DATED, ASKS) else {
        return;
    };
    for request in [&[][..], &["--request", "2"], &["--request", "4"]] {
        place.is_equal_again_with(&[&["--tries", "1"][..], request].concat(), "");
    }
}

/// Records a script of Python deeply, and interrupts it when it has said that it waits.
fn interrupted(script: &str) -> Place {
    let place = Place::new();
    place.write_aged("waits.py", script);
    let sends = "(until grep -qs waits out; do sleep 0.05; done; sleep 0.3; kill -INT $(cat pid))";
    place.deep(&format!("{sends} & RECORD python3 waits.py > out; wait"));
    place
}

#[test]
fn an_interruption_from_outside_ends_threads_again_whatever_the_first_one_waits_for() {
    if !needs("threads that are interrupted", &["python3"]) {
        return;
    }
    for waits in [
        "worker.join()",
        "signal.pause()",
        "time.sleep(100)",
        "select.select([pipe], [], [])",
        "while True: select.select([pipe], [], [], 0.2)",
    ] {
        let script = r#"
import os, select, signal, threading, time
# A shell's command in the background would ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
with open("pid", "w") as f: f.write(str(os.getpid()))
pipe, ended = os.pipe()[0], threading.Event()
def work():
    os.write(1, b"waits\n"); ended.wait()
worker = threading.Thread(target=work); worker.start()
try:
    WAITS
except KeyboardInterrupt: os.write(1, b"ended\n")
ended.set(); worker.join()
"#;
        let place = interrupted(&script.replace("WAITS", waits));
        assert_eq!(place.out(), "waits\nended\n", "{waits}");
        // One that waits for the patience is different.
        place.is_equal_again_with(&["--patience", "6"], waits);
    }
}
