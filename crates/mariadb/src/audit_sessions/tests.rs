//! Tests of the sessions in the log of statements.

use super::*;
use crate::audit_line::AuditLine;

#[test]
fn statistics_that_the_server_reads_are_no_tables_of_a_locked_statement() {
    let mut sessions = AuditSessions {
        database: "bank".to_owned(),
        autocommit: true,
        ..AuditSessions::default()
    };
    let lines = [
        "READ,mysql,table_stats,",
        "QUERY,bank,'INSERT INTO target SELECT 1 FROM base',0",
    ];
    for (time, line) in (1..).zip(lines) {
        let text = format!("20261123 00:39:23,vm,root,localhost,11,32,{line}");
        sessions.take(&TimedLine {
            line: AuditLine::parse(text.as_bytes()).unwrap(),
            time,
            after: time,
        });
    }
    let statement = &sessions.units[&1].logged.statements[0];
    assert_eq!(statement.opened, None);
}
