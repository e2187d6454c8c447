//! Schemas and payloads of hostile origin, compared in a real worker.

use std::io::ErrorKind;
use std::net::TcpListener;

use backstory_inspection::judging::{JudgeProgram, JudgeTrouble, judge_by};
use serde_json::{Value, json};

use super::worker;

/// The verdicts about these payloads.
fn verdicts(schema: &Value, payloads: &[&str]) -> Result<Vec<Value>, JudgeTrouble> {
    let mut lines = format!("{}\n", json!({"schema": schema}));
    for (id, payload) in payloads.iter().enumerate() {
        lines += &format!("{}\n", json!({"id": id, "payload": payload}));
    }
    let answer = judge_by(&worker(), &JudgeProgram::Schemas, lines.as_bytes())?;
    let text = String::from_utf8(answer).unwrap();
    let verdicts = text.lines().map(|line| serde_json::from_str(line).unwrap());
    Ok(verdicts.collect())
}

/// The reason why the only payload was not compared.
fn unchecked(schema: &Value, payload: &str) -> String {
    let verdicts = verdicts(schema, &[payload]).unwrap();
    assert_eq!(verdicts[0]["unchecked"], true, "{verdicts:?}");
    verdicts[0]["error"].as_str().unwrap().to_owned()
}

#[test]
fn the_first_violation_names_its_place_and_each_payload_has_its_own_verdict() {
    let schema = json!({"properties": {"loss": {"type": "number"}}, "required": ["loss"]});
    let payloads = [r#"{"loss": 1}"#, r#"{"loss": "high"}"#, "{}", "{", "x"];
    let verdicts = verdicts(&schema, &payloads).unwrap();
    let why: Vec<&str> = verdicts
        .iter()
        .map(|one| one["error"].as_str().unwrap())
        .collect();
    assert_eq!(why[0], r#"/loss: "high" is not of type "number""#);
    assert_eq!(why[1], r#""loss" is a required property"#);
    assert!(why[2].contains("not JSON") && why[2].contains("cut at 4,000 bytes"));
    assert!(why[3].contains("not JSON") && !why[3].contains("cut"));
    assert_eq!(verdicts[0]["id"], 1);
}

#[test]
fn a_pattern_takes_time_in_proportion_to_the_text() {
    let text = json!("a".repeat(3000)).to_string();
    let verdicts = verdicts(&json!({"pattern": "^((a|a)+)+$"}), &[&text]);
    assert_eq!(verdicts.unwrap(), Vec::<Value>::new());
    for exponential in ["^((?=a)(a|a))+$x", "^(a+)+\\1$"] {
        let why = unchecked(&json!({"pattern": exponential}), &text);
        assert!(why.contains("cannot be used"), "{exponential}: {why}");
    }
}

#[test]
fn a_pattern_that_needs_much_memory_is_refused() {
    let why = unchecked(&json!({"pattern": "((a{1000}){1000}){1000}"}), "\"a\"");
    assert!(why.contains("cannot be used"), "{why}");
}

#[test]
fn a_comparison_that_takes_long_is_ended() {
    let known: Vec<Value> = (0..4000).map(|at| json!({"known": at})).collect();
    let schema = json!({"items": {"not": {"enum": known}}});
    let payload = json!(vec![json!({"known": -1}); 100_000]).to_string();
    let trouble = verdicts(&schema, &[&payload]).unwrap_err();
    assert!(matches!(trouble, JudgeTrouble::TooSlow(2)), "{trouble}");
}

#[test]
fn a_comparison_that_needs_much_memory_is_ended() {
    let twice = json!([{"$ref": "#"}, {"$ref": "#"}]);
    let schema = json!({"properties": {"a": {"allOf": twice}}});
    let payload = format!("{}1{}", r#"{"a":"#.repeat(60), "}".repeat(60));
    let trouble = verdicts(&schema, &[&payload]).unwrap_err().to_string();
    assert!(trouble.contains("(memory allocation of "), "{trouble}");
}

#[test]
fn a_schema_that_refers_to_itself_without_end_is_ended() {
    let schema = json!({"allOf": [{"$ref": "#"}]});
    let trouble = verdicts(&schema, &["1"]).unwrap_err().to_string();
    assert!(trouble.contains("stack overflow"), "{trouble}");
}

#[test]
fn a_schema_that_refers_to_an_address_or_a_file_fetches_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}/s.json", listener.local_addr().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("s.json");
    std::fs::write(&file, "true").unwrap();
    for other in [address, format!("file://{}", file.display())] {
        let why = unchecked(&json!({"$ref": other}), "1");
        assert!(why.contains("its own parts only"), "{why}");
    }
    let nobody = listener.accept().unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_payload_that_is_nested_deeply_is_not_checked() {
    let payload = "[".repeat(1900) + &"]".repeat(1900);
    let why = unchecked(&json!(true), &payload);
    assert_eq!(why, "it is nested more than 127 deep");
}

#[test]
fn a_violation_that_quotes_a_long_payload_is_cut() {
    let payload = json!("x".repeat(1 << 20)).to_string();
    let verdicts = verdicts(&json!({"type": "number"}), &[&payload]).unwrap();
    assert_eq!(verdicts[0]["error"].as_str().unwrap().chars().count(), 300);
}
