//! Seals with time stamps of a local authority: `openssl ts` behind a loopback server.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use backstory_testkit::need::needs;

use super::Place;

/// The configuration of the authority. `DIR` is its directory.
const CONFIGURATION: &str = "
[tsa]
default_tsa = it
[it]
dir = DIR
serial = DIR/serial
crypto_device = builtin
signer_cert = DIR/tsa.pem
signer_key = DIR/tsa.key
certs = DIR/ca.pem
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
[stamping]
extendedKeyUsage = critical,timeStamping
";

/// A time-stamping authority with a certificate of its own.
struct Authority {
    directory: PathBuf,
}

impl Authority {
    fn new(directory: &Path) -> Authority {
        fs::create_dir(directory).unwrap();
        let it = Authority {
            directory: directory.to_owned(),
        };
        let text = CONFIGURATION.replace("DIR", directory.to_str().unwrap());
        fs::write(directory.join("conf"), text).unwrap();
        fs::write(directory.join("serial"), "01\n").unwrap();
        it.openssl(
            "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=ca -days 2",
        );
        it.openssl("req -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.csr -subj /CN=tsa");
        it.openssl(
            "x509 -req -in tsa.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out tsa.pem -days 2 -extfile conf -extensions stamping",
        );
        it
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        let done = command
            .args(arguments.split(' '))
            .current_dir(&self.directory)
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments}: {done:?}");
    }

    /// The reply to a request.
    fn reply(&self, query: &[u8]) -> Vec<u8> {
        fs::write(self.directory.join("query"), query).unwrap();
        self.openssl("ts -reply -config conf -queryfile query -out reply");
        fs::read(self.directory.join("reply")).unwrap()
    }

    /// Answers requests over HTTP until the process ends. Returns the address.
    fn serve(self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let query = body(&mut connection);
                let reply = self.reply(&query);
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/timestamp-reply\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    reply.len()
                );
                connection.write_all(head.as_bytes()).unwrap();
                connection.write_all(&reply).unwrap();
            }
        });
        address
    }
}

