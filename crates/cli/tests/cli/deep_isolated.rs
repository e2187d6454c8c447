//! `replay --deep` and the machine: programs and tools reach neither its network nor its files, and
//! the machine must let its user make namespaces.

use std::fs;
use std::net::TcpListener;

use backstory_testkit::need::{needs, skipped};

use super::Place;
use super::deep_equal::is_equal;

/// A listener that does not wait, and its port.
fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// The user's files, by name. Programs and tools try to change all of them.
const FILES: [&str; 4] = ["out", "kept", "doomed", "elsewhere/kept"];

/// The recorded program: sends its input to the network, and changes files.
const TALKER: &str = r#"
import os, socket, sys
with socket.create_connection(("127.0.0.1", PORT)) as s: s.sendall(sys.stdin.readline().encode())
with open("doomed") as f: f.read()
with open("out", "w") as f: f.write("new\n")
with open("kept", "a") as f: f.write("more\n")
os.remove("doomed")
"#;

/// Another one: tries to reach a port that the record lacks, too, and all files.
const INTRUDER: &str = r#"
import os, socket
for port in (PORT, OTHER):
    try: socket.create_connection(("127.0.0.1", port), 5).sendall(b"unrecorded")
    except OSError: pass
for name in ("out", "kept", "doomed", "elsewhere/kept"):
    for act in (lambda: open(name, "w").write("changed"), lambda: os.remove(name)):
        try: act()
        except OSError: pass
"#;

/// A tool that does the same before it runs the program.
const TOOL: &str = "bash -c 'for f in out kept doomed elsewhere/kept; do echo changed > $f; rm -f $f; \
                    done 2> errors; for p in PORT OTHER; do echo > /dev/tcp/127.0.0.1/$p; done \
                    2> errors; exec \"$0\" \"$@\"'";

/// A recorded program, and the listeners: that of its connection, and one that it did not use.
struct Recorded {
    place: Place,
    listeners: [TcpListener; 2],
    ports: [u16; 2],
}

impl Recorded {
    /// `None`: there is no Python.
    fn new() -> Option<Recorded> {
        if !needs("a deep replay beside the machine", &["python3"]) {
            return None;
        }
        let ((used, port), (other, unused)) = (listener(), listener());
        let recorded = Recorded {
            place: Place::new(),
            listeners: [used, other],
            ports: [port, unused],
        };
        let place = &recorded.place;
        fs::create_dir(place.path("elsewhere")).unwrap();
        place
            .stage
            .user()
            .owns(place.path("elsewhere").as_ref())
            .unwrap();
        for name in FILES {
            place.write_aged(name, "before\n");
        }
        place.write_aged("talker.py", &recorded.with_ports(TALKER));
        place.deep("echo hello | RECORD python3 talker.py");
        // The listeners see what arrives, and the files are those of the user from now on.
        assert!(recorded.listeners[0].accept().is_ok(), "no connection");
        assert!(!fs::exists(place.path("doomed")).unwrap());
        assert_eq!(fs::read(place.path("out")).unwrap(), b"new\n");
        for name in FILES {
            place.write_aged(name, "mine\n");
        }
        Some(recorded)
    }

    fn with_ports(&self, text: &str) -> String {
        let [used, unused] = self.ports.map(|port| port.to_string());
        text.replace("PORT", &used).replace("OTHER", &unused)
    }

    /// Fails if something reached a listener, or a file of the user.
    #[track_caller]
    fn is_untouched(&self) {
        for listener in &self.listeners {
            assert!(listener.accept().is_err(), "a connection arrived");
        }
        for name in FILES {
            let text = fs::read_to_string(self.place.path(name));
            assert_eq!(text.ok().as_deref(), Some("mine\n"), "{name}");
        }
    }
}

#[test]
fn a_deep_replay_reaches_neither_the_network_nor_a_file_of_the_user() {
    let Some(recorded) = Recorded::new() else {
        return;
    };
    for tool in [&[][..], &["--with", "env"]] {
        let Some(answer) = recorded.place.again(tool) else {
            return;
        };
        assert!(is_equal(&answer), "{answer:?}");
        recorded.is_untouched();
    }
}

#[test]
fn a_changed_program_and_a_tool_reach_neither_the_network_nor_a_file_of_the_user() {
    let Some(recorded) = Recorded::new() else {
        return;
    };
    let place = &recorded.place;
    place.write_aged("intruder.py", &recorded.with_ports(INTRUDER));
    let changed = ["--input", "talker.py=intruder.py", "--patience", "10"];
    for more in [&[][..], &["--with", "env"], &["--allow-host"]] {
        let Some(answer) = place.again(&[&changed[..], more].concat()) else {
            return;
        };
        assert_eq!(answer.status, 1, "{answer:?}");
        assert!(answer.err.contains("different: "), "{answer:?}");
        recorded.is_untouched();
    }
    if needs("a tool beside the machine", &["bash"]) {
        let tool = recorded.with_ports(TOOL);
        let answer = place.again(&["--with", &tool]).unwrap();
        assert!(answer.err.contains("1 program ran again"), "{answer:?}");
        recorded.is_untouched();
    }
}

#[test]
fn denied_namespaces_name_the_machines_setting_and_no_container_image() {
    if !needs("a deep replay without namespaces", &["unshare"]) {
        return;
    }
    let place = Place::new();
    place.deep("echo one | RECORD cat > out");
    let again = place.path("../home/again");
    let words = ["replay", "deep", "--deep", "--output-dir", &again];
    let Some(answer) = place.without_namespaces(&words) else {
        return;
    };
    answer.is_error(1, &["user namespace", "backstory doctor"]);
    assert!(!answer.err.contains("export oci"), "{answer:?}");
    assert!(!fs::exists(&again).unwrap());
}

/// A container of an ordinary user: namespaces of users, mounts and processes, and a new `/proc`.
const INSIDE: &str =
    "echo one | $B record --deep --name deep --contents=lazy -- cat > out || exit 9
$B index --wait || exit 9
rm out
exec $B replay deep --deep --output-dir again
";

#[test]
fn in_a_container_with_namespaces_of_users_a_deep_replay_works() {
    let place = Place::new();
    place.write_aged("inside.sh", INSIDE);
    let line = "exec unshare -pf --mount-proc sh inside.sh";
    let Some(answer) = place.shell_in_namespaces("a deep replay in a container", line) else {
        return;
    };
    if answer.err.contains("namespace") || answer.err.contains("unshare") {
        return skipped("a deep replay in a container", &answer.err);
    }
    assert!(is_equal(&answer), "{answer:?}");
}
