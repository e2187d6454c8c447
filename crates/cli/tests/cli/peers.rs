//! `peers` names the addresses that the processes of a run talked to, their names and the bytes.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};

use backstory_testkit::need;
use serde_json::{Value, json};

use super::Place;

/// The contact of the last run with this address.
#[track_caller]
fn contact(place: &Place, address: &str) -> Value {
    let peers = place.json(&["peers", "--json"]);
    let mut found = peers.as_array().unwrap().iter();
    let found = found.find(|peer| peer["address"] == address);
    found
        .cloned()
        .unwrap_or_else(|| panic!("{address}: {peers}"))
}

/// A server of datagrams that answers one question. Its port.
fn datagram_server() -> (u16, std::thread::JoinHandle<()>) {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let answers = std::thread::spawn(move || {
        let (_, from) = server.recv_from(&mut [0; 16]).unwrap();
        server.send_to(b"answer", from).unwrap();
    });
    (port, answers)
}

#[test]
fn a_connection_has_the_bytes_that_its_server_counted() {
    if !need::needs("a client", &["python3"]) {
        return;
    }
    let place = Place::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let serves = std::thread::spawn(move || {
        let mut total = 0;
        for answer in [70_001, 3] {
            let (mut peer, _) = server.accept().unwrap();
            peer.write_all(&vec![b'a'; answer]).unwrap();
            peer.shutdown(std::net::Shutdown::Write).unwrap();
            total += peer.read_to_end(&mut Vec::new()).unwrap();
        }
        total
    });
    // The first connection is closed by the program, the second by its end.
    place.write(
        "client.py",
        "import os, socket, sys\n\
         def talk(size):\n    \
             s = socket.create_connection(('localhost', int(sys.argv[1])))\n    \
             while s.recv(100000): pass\n    \
             s.sendall(b'q' * size)\n    \
             return s\n\
         talk(50000).close()\n\
         kept = talk(77)\n\
         os._exit(0)\n",
    );
    place.record(&format!("python3 client.py {port}"));
    let counted = serves.join().unwrap();
    assert_eq!(counted, 50_077);
    let peer = contact(&place, &format!("tcp:127.0.0.1:{port}"));
    assert_eq!(peer["bytes"], json!({"sent": counted, "received": 70_004}));
    assert_eq!(
        peer["names"],
        json!([{"name": "localhost", "from": "lookup"}])
    );
    let text = place.run(&["peers"]).out;
    assert!(text.contains("sent 50.1 kB, received 70.0 kB"), "{text}");
    assert!(text.contains("(localhost)"), "{text}");
}

#[test]
fn a_peer_of_datagrams_is_no_peer_of_connections() {
    if !need::needs("a client", &["python3"]) {
        return;
    }
    let connects = "s.connect(to); s.send(b'q'); s.recv(16)";
    let addresses = "s.sendto(b'q', to); s.recvfrom(16)";
    let messages = "s.sendmsg([b'q'], [], 0, to); s.recvmsg(16)";
    for talk in [connects, addresses, messages] {
        let place = Place::new();
        let (port, answers) = datagram_server();
        let client = "import socket, sys; to = ('127.0.0.1', int(sys.argv[1])); \
                      s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)";
        place.write("client.py", &format!("{client}; {talk}\n"));
        place.record(&format!("python3 client.py {port}"));
        answers.join().unwrap();
        let peer = contact(&place, &format!("udp:127.0.0.1:{port}"));
        let facts = [&peer["connected"], &peer["sent"], &peer["received"]];
        assert_eq!(facts, [&json!(true); 3], "{talk}");
        assert_eq!(
            (&peer["role"], &peer["bytes"]),
            (&json!("client"), &Value::Null)
        );
        let text = place.run(&["peers"]).out;
        assert!(!text.contains("tcp:"), "{talk}: {text}");
    }
}

#[test]
fn a_static_programs_peer_of_datagrams_is_no_peer_of_connections() {
    let place = Place::new();
    let Some(program) = place.fixture("datagram_static") else {
        return;
    };
    let (port, answers) = datagram_server();
    place.record(&format!("{program} {port}"));
    answers.join().unwrap();
    let peer = contact(&place, &format!("udp:127.0.0.1:{port}"));
    assert_eq!(peer["role"], "client");
    let text = place.run(&["peers"]).out;
    assert!(!text.contains("tcp:"), "{text}");
}

