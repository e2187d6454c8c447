//! Questions find the things and activities that programs name.

use super::Place;

/// The names and commands in the answer of `of`.
fn origin(place: &Place, thing: &str) -> Vec<String> {
    let of = place.json(&["of", thing, "--json"]);
    let nodes = of["nodes"].as_array().unwrap().iter();
    let text = |node: &serde_json::Value| match node["path"].as_str() {
        Some(path) => path.to_owned(),
        None => node["argv"]
            .as_array()
            .map(|words| {
                words
                    .iter()
                    .filter_map(|word| word.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .unwrap_or_default(),
    };
    nodes.map(text).collect()
}

fn has(origin: &[String], end: &str) -> bool {
    origin.iter().any(|name| name.ends_with(end))
}

#[test]
fn a_thing_that_a_program_names_is_found_with_what_it_came_from() {
    for (name, options) in [
        ("disclosing", &[][..]),
        ("disclosing", &["--guard", "strict"]),
        ("disclosing", &["--guard", "off"]),
        ("disclosing_static", &[]),
    ] {
        let place = Place::new();
        let Some(program) = place.fixture(name) else {
            continue;
        };
        place.write("train.csv", "0.12");
        place.keep(&program, options);
        let what = format!("{name} {options:?}");
        let of = origin(&place, "model:3");
        assert!(has(&of, "train epoch 3"), "{what}: {of:?}");
        assert!(
            has(&of, "/train.csv") && has(&of, "s3://bucket/a image%"),
            "{what}: {of:?}"
        );
        let reply = origin(&place, "reply:17");
        assert!(
            has(&reply, "GET /report") && has(&reply, "/train.csv"),
            "{what}: {reply:?}"
        );
        let show = place.json(&["show", "--json"]);
        assert_eq!(show["exit"], 0, "{what}: {show}");
        let processes = place.json(&["processes", "--json"]);
        let mut all = processes.as_array().unwrap().iter();
        let train = all.find(|one| one["argv"][0] == "train").unwrap();
        assert_eq!(train["attributes"]["loss"], "0.12", "{what}: {train}");
        let text = place.run(&["processes"]).out;
        assert!(text.contains("loss=0.12"), "{what}: {text}");
        assert!(!text.contains("GET /report  (forked"), "{what}: {text}");
    }
}

#[test]
fn a_script_speaks_through_emit() {
    let place = Place::new();
    place.write("train.csv", "0.12");
    let emit = format!("{} emit", place.program());
    place.keep(
        &format!(
            "{emit} begin train 'epoch 3'; cat train.csv > model; {emit} write model:3; \
             {emit} note loss 0.12; {emit} end; {emit} write after:1"
        ),
        &[],
    );
    let of = origin(&place, "model:3");
    assert!(has(&of, "train epoch 3"), "{of:?}");
    let later = place.run(&["uses", "model:3"]);
    assert_eq!(later.status, 0, "{}", later.err);
    place
        .run(&["emit", "write", "/etc/passwd"])
        .is_error(2, &["/etc/passwd", "URI"]);
    assert_eq!(place.run(&["emit", "write", "model:4"]).status, 0);
}

/// `every_reason_is_provoked` calls this, too.
#[test]
pub(super) fn a_flood_of_statements_ends_in_the_graph_with_a_reason() {
    let place = Place::new();
    let Some(program) = place.fixture("disclosing") else {
        return;
    };
    place.keep(&format!("{program} 250001"), &[]);
    let show = place.json(&["show", "--json"]);
    let reasons = show["incomplete_because"].to_string();
    assert!(
        reasons.contains("only the first 250000 statements"),
        "{reasons}"
    );
}
