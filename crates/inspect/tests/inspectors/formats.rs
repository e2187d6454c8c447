//! Inspectors and the formats' own tools report the same facts.

use serde_json::{Map, Value, json};

use super::{Samples, ask};

/// Facts that are derived from the answer, for readers that say it in another form.
fn derived(facts: &Map<String, Value>, name: &str) -> Value {
    let list = |name: &str| facts[name].as_array().cloned().unwrap_or_default();
    let pairs = |list: Vec<Value>, field: &str| -> Value {
        let named = list.iter().filter(|one| !one[field].is_null());
        let pairs = named.map(|one| (one["name"].as_str().unwrap().to_owned(), one[field].clone()));
        Value::Object(pairs.collect())
    };
    match name {
        "sizes" => pairs(list("members"), "size"),
        "missing" => pairs(list("columns"), "missing"),
        "minima" => pairs(list("columns"), "min"),
        "maxima" => pairs(list("columns"), "max"),
        "shapes_of_datasets" => pairs(list("datasets"), "shape"),
        "minima_of_datasets" => pairs(list("datasets"), "min"),
        "names_of_datasets" => {
            let mut names: Vec<String> = list("datasets")
                .iter()
                .map(|one| one["name"].as_str().unwrap().to_owned())
                .collect();
            names.sort();
            json!(names)
        }
        "shapes_of_variables" => pairs(list("variables"), "shape"),
        "minima_of_variables" => pairs(list("variables"), "min"),
        "sizes_of_dimensions" => pairs(list("dimensions"), "size"),
        "sorted_attributes" => {
            let mut all = list("attributes");
            all.sort_by_key(|one| one["name"].to_string());
            Value::Array(all)
        }
        "codec" => list("columns")[0]["compression"].clone(),
        "rows_of_tables" => pairs(list("tables"), "rows"),
        "shapes" => pairs(list("tensors"), "shape"),
        "names_of_columns" => list("columns")
            .iter()
            .map(|one| one["name"].clone())
            .collect(),
        "names_of_symbols" => list("symbols")
            .iter()
            .map(|one| one["name"].clone())
            .collect(),
        name => facts
            .get(name)
            .cloned()
            .unwrap_or(json!("the answer has no such fact")),
    }
}

#[test]
fn an_inspector_says_what_the_formats_own_tool_says() {
    let Some(samples) = Samples::made() else {
        return;
    };
    for sample in samples.each() {
        let answer = ask(sample.name, &sample.old, None).unwrap();
        for (name, expected) in sample.expected["facts"].as_object().unwrap() {
            let found = derived(&answer.facts, name);
            assert_eq!(&found, expected, "{}: {name}", sample.format);
        }
    }
}

#[test]
fn an_inspector_tells_a_change_in_plain_sentences() {
    let Some(samples) = Samples::made() else {
        return;
    };
    for sample in samples.each() {
        let answer = ask(sample.name, &sample.old, Some(&sample.new)).unwrap();
        let expected = sample.expected["sentences"].as_array().unwrap();
        for sentence in expected {
            let said = answer.sentences.iter().any(|one| one == sentence);
            assert!(
                said,
                "{}: {sentence} is not in {:?}",
                sample.format, answer.sentences
            );
        }
        let same = ask(sample.name, &sample.old, Some(&sample.old)).unwrap();
        assert_eq!(same.sentences, Vec::<String>::new(), "{}", sample.format);
    }
}

#[test]
fn control_characters_of_a_file_are_escaped_in_the_answer() {
    let answer = ask(
        "a.csv",
        b"a\x1b[2J,b\n1,2\n",
        Some(b"a\x1b[2J,b\n1,\x1b]0;x\x07\n"),
    )
    .unwrap();
    let text = serde_json::to_string(&answer).unwrap();
    assert!(
        !text.contains("\\u001b") && text.contains("\\\\u{1b}"),
        "{text}"
    );
}