/// A client and a server of datagrams on a port that was free. The client writes the answer to a
/// file. Returns the port.
fn write_pair(place: &Place) -> u16 {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    write_pair_on(place, port);
    port
}

/// The same on this port. 0: the kernel chooses one.
fn write_pair_on(place: &Place, port: u16) {
    place.write("input", "text");
    let script = "import os, socket\n\
         server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         server.bind(('127.0.0.1', PORT))\n\
         if os.fork():\n    \
             q, client = server.recvfrom(16)\n    \
             server.sendto(open('input', 'rb').read(), client)\n    \
             os.wait()\n\
         else:\n    \
             s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    \
             s.sendto(b'q', server.getsockname())\n    \
             a = s.recv(16)\n    \
             open('output', 'wb').write(a)\n    \
             os._exit(0)\n";
    place.write("pair.py", &script.replace("PORT", &port.to_string()));
}

fn assert_output_is_from_input(place: &Place) {
    let of = place.run(&["of", "output", "--tree"]).out;
    assert!(
        of.contains(&place.path("input")) || of.contains("read input"),
        "{of}"
    );
}

#[test]
fn a_result_of_datagrams_leads_to_the_servers_input() {
    if !need::needs("a client and a server", &["python3"]) {
        return;
    }
    let place = Place::new();
    let port = write_pair(&place);
    place.record("python3 pair.py");
    assert_output_is_from_input(&place);
    let peers = place.run(&["peers"]).out;
    assert!(
        peers.contains(&format!("udp:127.0.0.1:{port}")) && peers.contains("served: "),
        "{peers}"
    );
}

#[test]
fn a_server_of_datagrams_on_a_port_that_the_kernel_chose_is_found() {
    if !need::needs("a client and a server", &["python3"]) {
        return;
    }
    let place = Place::new();
    write_pair_on(&place, 0);
    place.record("python3 pair.py");
    assert_output_is_from_input(&place);
}

#[test]
fn a_datagram_is_sent_before_its_receiver_goes_on() {
    if !need::needs("a client and a server", &["python3", "gcc"]) {
        return;
    }
    let place = Place::new();
    write_pair(&place);
    // The sender waits in the call until the receiver is ready with the answer.
    place.write(
        "late.c",
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <sys/socket.h>\n#include <unistd.h>\n\
         ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t n) {\n\
             ssize_t (*next)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, \"sendto\");\n\
             ssize_t sent = next(fd, data, size, flags, to, n);\n\
             if (size == 4) for (int i = 0; i < 1000 && access(\"output\", F_OK); i++) usleep(10000);\n\
             return sent;\n}\n",
    );
    let built = place.command_line("gcc -shared -fPIC -o late.so late.c");
    assert_eq!(built.status, 0, "{built:?}");
    place.record("LD_PRELOAD=$PWD/late.so python3 pair.py");
    assert_output_is_from_input(&place);
}

