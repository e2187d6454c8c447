//! `replay --deep` of OpenSSH's server. It executes itself for each connection, and separates its
//! privileges. The process that talks to the client limits its own system calls.

use backstory_testkit::need::needs;
use backstory_testkit::ports::free_port;
use backstory_testkit::ssh_server::{installed, make_key};
use serde_json::Value;

use super::Place;

/// Records a server, of which a client asks for its key.
fn recorded(place: &Place) -> bool {
    let what = "a server of ssh that runs again";
    let Some(sshd) = installed(what).filter(|_| needs(what, &["ssh-keyscan"])) else {
        return false;
    };
    let sshd = std::fs::canonicalize(sshd).unwrap();
    let (host, port) = (place.path("host"), free_port().unwrap());
    make_key(host.as_ref()).unwrap();
    for key in ["host", "host.pub"] {
        place.stage.user().owns(place.path(key).as_ref()).unwrap();
        place.age(key);
    }
    place.write_aged(
        "settings",
        &format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {host}\nPidFile {}\nUsePAM no\n",
            place.path("pid")
        ),
    );
    let settings = place.path("settings");
    let scan = format!("ssh-keyscan -T 20 -t ed25519 -p {port} 127.0.0.1 >scanned 2>/dev/null");
    place.deep(&format!(
        "RECORD {} -D -e -f {settings} >log 2>&1 & server=$!\n\
         until {scan} && test -s scanned; do kill -0 $server || exit 1; sleep 0.1; done\n\
         kill `cat pid`; wait $server; true",
        sshd.display()
    ));
    true
}

#[test]
fn the_exchange_of_keys_of_an_ssh_server_runs_again() {
    let place = Place::new();
    if !recorded(&place) {
        return;
    }
    let listed = place.json(&["requests", "deep", "--json"]);
    let served = listed.as_array().unwrap().iter();
    let served = served.filter(|request| request["role"] == "server");
    let sent = |request: &&Value| request["bytes_out"].as_u64();
    let exchange = served.max_by_key(sent).unwrap();
    // The signed answer, with random numbers of the process that limited its calls.
    assert!(sent(&exchange) > Some(500), "{listed:#}");
    let number = exchange["number"].to_string();
    let Some(answer) = place.again(&["--json", "--request", &number]) else {
        return;
    };
    let report: Value = serde_json::from_str(&answer.out).expect(&answer.err);
    let found = &report["reconstruction"];
    assert_eq!(found["verdict"], "equal", "{found:#}");
    assert_eq!(found["request"]["served"], true, "{found:#}");
}
