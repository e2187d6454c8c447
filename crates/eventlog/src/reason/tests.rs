//! Tests of the reasons' sentences.

use super::*;

#[test]
fn sentences_name_their_objects() {
    let path = "/x".to_owned();
    let finalized = Reason::NotFinalized {
        path,
        error: "no".into(),
    };
    assert_eq!(
        finalized.to_string(),
        "cannot finalize the log /x: no; the next command that may write the store does it"
    );
    assert_eq!(
        Reason::detached(1).to_string(),
        "1 process was still running when recording stopped"
    );
    assert_eq!(finalized.name(), "NotFinalized");
}

#[test]
fn a_gap_in_statements_is_known_by_the_sentence_of_any_version() {
    let gap = "the record of the database has a gap:";
    let former = [
        format!("{gap} 3 statements cannot be parsed, so the tables that they name are unknown"),
        format!(
            "{gap} 1 statements cannot be parsed, so the tables that they use are possible at most"
        ),
        format!(
            "{gap} 1 statement cannot be parsed, so the tables that it uses are possible at most"
        ),
    ];
    for sentence in &former {
        assert!(hides_no_row(sentence), "{sentence}");
    }
    for count in [1, 2] {
        assert!(hides_no_row(&Reason::unparsed(count).to_string()));
    }
    assert_eq!(Reason::unparsed(1).to_string(), former[2]);
    let what = "row changes are unknown, because a function cannot be parsed, so the tables that";
    let lost = Reason::DatabaseGap { what: what.into() };
    for other in [&*lost.to_string(), gap, ""] {
        assert!(!hides_no_row(other), "{other}");
    }
}

#[test]
fn the_memory_of_another_process_is_opened_by_its_number_and_for_writing() {
    for path in ["/proc/7/mem", "/proc/71/task/72/mem"] {
        assert!(opens_memory(path.as_bytes(), 1) && opens_memory(path.as_bytes(), 2));
        assert!(!opens_memory(path.as_bytes(), 0), "{path} is only read");
    }
    for path in [
        "/proc/self/mem",
        "/proc/7/maps",
        "/proc/7/fd/mem",
        "/proc//mem",
        "/x/7/mem",
    ] {
        assert!(!opens_memory(path.as_bytes(), 2), "{path}");
    }
}

#[test]
fn every_name_and_sentence_is_there_once() {
    let mut sentences: Vec<&str> = ROWS.iter().map(|row| row.sentence).collect();
    sentences.extend(UNDECODED.iter().map(|of| of.0));
    let all = sentences.len();
    sentences.sort_unstable();
    sentences.dedup();
    assert_eq!(sentences.len(), all);
}