/// Receives datagrams from itself. Before each call, the memory for the address has another one.
/// The program has room for the family and the port alone, and for the whole of the last address.
const SHORT_ROOMS: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
enum { SHORT = 4, WHOLE = sizeof(struct sockaddr_in), OTHER = 0x7f090909 };
static struct sockaddr_in address(unsigned host)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
}
static int bound(struct sockaddr_in *own)
{
    socklen_t size = sizeof *own;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    *own = address(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)own, size) ||
        getsockname(fd, (struct sockaddr *)own, &size))
        _exit(1);
    return fd;
}
int main(void)
{
    struct sockaddr_in own, to, from[4];
    int client = bound(&own), server = bound(&to);
    for (int n = 0; n < 4; n++) {
        from[n] = address(OTHER);
        if (sendto(client, "q", 1, 0, (struct sockaddr *)&to, sizeof to) != 1)
            return 2;
    }
    char byte;
    struct iovec part = {&byte, 1};
    socklen_t room = SHORT;
    if (recvfrom(server, &byte, 1, 0, (struct sockaddr *)&from[0], &room) != 1 || room != WHOLE)
        return 3;
    struct msghdr message = {
        .msg_name = &from[1], .msg_namelen = SHORT, .msg_iov = &part, .msg_iovlen = 1};
    if (recvmsg(server, &message, 0) != 1)
        return 4;
    struct mmsghdr both[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
    both[0].msg_hdr.msg_name = &from[2];
    both[0].msg_hdr.msg_namelen = SHORT;
    both[1].msg_hdr.msg_name = &from[3];
    both[1].msg_hdr.msg_namelen = WHOLE;
    if (recvmmsg(server, both, 2, 0, 0) != 2)
        return 5;
    FILE *port = fopen("port", "w");
    return !port || fprintf(port, "%d", ntohs(own.sin_port)) < 0 || fclose(port);
}
"#;

#[test]
fn an_address_for_which_a_program_has_too_little_room_is_no_peer() {
    if !need::needs("a receiver of datagrams", &["gcc"]) {
        return;
    }
    let place = Place::new();
    place.write("rooms.c", SHORT_ROOMS);
    let built = place.command_line("gcc -o rooms rooms.c");
    assert_eq!(built.status, 0, "{built:?}");
    place.record("./rooms");
    let peers = place.run(&["peers"]).out;
    assert!(!peers.contains("127.9.9.9"), "{peers}");
    // The last one is whole.
    let port = std::fs::read_to_string(place.path("port")).unwrap();
    contact(&place, &format!("udp:127.0.0.1:{port}"));
}

#[test]
fn peers_are_listed_with_their_processes_and_the_outcome() {
    if !need::needs("a client", &["python3"]) {
        return;
    }
    let place = Place::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = closed.local_addr().unwrap().port();
    drop(closed);
    let answers = std::thread::spawn(move || {
        let (mut peer, _) = server.accept().unwrap();
        peer.write_all(b"answer").unwrap();
        let mut all = Vec::new();
        let _ = peer.read_to_end(&mut all);
    });
    place.write(
        "client.py",
        "import socket, sys\n\
         s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n\
         open('out', 'wb').write(s.recv(10))\n\
         s.close()\n\
         try: socket.create_connection(('127.0.0.1', int(sys.argv[2])))\n\
         except ConnectionRefusedError: pass\n\
         s = socket.socket()\n\
         s.setblocking(False)\n\
         s.connect_ex(('127.0.0.2', int(sys.argv[2])))\n\
         s.close()\n",
    );
    let line = format!("python3 client.py {port} {refused} http://example.org:{port}/x");
    place.record(&line);
    answers.join().unwrap();
    let peers = place.json(&["peers", "--json"]);
    let at = |port: u16| {
        let address = format!("tcp:127.0.0.1:{port}");
        let mut peers = peers.as_array().unwrap().iter();
        peers
            .find(|peer| peer["address"] == address.as_str())
            .cloned()
            .unwrap()
    };
    let good = at(port);
    assert_eq!(
        (&good["connected"], &good["received"]),
        (&true.into(), &true.into())
    );
    assert_eq!(
        (&good["role"], &good["bytes"]),
        (
            &"client".into(),
            &serde_json::json!({"sent": 0, "received": 6})
        )
    );
    assert_eq!(good["argv"][1], "client.py");
    assert_eq!(good["names"][0]["name"], "example.org");
    assert_eq!(good["names"][0]["from"], "arguments");
    let mut unknown = peers.as_array().unwrap().iter();
    let unknown = unknown.find(|peer| peer["address"] == format!("tcp:127.0.0.2:{refused}"));
    assert!(unknown.is_some_and(|peer| peer["connected"] != true && peer["sent"] == false));
    let bad = at(refused);
    assert_eq!(
        (&bad["connected"], &bad["errno"]),
        (&false.into(), &111.into())
    );
    let text = place.run(&["peers"]).out;
    assert!(
        text.contains("failed: Connection refused") && text.contains("example.org by its"),
        "{text}"
    );
    let uses = place.json(&["uses", &format!("tcp:127.0.0.1:{port}"), "--json"]);
    let mut nodes = uses["nodes"].as_array().unwrap().iter();
    assert!(
        nodes.any(|node| node["path"] == place.path("out").as_str()),
        "{uses}"
    );
    place
        .run(&["uses", "tcp:127.0.0.1:1"])
        .is_error(1, &["tcp:127.0.0.1:1"]);
}
