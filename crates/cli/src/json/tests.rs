//! Tests of JSON as this program writes it.

use super::*;

fn text(value: impl Into<Value>) -> String {
    let mut out = Vec::new();
    value.into().write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn bytes_that_are_not_utf8_become_lone_surrogates() {
    assert_eq!(
        text(&b"a\xffb\xc3\xa4\xe2\x82"[..]),
        "\"a\\udcffb\u{e4}\\udce2\\udc82\""
    );
}

#[test]
fn quotes_and_control_characters_are_escaped() {
    assert_eq!(
        text("a\"b\\c\nd\x01\x7f\u{9b}"),
        "\"a\\\"b\\\\c\\nd\\u0001\\u007f\\u009b\""
    );
}

#[test]
fn a_utf8_encoded_surrogate_is_three_bytes_as_python_has_it() {
    assert_eq!(text(&b"\xed\xb3\xbf"[..]), "\"\\udced\\udcb3\\udcbf\"");
}

#[test]
fn json_without_surrogates_is_read_by_another_reader() {
    let value = Value::Object(vec![
        ("a", Value::array(["x", "\u{1f600}\"\u{7}"])),
        ("b", None::<i32>.into()),
        ("c", true.into()),
        ("t", Value::Time(1_700_000_000_000_000_001)),
    ]);
    let read: serde_json::Value = serde_json::from_str(&text(value)).unwrap();
    assert_eq!(read["a"][1], "\u{1f600}\"\u{7}");
    assert!(read["b"].is_null());
    assert!((read["t"].as_f64().unwrap() - 1_700_000_000.0).abs() < 1e-6);
}

#[test]
fn moments_before_1970_keep_their_sign() {
    assert_eq!(text(Value::Time(-1)), "-0.000000001");
    assert_eq!(text(Value::Time(Time::MIN)), "-9223372036.854775808");
    assert_eq!(text(Value::Time(7_000_000_090)), "7.000000090");
}

#[test]
fn numbers_of_any_size_are_written_in_full() {
    assert_eq!(text(u64::MAX), u64::MAX.to_string());
    assert_eq!(text(i64::MIN), i64::MIN.to_string());
    assert_eq!(text(0u32), "0");
}

#[test]
fn json_written_field_by_field_equals_a_serialized_value() {
    let value = Value::Object(vec![
        ("n", u64::MAX.into()),
        ("t", Value::Time(-1_500_000_000)),
        ("b", b"a\"\xff\n".as_slice().into()),
        ("none", Value::Null),
        ("list", Value::array(["x", "\u{e4}"])),
        ("yes", true.into()),
        ("o", Value::Object(vec![("k", 1u32.into())])),
    ]);
    let mut built = Vec::new();
    lines(&mut built, [value.clone(), value]).unwrap();
    let mut written = Vec::new();
    objects(&mut written, [(), ()], |(), fields| {
        fields.number("n", u64::MAX);
        fields.time("t", -1_500_000_000);
        fields.bytes("b", Some(b"a\"\xff\n"));
        fields.bytes("none", None::<&[u8]>);
        fields.list("list", &["x", "\u{e4}"]);
        fields.bool("yes", true);
        fields.object("o", |fields| fields.number("k", 1));
    })
    .unwrap();
    assert_eq!(written, built);
    let (mut none, mut empty) = (Vec::new(), Vec::new());
    lines(&mut none, []).unwrap();
    objects(&mut empty, [], |(), _| {}).unwrap();
    assert_eq!(none, empty);
}

#[test]
fn an_empty_answer_is_an_empty_array() {
    let mut out = Vec::new();
    lines(&mut out, []).unwrap();
    assert_eq!(out, b"[]\n");
}
