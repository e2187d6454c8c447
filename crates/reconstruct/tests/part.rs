//! The time that an execution of a part of the record has reached.

use backstory_reconstruct::input::InputItem;
use backstory_reconstruct::matcher::ProcessMatcher;
use backstory_reconstruct::process::{CallObject, RecordedProcess, RecordedResult, ResultKey};

/// The number of `fstat`.
const STATUS: u16 = 5;

/// Random bytes between two statuses of one file.
fn between_two_statuses() -> (RecordedProcess, ResultKey) {
    let key = ResultKey {
        call: STATUS,
        object: CallObject::Path(b"/settings".to_vec()),
        detail: 0,
    };
    let mut process = RecordedProcess {
        is_part: true,
        ..RecordedProcess::default()
    };
    let statuses = [10, 30, 50].map(|time| (RecordedResult::default(), time));
    process.results.insert(key.clone(), statuses.into());
    for (bytes, time) in [(b"some", 20), (b"more", 40)] {
        process
            .random
            .push_at(InputItem::Bytes(bytes.to_vec()), time);
        process.random_requests.push_back(((4, 0), time));
    }
    (process, key)
}

#[test]
fn a_question_that_was_not_recorded_leaves_out_nothing() {
    let (process, key) = between_two_statuses();
    let mut matcher = ProcessMatcher::new(process);
    // libc asks for the second one by itself.
    assert!(matcher.result(&key).is_some() && matcher.result(&key).is_some());
    assert_eq!(matcher.random(4, 0), Some(b"some".to_vec()));
}
