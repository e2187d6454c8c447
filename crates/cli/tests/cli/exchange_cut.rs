//! Exchanges that are interrupted, and go on when they are repeated.

use super::Place;
use backstory_testkit::need::needs;
use std::fs;

/// A store with runs whose contents need several batches. Returns the number of contents.
fn many_contents(place: &Place, files: usize) -> u64 {
    let line = format!(
        "for n in $(seq {files}); do head -c 1500000 /dev/urandom > f$n; done; cat f* | tail -c 9 > t"
    );
    place.keep(&line, &["--contents=lazy"]);
    place.keep("cat t > u", &["--contents=lazy"]);
    let nowhere = Place::new();
    nowhere.record("true");
    let store = nowhere.store();
    place.exchanged("push", &[&store, "--dry-run"])["contents"]
        .as_u64()
        .unwrap()
}

/// Passes `$LIMIT` bytes to the other side as they come, then ends its input.
const CUT_SENT: &str = "perl -e '$n = $LIMIT; \
    while ($n > 0 && ($r = sysread STDIN, $b, $n < 65536 ? $n : 65536)) \
    { syswrite STDOUT, $b; $n -= $r }' | sh -c \"$4\"";

/// Passes `$LIMIT` bytes of the other side on as they come, then is killed, as a lost `ssh` is. No
/// other process has its output.
const CUT_RECEIVED: &str = "exec perl -e '$n = $LIMIT; open F, \"-|\", \"sh\", \"-c\", $ARGV[0]; \
    while ($n > 0 && ($r = sysread F, $b, $n < 65536 ? $n : 65536)) \
    { syswrite STDOUT, $b; $n -= $r } kill 9, $$' \"$4\"";

#[test]
fn a_cut_connection_leaves_whole_runs_and_the_next_exchange_goes_on() {
    if !needs("cut connections", &["perl"]) {
        return;
    }
    let here = Place::new();
    let all = many_contents(&here, 24);
    for (command, line) in [("push", CUT_SENT), ("pull", CUT_RECEIVED)] {
        let there = Place::new();
        there.record("true");
        // The side whose output is cut sends the runs.
        let (own, other) = match command {
            "push" => (&here, &there),
            _ => (&there, &here),
        };
        let receiver = &there;
        let address = format!("host:{}", other.store());
        let program = own.program();
        let args =
            |ssh: &str| ["--ssh", ssh, "--remote-program", &program, &address].map(str::to_owned);
        let mut arrived = Vec::new();
        for limit in [0, 20, 300, 5_000, 17_500_000, 17_500_000] {
            let ssh = own.ssh(&line.replace("$LIMIT", &limit.to_string()));
            let words = [&["store", command].map(str::to_owned)[..], &args(&ssh)].concat();
            let answer = own.run(&words);
            assert_eq!(
                (answer.status, answer.out.as_str()),
                (1, ""),
                "{limit}: {answer:?}"
            );
            assert!(
                answer.err.starts_with("backstory: no exchange with host:"),
                "{answer:?}"
            );
            assert_eq!(
                receiver.run(&["store", "verify"]).status,
                0,
                "cut at {limit}"
            );
            assert!(receiver.json(&["log", "--json"]).as_array().unwrap().len() <= 2);
            arrived.push(receiver.json(&["store", "stats", "--json"])["contents"].clone());
            let names = fs::read_dir(receiver.stage.store().join("runs")).unwrap();
            let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            assert!(
                names.all(|name| !name.starts_with("incoming.")),
                "cut at {limit}"
            );
        }
        let ssh = own.ssh("exec sh -c \"$4\"");
        let words = args(&ssh);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let done = own.exchanged(command, &words);
        let rest = done["contents"].as_u64().unwrap();
        // 17.5 MB each carried one batch of eleven contents of 1.5 MB.
        assert!(rest > 0 && rest <= all - 20, "{command}: {rest} of {all}");
        // A run whose contents were complete may have arrived before the cut.
        let runs = done["runs"].as_array().unwrap().len() as u64;
        assert_eq!(runs + done["known"].as_u64().unwrap(), 2, "{done}");
        assert_eq!(receiver.run(&["store", "verify"]).status, 0);
    }
}

#[test]
fn an_exchange_may_be_killed_at_any_change() {
    if !needs("kills while runs are exchanged", &["strace"]) {
        return;
    }
    let here = Place::new();
    here.write_aged("in", "as it was read\n");
    here.keep(
        "cat in > out; head -c 600000 /dev/zero > large",
        &["--contents=lazy"],
    );
    for command in ["push", "pull"] {
        let there = Place::new();
        there.record("true");
        there.run(&["index", "--wait"]);
        let (own, other) = match command {
            "push" => (&here, &there),
            _ => (&there, &here),
        };
        let calls = "write,fsync,fdatasync,rename,unlink,ftruncate,flock,openat";
        for at in (1..=160).step_by(7) {
            own.kill_in(calls, at, &["store", command, &other.store()]);
            let verified = there.run(&["store", "verify"]);
            assert_eq!(verified.status, 0, "{command} killed at {at}: {verified:?}");
            let known = there.json(&["log", "--json"]).as_array().unwrap().len();
            assert!(known <= 2, "{command} killed at {at}: {known}");
        }
        own.exchanged(command, &[&other.store()]);
        let out = here.path("out");
        assert_eq!(there.run(&["contents", &out]).out, "as it was read\n");
        there.run(&["store", "gc"]);
        let left = fs::read_dir(there.stage.store().join("runs")).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> = left.filter(|name| name.starts_with("incoming.")).collect();
        assert_eq!(left, Vec::<String>::new(), "{command}");
    }
}

#[test]
fn a_full_disk_on_the_other_side_leaves_whole_runs_there() {
    let place = Place::new();
    many_contents(&place, 12);
    // A namespace of its own, so that the disk is gone afterwards.
    let line = "mkdir -p small; mount -t tmpfs -o size=14m,mode=700 none $PWD/small || exit 9; \
         $B store push small; echo status $?; $B --store small store verify; \
         mount -o remount,size=60m none $PWD/small; $B store push small; $B --store small store verify";
    let Some(answer) = place.shell_in_namespaces("a full disk on the other side", line) else {
        return;
    };
    let text = format!("{answer:?}");
    assert!(text.contains("status 1"), "{text}");
    assert!(
        text.contains("is left out: the other side reports"),
        "{text}"
    );
    assert!(text.contains("database and the logs of 2 runs"), "{text}");
    assert_eq!(text.matches("all contents are intact").count(), 2, "{text}");
}
