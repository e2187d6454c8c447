//! Any file is opened as a log, or refused.

use super::framed::repaired;
use super::place;
use backstory_eventlog::{Log, dump};

/// Reads the bytes as a log, as they are and with their checksums set right.
pub fn run(data: &[u8]) {
    read(data);
    read(&repaired(data));
}

fn read(bytes: &[u8]) {
    let path = place::file("log");
    std::fs::write(&path, bytes).expect("write");
    let Ok(log) = Log::open(&path) else { return };
    assert_eq!(log.len(), bytes.len());
    let damage = log.damage();
    assert!(damage.bytes <= bytes.len() as u64, "more damage than bytes");
    // A record has 32 bytes, and no record becomes more than one event.
    let (mut events, mut now) = (0, i64::MIN);
    for event in log.events() {
        assert!(event.time >= now, "time goes backwards");
        now = event.time;
        events += 1;
    }
    assert!(
        events <= bytes.len() / 32,
        "more events than there is room for"
    );
    let _ = log.identities();
    let mut text = Vec::new();
    dump(&log, &mut text).expect("memory");
    let text = String::from_utf8(text).expect("text");
    let raw = text.matches(|c: char| c.is_control() && c != '\n').next();
    assert_eq!(raw, None, "a control character goes to the terminal");
}