/// The body of a request.
fn body(connection: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut one = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        connection.read_exact(&mut one).unwrap();
        bytes.push(one[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap();
    let length = length.split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    connection.read_exact(&mut body).unwrap();
    body
}

/// A pair of keys below the directory of work: the paths of the private and the public one.
pub(super) fn pair(place: &Place, name: &str) -> [String; 2] {
    let keys = tempfile::tempdir().unwrap();
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        let done = command.args(arguments.split(' ')).current_dir(&keys);
        let done = done.output().unwrap();
        assert!(done.status.success(), "{arguments}: {done:?}");
    };
    openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem");
    openssl("pkey -in key.pem -pubout -out pub.pem");
    ["key.pem", "pub.pem"].map(|file| {
        let text = fs::read_to_string(keys.path().join(file)).unwrap();
        let copy = format!("{name}-{file}");
        place.write(&copy, &text);
        copy
    })
}

#[test]
fn a_bundle_of_sigstore_is_verified_with_its_key_and_time_stamp() {
    if !needs("bundles", &["openssl", "curl"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.keep("cat in > one", &["--contents=lazy"]);
    let [key, public] = pair(&place, "own");
    let [_, other] = pair(&place, "other");
    let keys = tempfile::tempdir().unwrap();
    let authority = Authority::new(&keys.path().join("tsa"));
    let certificates = fs::read_to_string(authority.directory.join("ca.pem")).unwrap();
    place.write("ca.pem", &certificates);
    let address = authority.serve();
    let export = |format: &str, more: &[&str]| {
        let export = [
            "export",
            format,
            "one",
            "--sigstore-key",
            &key,
            "-o",
            "b.json",
        ];
        place.run(&[&export, more].concat())
    };
    export("prov-json", &[]).is_error(2, &["prov-json is no attestation", "in-toto"]);
    let verify = |key: &str, more: &[&str]| {
        let verify = [
            "store",
            "verify",
            "--evidence",
            "b.json",
            "--sigstore-key",
            key,
        ];
        place.run(&[&verify, more].concat())
    };
    let trusted = ["--tsa-certificates", "ca.pem"];
    assert_eq!(export("in-toto", &[]).status, 0);
    let good = verify(&public, &[]);
    assert_eq!((good.status, good.err.as_str()), (0, ""), "{good:?}");
    assert!(good.out.contains("none of its runs is sealed"), "{good:?}");
    let head = format!("1:{}", "0".repeat(64));
    for asked in [["--signers", "ca.pem"], ["--expect", &head]] {
        verify(&public, &asked).is_error(1, &["b.json carries no seal"]);
    }
    verify(&other, &[]).is_error(1, &["its signature is not one of the key"]);
    verify(&key, &[]).is_error(1, &["own-key.pem is no public key"]);
    verify("none.pem", &[]).is_error(1, &["none.pem", "No such file"]);
    verify(&public, &trusted).is_error(1, &["its time stamp is missing"]);
    let unnamed = place.run(&["store", "verify", "--evidence", "b.json"]);
    unnamed.is_error(2, &["--sigstore-key"]);
    assert_eq!(place.run(&["store", "seal", "--all"]).status, 0);
    assert_eq!(export("in-toto", &["--tsa", &address]).status, 0);
    let sealed = verify(&public, &[]);
    assert!(
        sealed.out.contains("valid seals of 1 run cover"),
        "{sealed:?}"
    );
    // The seal has no time stamp, and the bundle has one.
    let stamped = verify(&public, &trusted);
    assert!(
        stamped.out.contains("its time stamp is missing"),
        "{stamped:?}"
    );
    let bundle = fs::read_to_string(place.path("b.json")).unwrap();
    for member in ["payload\":\"", "sig\":\"", "signedTimestamp\":\""] {
        let at = bundle.find(member).unwrap() + member.len() + 200.min(bundle.len() / 8) / 4;
        let letter = if &bundle[at..=at] == "A" { "B" } else { "A" };
        let changed = format!("{}{letter}{}", &bundle[..at], &bundle[at + 1..]);
        place.write("b.json", &changed);
        verify(&public, &trusted).is_error(1, &["b.json: its "]);
    }
}

#[test]
fn a_time_stamp_is_of_the_statement_and_of_a_trusted_authority() {
    if !needs("time stamps", &["openssl", "curl"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.keep("cat in > one", &["--contents=lazy"]);
    let keys = tempfile::tempdir().unwrap();
    let authority = Authority::new(&keys.path().join("tsa"));
    let stranger = Authority::new(&keys.path().join("stranger"));
    let trusted = place.path("ca.pem");
    fs::copy(authority.directory.join("ca.pem"), &trusted).unwrap();
    fs::copy(stranger.directory.join("ca.pem"), place.path("other.pem")).unwrap();
    for name in ["ca.pem", "other.pem"] {
        place.stage.user().owns(place.path(name).as_ref()).unwrap();
    }
    let address = authority.serve();
    // An authority that cannot be reached: nothing is sealed.
    let failed = place.run(&["store", "seal", "--all", "--tsa", "http://127.0.0.1:1/"]);
    failed.is_error(1, &["http://127.0.0.1:1/", "gives no time stamp"]);
    let sealed = place.run(&["store", "seal", "--all", "--tsa", &address]);
    assert_eq!(sealed.status, 0, "{sealed:?}");
    let verify = |certificates: &str| {
        place.run(&[
            "store",
            "verify",
            "--evidence",
            "--tsa-certificates",
            certificates,
        ])
    };
    let good = verify(&trusted);
    assert_eq!(good.status, 0, "{good:?}");
    let wrong = verify(&place.path("other.pem"));
    assert_eq!(wrong.status, 1, "{wrong:?}");
    assert!(wrong.out.contains("time stamp: is not valid"), "{wrong:?}");
    // A later seal without a stamp could be of any time.
    place.keep("cat in > two", &["--contents=lazy"]);
    assert_eq!(place.run(&["store", "seal", "--all"]).status, 0);
    let lacks = verify(&trusted);
    assert_eq!(lacks.status, 1, "{lacks:?}");
    assert!(lacks.out.contains("time stamp: is missing"), "{lacks:?}");
    let again = place.run(&["store", "seal", "--all", "--again", "--tsa", &address]);
    assert_eq!(again.status, 0, "{again:?}");
    let later = verify(&trusted);
    assert_eq!(later.status, 0, "later stamps count: {later:?}");
    let stamps = fs::read_dir(place.stage.store().join("evidence")).unwrap();
    let mut stamps = stamps.map(|entry| entry.unwrap().path());
    let stamp = stamps.find(|path| path.extension().is_some_and(|end| end == "tsr"));
    let stamp = stamp.unwrap();
    let bytes = fs::read(&stamp).unwrap();
    for at in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 5] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&stamp, changed).unwrap();
        // Also without certificates: the head of the chain names the seal with its stamp.
        let found = place.run(&["store", "verify", "--evidence"]);
        assert_eq!(found.status, 1, "byte {at}: {found:?}");
    }
    fs::remove_file(&stamp).unwrap();
    assert!(verify(&trusted).out.contains("time stamp: is gone"));
}
