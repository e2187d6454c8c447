//! `replay --deep`: each thread has its own clock.

use super::deep_replay::{is_equal, recorded_server};

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

const ASKS: &str = r#"
import os, time, urllib.request
while not os.path.exists("port"): time.sleep(0.01)
for path in ("one", "slow", "two", "three", "last"):
    time.sleep(0.6)
    urllib.request.urlopen(f"http://127.0.0.1:{open('port').read()}/{path}").read()
"#;

#[test]
fn a_server_with_a_thread_for_each_request_has_the_recorded_dates_in_one_attempt() {
    let Some(place) = recorded_server("a server with threads", DATED, ASKS) else {
        return;
    };
    for request in [&[][..], &["--request", "2"], &["--request", "4"]] {
        if let Some(answer) = place.again(&[&["--tries", "1"][..], request].concat()) {
            assert!(is_equal(&answer), "{request:?}: {answer:?}");
        }
    }
}
