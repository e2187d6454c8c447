//! Machines without shared memory, a home directory, or space on the disk.

use super::Place;

/// A line that reads, writes and starts programs, and its name for what it wrote.
const LINE: &str = "cat in | sort >out; exit 3";

/// Records the line after `before` in namespaces of its own, and asserts that all of it was seen.
fn is_recorded_after(what: &str, before: &str) {
    let place = Place::new();
    place.write("in", "text\n");
    let line = format!("{before}; exec $B record -- sh -c '{LINE}'");
    let Some(answer) = place.shell_in_namespaces(what, &line) else {
        return;
    };
    assert_eq!(
        (answer.status, answer.out.as_str(), answer.err.as_str()),
        (3, "", ""),
        "{what}"
    );
    let json = place.json(&["show", "--json"]);
    assert_eq!(
        (&json["complete"], &json["lost"]),
        (&true.into(), &0.into()),
        "{what}: {json}"
    );
    assert!(place.wrote("out"), "{what}");
    assert!(place.run(&["of", "out"]).out.contains("sort"), "{what}");
}

#[test]
fn shared_memory_that_cannot_be_written_is_done_without() {
    is_recorded_after("read-only /dev/shm", "mount -t tmpfs -o ro none /dev/shm");
}

#[test]
fn without_any_dev_it_works() {
    is_recorded_after("an empty /dev", "mount -t tmpfs none /dev");
}

#[test]
fn shared_memory_without_room_is_done_without() {
    is_recorded_after("a full /dev/shm", "mount -t tmpfs -o size=4k none /dev/shm");
}

#[test]
fn without_proc_it_works() {
    is_recorded_after("an empty /proc", "mount -t tmpfs none /proc");
}

#[test]
fn without_home_a_store_option_suffices() {
    let place = Place::new();
    place.write("in", "text\n");
    let answer = place.shell(&format!("unset HOME; exec $B record -- sh -c '{LINE}'"));
    assert_eq!((answer.status, answer.err.as_str()), (3, ""), "{answer:?}");
    assert!(place.wrote("out"));
    let xdg = "unset HOME BACKSTORY_STORE; XDG_DATA_HOME=$PWD/data; export XDG_DATA_HOME; $B record -- true && $B log";
    let answer = place.shell(xdg);
    assert!(
        answer.status == 0 && answer.out.contains("true"),
        "{answer:?}"
    );
    assert!(place.work().join("data/backstory").is_dir());
}

#[test]
fn an_unwritable_home_is_an_error_that_names_the_option() {
    let place = Place::new();
    let line = "mkdir home; chmod a-w home; unset BACKSTORY_STORE; export HOME=$PWD/home; exec $B record -- touch ran";
    place
        .shell(line)
        .is_error(125, &["home/.local", "Permission denied"]);
    assert!(!place.work().join("ran").exists());
}

#[test]
fn a_disk_that_fills_up_costs_the_record_and_not_the_command() {
    let place = Place::new();
    place.write("in", "text\n");
    // Space for the recorder's library and the command's own file, but too little for the log.
    let line = "mkdir full; mount -t tmpfs -o size=160k none $PWD/full || exit 9; i=0; \
                $B record --store full/s -- sh -c 'while [ $((i+=1)) -lt 400 ]; do cat in >out; done; wc -c <out; exit 3'; echo $?; \
                $B show --store full/s --json; echo $?; \
                mount -o remount,size=40M none $PWD/full && $B show --store full/s --json";
    let Some(answer) = place.shell_in_namespaces("a full disk", line) else {
        return;
    };
    let mut lines = answer.out.lines();
    assert_eq!(
        (lines.next(), lines.next()),
        (Some("5"), Some("3")),
        "{answer:?}"
    );
    // A question without space on the disk reports that. A later one with space gives the true
    // answer.
    assert_eq!(lines.next(), Some("1"), "{answer:?}");
    let json: serde_json::Value = serde_json::from_str(&lines.collect::<String>()).unwrap();
    assert_eq!(
        (&json["exit"], &json["complete"]),
        (&3.into(), &false.into()),
        "{json}"
    );
    assert!(json["lost"].as_u64().unwrap() > 0, "{json}");
    let mut errors = answer.err.lines();
    for words in [
        ["No space left", "not complete"],
        ["no space left", "graph.db"],
    ] {
        let error = errors.next().unwrap_or_default();
        assert!(words.iter().all(|word| error.contains(word)), "{answer:?}");
    }
    assert_eq!(errors.next(), None, "{answer:?}");
}

#[test]
fn a_disk_that_is_full_before_the_command_is_an_error() {
    let place = Place::new();
    let line = "mkdir full; mount -t tmpfs -o size=4k none $PWD/full || exit 9; head -c 4096 /dev/zero >full/x; \
                exec $B record --store full/s -- touch ran";
    let Some(answer) = place.shell_in_namespaces("a full disk", line) else {
        return;
    };
    answer.is_error(125, &["full/s", "No space left"]);
    assert!(!place.work().join("ran").exists());
}

#[test]
fn a_disk_without_room_for_the_index_keeps_the_log_until_there_is() {
    let place = Place::new();
    let line = "mkdir full; mount -t tmpfs -o size=180k none $PWD/full || exit 9; \
                $B record --store full/s -- sh -c 'echo x >out; exit 3'; echo $?; \
                $B log --store full/s; echo $?; ls full/s/runs | grep -c log$; \
                mount -o remount,size=40M none $PWD/full && $B show --store full/s --json";
    let Some(answer) = place.shell_in_namespaces("a full disk", line) else {
        return;
    };
    let mut lines = answer.out.lines();
    assert_eq!(
        [lines.next(), lines.next(), lines.next()],
        [Some("3"), Some("1"), Some("1")],
        "{answer:?}"
    );
    let json: serde_json::Value = serde_json::from_str(&lines.collect::<String>()).unwrap();
    assert_eq!(
        (&json["exit"], &json["complete"]),
        (&3.into(), &true.into()),
        "{json}"
    );
}
