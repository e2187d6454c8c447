//! Exchanges with a store in a bucket.

use std::fs;

use backstory_testkit::ssh_server::make_key;

use super::Place;
use super::bucket_server::BucketServer;

const STORE: &str = "s3://team/runs";

/// Two runs that depend on each other.
fn two_runs(place: &Place) -> Vec<String> {
    place.write_aged("in", "text to take along\n");
    ["cat in > one", "cat one one > two"]
        .iter()
        .map(|line| place.keep(line, &["--contents=lazy"]))
        .collect()
}

#[test]
fn runs_that_pass_through_a_bucket_give_the_same_answers() {
    let Some(server) = BucketServer::start("exchanges with a bucket") else {
        return;
    };
    let (here, there) = (Place::new(), Place::new());
    let runs = two_runs(&here);
    let absent = server.store(&there, &["pull", STORE]);
    assert!(
        absent.err.contains("there is no store at s3://team/runs"),
        "{absent:?}"
    );
    let none = server.store(&here, &["push", "s3://no-such-bucket/runs"]);
    assert!(none.err.contains("NoSuchBucket"), "{none:?}");
    let rehearsed = server.store(&here, &["push", STORE, "--dry-run"]);
    assert!(
        rehearsed
            .err
            .contains("there is no store at s3://team/runs"),
        "{rehearsed:?}"
    );
    let pushed = server.store(&here, &["push", STORE]);
    assert_eq!((pushed.status, pushed.err.as_str()), (0, ""), "{pushed:?}");
    assert!(pushed.out.starts_with("pushed 2 runs and "), "{pushed:?}");
    let keys = server.keys();
    let again = server.store(&here, &["push", STORE]);
    assert!(
        again.out.starts_with("pushed 0 runs and 0 contents"),
        "{again:?}"
    );
    assert_eq!(server.keys(), keys, "a second push writes nothing");
    let pulled = server.store(&there, &["pull", STORE]);
    assert_eq!((pulled.status, pulled.err.as_str()), (0, ""), "{pulled:?}");
    let other = there.store();
    for question in [&["of", "two"][..], &["show", &runs[1]], &["uses", "in"]] {
        let there = here.run(&[&["--store", &other], question].concat()).out;
        assert_eq!(there, here.run(question).out, "{question:?}");
    }
    let two = here.path("two");
    assert_eq!(
        there.run(&["contents", &two]).out,
        here.run(&["contents", &two]).out
    );
    assert_eq!(there.run(&["store", "verify"]).status, 0);
    let third = Place::new();
    let one = server.store(&third, &["pull", STORE, "--run", &runs[0]]);
    assert!(one.out.starts_with("pulled 1 run "), "{one:?}");
    let refused = server.store(&third, &["pull", STORE, "--command", "cat*"]);
    assert!(
        refused.err.contains("a bucket has no database"),
        "{refused:?}"
    );
}

#[test]
fn annotations_of_two_stores_meet_in_a_bucket() {
    let Some(server) = BucketServer::start("annotations in a bucket") else {
        return;
    };
    let (here, there) = (Place::new(), Place::new());
    let runs = two_runs(&here);
    let exchange = |place: &Place, command: &str| {
        let answer = server.store(place, &[command, STORE]);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
        answer.out
    };
    exchange(&here, "push");
    exchange(&there, "pull");
    there.run(&["note", &runs[0], "from there"]);
    here.run(&["name", &runs[0], "first"]);
    exchange(&there, "push");
    exchange(&here, "push");
    exchange(&there, "pull");
    exchange(&here, "pull");
    assert_eq!(here.listed(), there.listed());
    for place in [&here, &there] {
        let shown = place.run(&["show", &runs[0]]).out;
        assert!(
            shown.contains("first") && shown.contains("from there"),
            "{shown}"
        );
    }
    let keys = server.keys();
    exchange(&here, "push");
    exchange(&there, "push");
    assert_eq!(server.keys(), keys, "both agree");
    let notes = keys
        .iter()
        .filter(|key| key.contains(&format!("{}/notes-", runs[0])));
    assert_eq!(notes.count(), 1, "{keys:?}");
}

/// Makes a `curl` that reaches nothing any more after `$LIMIT` calls.
const FAILING: &str = "#!/bin/sh\nd=$(dirname \"$0\"); echo >> \"$d/calls\"\n\
    if [ $(wc -l < \"$d/calls\") -gt $LIMIT ]; then url=http://127.0.0.1:9; \
    sed \"s#^url = \\\"http://[^/]*#url = \\\"$url#; s/^retry = .*/retry = 0/\" | exec /usr/bin/curl \"$@\"; fi\n\
    exec /usr/bin/curl \"$@\"\n";

