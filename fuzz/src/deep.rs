//! Any file is opened as a deep log, or refused.

use super::framed::repaired;
use super::place;
use backstory_deep::DeepLog;
use backstory_reconstruct::RecordedRun;

/// Reads the bytes as a deep log, as they are and with their checksums set right.
pub fn run(data: &[u8]) {
    read(data);
    read(&repaired(data));
}

fn read(bytes: &[u8]) {
    let path = place::file("deep");
    std::fs::write(&path, bytes).expect("write");
    let Ok(log) = DeepLog::open(&path) else {
        return;
    };
    assert_eq!(log.len(), bytes.len());
    assert!(
        log.damage().bytes <= bytes.len() as u64,
        "more damage than bytes"
    );
    for process in log.processes() {
        for tid in &process.tids {
            for call in log.thread_calls(process.epoch, *tid) {
                let _ = (
                    call.content_in(),
                    call.content_out(),
                    log.time_of(call.time),
                );
            }
        }
    }
    let requests = log.requests();
    let mut last = 0;
    for request in &requests {
        assert!(request.began >= last, "requests are not in order");
        assert!(
            request.ended >= request.began,
            "a request ends before it begins"
        );
        last = request.began;
    }
    assert_eq!(
        requests,
        log.walk_requests(|_, _, _| {}),
        "two walks differ"
    );
    let _ = (log.programs(), log.has_text(b"text"));
    let mut run = RecordedRun::load(&log);
    for wanted in 1..=requests.len().min(4) {
        let _ = backstory_reconstruct::request::choose(&mut run, wanted, &[], 0);
    }
}
