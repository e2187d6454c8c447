//! With `record --remote`, ssh behaves as without: output, status, terminal, input. Nothing of it
//! is missing in the record, or the run says so.

use super::Answer;
use super::remote::TwoMachines;

/// Lines of a shell. `SSH` stands for ssh with the configuration of the server.
const LINES: &[&str] = &[
    "SSH box 'exit 7'",
    "SSH box 'kill -9 $$'",
    "SSH box no-such-command",
    "SSH box cat < data | cmp - data && echo same",
    "SSH box 'head -c 100; echo; cat >/dev/null' < data | wc -c",
    "printf '1\\n2\\n' | while read n; do SSH -n box echo $n; done",
    "printf '1\\n2\\n' | while read n; do SSH box 'echo first; cat'; done",
    "SSH box 'echo out; echo error >&2' 2>&1 >/dev/null",
    "SSH box printf '%s,' a 'b  c' '$0' \"'\" '\"'",
    r#"SSH box 'printf "%s|" "a b" '"'"'q u'"'"' \\ \" $((1+1)) ~ *'"#,
    "SSH -- box echo -n x",
    "SSH box -T echo after",
    "SSH -tt box 'test -t 0 && test -t 1 && echo terminal; stty size' < /dev/null",
    "SSH -V 2>&1",
    "SSH -G box | sort",
    "SSH -Z box true",
    "SSH box </dev/null >/dev/null",
    "SSH -s box no-such-subsystem </dev/null",
    "SSH -W 127.0.0.1:1 box </dev/null",
    "SSH -J box box echo jumped",
    "SSH -o ControlMaster=auto -o ControlPath=ctl -o ControlPersist=yes box 'echo master'; \
     SSH -S ctl box 'echo shared'; SSH -S ctl -O exit box 2>/dev/null; echo $?",
    "timeout -s TERM 3 SSH box 'sleep 60'",
    "SSH nowhere.invalid true",
    "SSH box 'env | grep -v ^SSH_ | sort'",
    "SSH box 'umask; ulimit -n; pwd; trap'",
    "SSH -f box 'sleep 0.2; echo late > LATE'; until test -s LATE; do sleep 0.05; done; cat LATE; rm LATE",
];

#[test]
fn ssh_does_exactly_what_it_does_alone() {
    let Some(both) = TwoMachines::installed("the behaviour of ssh") else {
        return;
    };
    let bytes: Vec<u8> = (0..200_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8)
        .collect();
    std::fs::write(both.here.work().join("data"), bytes).unwrap();
    let ssh = both.words("ssh");
    let mut different = Vec::new();
    for line in LINES {
        let line = line.replace("SSH", &ssh).replace("LATE", &both.far("late"));
        let mut bare = both.here.stage.command("/bin/sh");
        bare.current_dir(both.here.work()).args(["-c", &line]);
        let bare = Answer::of(bare.output().unwrap());
        let recorded = both.record(&line);
        let own = |line: &&str| !line.starts_with("backstory: the record of run");
        let err: Vec<&str> = recorded.err.lines().filter(own).collect();
        let bare_err: Vec<&str> = bare.err.lines().collect();
        if (recorded.status, &recorded.out, &err) != (bare.status, &bare.out, &bare_err) {
            different.push(format!("{line}\nalone: {bare:?}\nrecorded: {recorded:?}\n"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn mosh_is_refused_with_a_message() {
    let Some(both) = TwoMachines::new("mosh") else {
        return;
    };
    let done = both.record("mosh box");
    assert_eq!(done.status, 1, "{done:?}");
    assert!(done.err.contains("mosh is not recorded"), "{done:?}");
}

#[test]
fn without_the_real_ssh_the_command_is_not_found() {
    let Some(both) = TwoMachines::new("a path without ssh") else {
        return;
    };
    let done = both.record("PATH=${PATH%%:*}; ssh box true");
    assert_eq!(done.status, 127, "{done:?}");
    assert!(
        done.err.contains("ssh: no such command in PATH"),
        "{done:?}"
    );
}

#[test]
fn a_command_without_the_option_finds_no_wrapper() {
    let place = super::Place::new();
    let plain = place.run(&[
        "record",
        "--",
        "sh",
        "-c",
        "command -v ssh; env | grep -c REMOTE",
    ]);
    assert!(!plain.out.contains("remote"), "{plain:?}");
    assert!(plain.out.ends_with("0\n"), "{plain:?}");
}
