//! Exchanges through a real ssh server, between two users.

use super::Place;
use backstory_testkit::ssh_server::SshServer;
use backstory_testkit::stage::Stage;
use backstory_testkit::user::User;
use std::fs;

/// A store of the user of the suite, who may be another one than the user of a [`Place`].
fn of_the_suite() -> Place {
    let stage = Stage::of(User::Myself, env!("CARGO_BIN_EXE_backstory").as_ref()).unwrap();
    stage.directory("work").unwrap();
    Place { stage }
}

/// The options that reach the program on the other side.
fn options(server: &SshServer, there: &Place) -> Vec<String> {
    let program = there.stage.path().join("bin/backstory");
    vec![
        "--ssh".into(),
        server.client(),
        "--remote-program".into(),
        program.display().to_string(),
    ]
}

#[test]
fn two_users_exchange_runs_over_ssh() {
    let (here, there) = (Place::new(), of_the_suite());
    let Some(server) = SshServer::start("an exchange over ssh", &here.stage).unwrap() else {
        return;
    };
    here.write_aged("in", "text to take along\n");
    here.keep("cat in > out", &["--contents=lazy"]);
    there.write_aged("other", "text of another user\n");
    there.keep("cat other > result", &["--contents=lazy"]);
    let address = format!("{}:{}", server.host(), there.store());
    let with = options(&server, &there);
    let exchange = |command: &str, address: &str| {
        let words = [&["store", command, address].map(str::to_owned)[..], &with].concat();
        here.run(&words)
    };
    let pushed = exchange("push", &address);
    assert_eq!((pushed.status, pushed.err.as_str()), (0, ""), "{pushed:?}");
    assert!(pushed.out.starts_with("pushed 1 run "), "{pushed:?}");
    let out = here.path("out");
    assert!(there.run(&["of", &out]).out.contains("cat in > out"));
    assert_eq!(there.run(&["contents", &out]).out, "text to take along\n");
    let pulled = exchange("pull", &address);
    assert_eq!((pulled.status, pulled.err.as_str()), (0, ""), "{pulled:?}");
    let result = there.path("result");
    assert_eq!(
        here.run(&["contents", &result]).out,
        "text of another user\n"
    );
    assert!(here.run(&["of", &result]).out.contains("cat other"));
    // A directory with blanks and quotes is one directory.
    let odd = format!(
        "{}/a b'c $(touch injected)",
        there.stage.path().join("work").display()
    );
    let pushed = exchange("push", &format!("{}:{odd}", server.host()));
    assert_eq!((pushed.status, pushed.err.as_str()), (0, ""), "{pushed:?}");
    assert!(fs::exists(format!("{odd}/runs")).unwrap());
}

#[test]
fn a_host_without_the_program_or_without_a_store_is_reported() {
    let (here, there) = (Place::new(), of_the_suite());
    let Some(server) =
        SshServer::start("an exchange with a host that lacks backstory", &here.stage).unwrap()
    else {
        return;
    };
    here.record("true");
    let (client, host) = (server.client(), server.host());
    let run = |program: &str, command: &str, directory: &str| {
        let address = format!("{host}:{directory}");
        here.run(&[
            "store",
            command,
            &address,
            "--ssh",
            &client,
            "--remote-program",
            program,
        ])
    };
    let absent = run("/no/such/backstory", "push", "x");
    assert_eq!(absent.status, 1, "{absent:?}");
    assert!(
        absent.err.contains("has no program '/no/such/backstory'"),
        "{absent:?}"
    );
    assert!(absent.err.contains("--remote-program"), "{absent:?}");
    let printing = run("/bin/echo", "push", "x");
    assert!(printing.err.contains("startup files"), "{printing:?}");
    let program = there
        .stage
        .path()
        .join("bin/backstory")
        .display()
        .to_string();
    let nowhere = run(&program, "pull", "/no/such/store");
    assert_eq!(nowhere.status, 1);
    assert!(
        nowhere.err.contains("there is no store at /no/such/store"),
        "{nowhere:?}"
    );
    drop(server);
    let gone = run(&program, "pull", "/no/such/store");
    assert!(gone.err.contains("ssh cannot reach"), "{gone:?}");
}

#[test]
#[ignore = "a server of its own, cut in the middle"]
fn an_ssh_connection_that_is_cut_in_the_middle_is_resumed() {
    use std::time::Duration;
    let (here, there) = (Place::new(), of_the_suite());
    let Some(server) = SshServer::start("a cut ssh connection", &here.stage).unwrap() else {
        return;
    };
    there.record("true");
    let line =
        "for n in $(seq 60); do head -c 1500000 /dev/urandom > f$n; done; cat f* | tail -c 9 > t";
    here.keep(line, &["--contents=lazy"]);
    let address = format!("{}:{}", server.host(), there.store());
    let with = options(&server, &there);
    let words = [
        &["store", "push", &address, "--json"].map(str::to_owned)[..],
        &with,
    ]
    .concat();
    let mut arrived = Vec::new();
    for attempt in 1..=6 {
        let mut child = here.command(&words);
        let mut child = child
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Each attempt gets further; none has a promised length.
        std::thread::sleep(Duration::from_millis(150 * attempt));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(there.run(&["store", "verify"]).status, 0);
        let stats = there.json(&["store", "stats", "--json"]);
        arrived.push(stats["contents"]["objects"].as_u64().unwrap_or(0));
    }
    assert!(arrived.is_sorted(), "{arrived:?}");
    let done = here.json(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let out = here.path("t");
    assert_eq!(
        there.run(&["contents", &out]).out,
        here.run(&["contents", &out]).out
    );
    assert!(done["contents"].as_u64().unwrap() <= 70, "{done}");
}
