//! The place of a signal in the stream of its thread.

use crate::deep::bytes::deep_log;
use crate::harness::Run;
use backstory_abi::deep;
use backstory_deep::Call;

#[test]
fn a_signal_stands_between_the_calls_before_and_after_its_handler() {
    const USR1: i64 = 10;
    let run = Run::new(&["--deep", "full"]);
    let script = "trap 'echo handled' USR1; echo before; kill -USR1 $$; echo after";
    let ended = run.shell(script);
    let said = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(said, "before\nhandled\nafter\n");
    run.log();
    let log = deep_log(&run);
    let calls: Vec<Call> = log.process_calls(log.processes()[0].epoch).collect();
    let fact = |number: u16| {
        let mut all = calls.iter();
        all.position(|call| (call.number, call.result) == (number, USR1))
    };
    let written = |text: &[u8]| {
        let mut all = calls.iter();
        all.position(|call| call.section(deep::LEFT, 1) == Some(text))
    };
    // The shell's own handler ends before the command of the trap runs.
    let order = [
        written(b"before\n"),
        fact(deep::SIGNAL),
        fact(deep::SIGNAL_END),
        written(b"handled\n"),
        written(b"after\n"),
    ];
    assert!(order.iter().all(Option::is_some), "{order:?}");
    assert!(order.is_sorted(), "{order:?}");
}
