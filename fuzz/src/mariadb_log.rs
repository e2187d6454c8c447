//! The log of the plug-in `server_audit` of MariaDB, as a full disk or an attacker left it. The
//! server then writes one more line.

use backstory_mariadb::fuzz_entry::audit_log;

/// The end of a connection.
const LINE: &[u8] = b"20261122 18:55:35,vm,root,localhost,8,0,DISCONNECT,bank,,0";

/// Reads the log.
pub fn run(data: &[u8]) {
    let whole = [data, b"\n", LINE].concat();
    let lines = || whole.split(|byte| *byte == b'\n');
    let read = audit_log(lines());
    let count = lines().count() as u64;
    assert_eq!(read.lines + read.unreadable, count, "a line is lost");
    assert!(read.lines > 0, "a damage has no end");
    assert!(read.statements as u64 <= read.lines, "a statement is new");
}