#[test]
fn a_push_that_is_cut_anywhere_leaves_whole_runs_and_goes_on() {
    let Some(server) = BucketServer::start("cut exchanges with a bucket") else {
        return;
    };
    let here = Place::new();
    two_runs(&here);
    let mut cut = 0;
    for limit in 0.. {
        let failing = here.path("failing");
        let _ = fs::remove_dir_all(&failing);
        fs::create_dir(&failing).unwrap();
        here.write_program(
            "failing/curl",
            &FAILING.replace("$LIMIT", &limit.to_string()),
        );
        fs::set_permissions(
            &failing,
            std::os::unix::fs::PermissionsExt::from_mode(0o777),
        )
        .unwrap();
        let path = format!("{failing}:/usr/bin:/bin");
        let pushed = server.store_with(&here, &["push", STORE], &[("PATH", path)]);
        // Each listed run can be pulled whole.
        if server
            .keys()
            .iter()
            .any(|key| key.ends_with("backstory-store"))
        {
            let there = Place::new();
            let pulled = server.store(&there, &["pull", STORE]);
            assert_eq!(
                (pulled.status, pulled.err.as_str()),
                (0, ""),
                "after {limit}: {pulled:?}"
            );
            assert_eq!(there.run(&["store", "verify"]).status, 0);
        }
        if pushed.status == 0 {
            break;
        }
        assert!(
            pushed.err.contains("cannot be reached"),
            "{limit}: {pushed:?}"
        );
        cut += 1;
    }
    assert!(cut > 3, "{cut} pushes were cut");
    let there = Place::new();
    let pulled = server.store(&there, &["pull", STORE]);
    assert!(pulled.out.starts_with("pulled 2 runs "), "{pulled:?}");
}

#[test]
fn a_hostile_bucket_cannot_put_anything_else_into_a_store() {
    let Some(server) = BucketServer::start("a hostile bucket") else {
        return;
    };
    let (here, other) = (Place::new(), Place::new());
    let runs = two_runs(&here);
    assert_eq!(server.store(&here, &["push", STORE]).status, 0);
    let forged = other.path("forged");
    fs::write(&forged, "no archive").unwrap();
    let keys = server.keys();
    let of = |part: &str| keys.iter().find(|key| key.contains(part)).unwrap();
    let (log, second) = (
        of(&format!("{}/log-", runs[0])),
        of(&format!("{}/log-", runs[1])),
    );
    // The log of another run, bytes that are no archive, and a content under another digest.
    let pull = |place: &Place| server.store(place, &["pull", STORE]);
    server.put(log, forged.as_ref());
    let there = Place::new();
    let pulled = pull(&there);
    assert_eq!(pulled.status, 1, "{pulled:?}");
    assert!(
        pulled.err.contains(&format!("run {} is left out", runs[0])),
        "{pulled:?}"
    );
    assert!(pulled.out.starts_with("pulled 1 run "), "{pulled:?}");
    assert_eq!(there.run(&["store", "verify"]).status, 0);
    server.put(&second.replace(&runs[1], "aaaa0000"), forged.as_ref());
    let content = keys.iter().find(|key| key.contains("contents/")).unwrap();
    server.remove(content);
    let there = Place::new();
    let pulled = pull(&there);
    assert_eq!(pulled.status, 1, "{pulled:?}");
    assert_eq!(there.run(&["store", "verify"]).status, 0, "{pulled:?}");
    // Without a valid key nothing is read.
    let wrong = [("AWS_SECRET_ACCESS_KEY", "wrong".to_owned())];
    let refused = server.store_with(&there, &["pull", STORE], &wrong);
    assert_eq!(refused.status, 1);
    assert!(refused.err.contains("SignatureDoesNotMatch"), "{refused:?}");
}

#[test]
fn a_signature_travels_through_a_bucket() {
    let Some(server) = BucketServer::start("signatures in a bucket") else {
        return;
    };
    if !backstory_testkit::need::needs("signatures in a bucket", &["ssh-keygen"]) {
        return;
    }
    let (here, there) = (Place::new(), Place::new());
    two_runs(&here);
    let key = here.stage.path().join("work/key");
    make_key(&key).unwrap();
    here.stage.user().owns(&key).unwrap();
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    let signers = there.path("signers");
    fs::write(&signers, format!("ann@example.org {public}")).unwrap();
    assert_eq!(server.store(&here, &["push", STORE]).status, 0);
    let signed =
        |place: &Place| server.store(place, &["pull", STORE, "--allowed-signers", &signers]);
    let refused = signed(&there);
    assert!(refused.err.contains("it is not signed"), "{refused:?}");
    let key = key.display().to_string();
    let pushed = server.store(&here, &["push", STORE, "--sign", &key]);
    assert_eq!(pushed.status, 0, "{pushed:?}");
    let pulled = signed(&there);
    assert_eq!((pulled.status, pulled.err.as_str()), (0, ""), "{pulled:?}");
    assert!(pulled.out.starts_with("pulled 2 runs "), "{pulled:?}");
}

#[test]
fn a_bucket_that_cannot_be_used_is_reported_with_the_reason() {
    let place = Place::new();
    place.record("true");
    for (address, variables, reason) in [
        ("s3://T", &[][..], "is not the name of a bucket"),
        ("s3://team/a b", &[], "has other characters"),
        ("s3://team", &[], "there is no access key for the bucket"),
        (
            "s3://team",
            &[
                ("AWS_ACCESS_KEY_ID", "a"),
                ("AWS_SECRET_ACCESS_KEY", "b"),
                ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
            ],
            "127.0.0.1:9 cannot be reached",
        ),
    ] {
        let mut command = place.command(&["store", "push", address]);
        for name in ["AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_ENDPOINT_URL"] {
            command.env_remove(name);
        }
        let answer = super::Answer::of(command.envs(variables.iter().copied()).output().unwrap());
        assert_ne!(answer.status, 0, "{address}");
        assert!(answer.err.contains(reason), "{address}: {answer:?}");
    }
}
