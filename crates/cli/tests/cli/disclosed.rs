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
        let row = origin(&place, "bank:accounts#row=42");
        assert!(has(&row, "/train.csv"), "{what}: {row:?}");
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
fn the_account_of_a_thing_has_named_activities_as_steps() {
    let place = Place::new();
    place.write("train.csv", "0.12");
    let emit = format!("{} emit", place.program());
    place.keep(
        &format!(
            "sort train.csv > sorted.csv; {emit} begin train 'epoch 3'; read rate < sorted.csv; \
             {emit} write model:3; {emit} note loss 0.12; {emit} record org.example.rate 7; \
             {emit} end; {emit} read model:3; echo good > report"
        ),
        &[],
    );
    for (thing, sources) in [("model:3", "train.csv"), ("report", "model:3")] {
        let of = place.run(&["of", thing]).out;
        assert!(of.contains("train 'epoch 3'\n"), "{of}");
        assert!(of.contains("noted loss 0.12"), "{of}");
        assert!(
            of.contains("sort train.csv") && of.contains(sources),
            "{of}"
        );
        // The shell is one step before and after the activity.
        assert!(
            of.matches("\n  sh -c").count() <= 1 && !of.contains(" × "),
            "{of}"
        );
        assert!(of.lines().count() < 24, "{of}");
    }
    let json = place.json(&["of", "model:3", "--level", "step", "--json"]);
    let mut steps = json["steps"].as_array().unwrap().iter();
    let train = steps.find(|step| step["part"] == true).unwrap();
    assert_eq!(train["attributes"]["loss"], "0.12", "{train}");
}

#[test]
fn parts_of_a_thing_have_origins_of_their_own_and_qualified_terms() {
    let place = Place::new();
    let emit = format!("{} emit", place.program());
    let load = |file: &str, row: &str| format!("sh -c 'read x < {file}; {emit} write {row}'");
    place.write("a.csv", "1");
    place.write("b.csv", "2");
    // A statement may name a part as a question does.
    let (option, name) = ("bank:accounts --part row=1", "bank:accounts#row=2");
    place.keep(
        &format!("{}; {}", load("a.csv", option), load("b.csv", name)),
        &[],
    );
    let row = origin(&place, "bank:accounts#row=1");
    assert!(has(&row, "/a.csv") && !has(&row, "/b.csv"), "{row:?}");
    let all = origin(&place, "bank:accounts");
    assert!(has(&all, "/a.csv") && has(&all, "/b.csv"), "{all:?}");
    let text = place.run(&["of", "bank:accounts#row=2"]).out;
    assert!(text.contains("made 'bank:accounts#row=2'"), "{text}");
    let options = [
        "export",
        "prov-n",
        "bank:accounts#row=2",
        "--level",
        "process",
    ];
    let prov = place.run(&options).out;
    for part in [
        "backstory:partOf=\"bank:accounts\" %% xsd:anyURI",
        "backstory:partKind='backstory:row'",
        "backstory:partValue=\"2\"",
    ] {
        assert!(prov.contains(part), "no {part} in {prov}");
    }
}

#[test]
fn a_thing_that_is_written_in_part_comes_from_itself_only_if_a_command_made_it_before() {
    let place = Place::new();
    let emit = format!("{} emit", place.program());
    for (file, row) in [("a.csv", "1"), ("b.csv", "2")] {
        place.write(file, row);
        place.keep(
            &format!("read x < {file}; {emit} write model:3 --part row={row}"),
            &[],
        );
        let of = place.run(&["of", "model:3"]).out;
        assert!(of.contains(&format!("sources: {file}\n")), "{of}");
        assert_eq!(
            of.contains("a.csv") && of.contains("b.csv"),
            row == "2",
            "{of}"
        );
    }
}

#[test]
fn a_part_whose_value_does_not_fit_its_kind_is_misuse() {
    let place = Place::new();
    for (part, why) in [
        (
            "page=3",
            "row, column, cell, key, field, member, bytes, lines, pages",
        ),
        (
            "bytes=9-3",
            "the first and the last with a dash between them, from 0",
        ),
    ] {
        let refused = place.run(&["emit", "read", "bank:accounts", "--part", part]);
        assert_eq!(refused.status, 2, "{}", refused.err);
        assert!(refused.err.contains(why), "{}", refused.err);
    }
}

#[test]
fn prov_has_what_programs_said_in_terms_of_its_own() {
    let place = Place::new();
    let emit = format!("{} emit", place.program());
    place.keep(
        &format!(
            "{emit} begin train; {emit} write model:3; {emit} note 'loss rate' '0.1\"2'; \
             {emit} record org.example.rate 7; {emit} end"
        ),
        &[],
    );
    let export = |format: &str| {
        let whole = place.run(&["export", format, "model:3", "--level", "process"]);
        // The usual level of a file would leave all out.
        let usual = place.run(&["export", format, "model:3"]);
        assert_eq!((usual.out, usual.err.as_str()), (whole.out.clone(), ""));
        whole.out
    };
    let notation = export("prov-n");
    for part in [
        "prefix note <urn:backstory:note:>",
        "note:loss%20rate=\"0.1\\\"2\"",
        "record:org.example.rate=\"7\"",
        "prov:type='backstory:part'",
        "prov:location=\"model:3\" %% xsd:anyURI",
    ] {
        assert!(notation.contains(part), "{part}: {notation}");
    }
    let json: serde_json::Value = serde_json::from_str(&export("prov-json")).unwrap();
    let mut activities = json["activity"].as_object().unwrap().values();
    assert!(
        activities.any(|one| one["note:loss%20rate"] == "0.1\"2"),
        "{json}"
    );
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

#[test]
fn a_name_that_no_program_stated_is_not_taken_for_a_path() {
    let place = Place::new();
    place.keep("true", &[]);
    place
        .run(&["of", "model:4"])
        .is_error(1, &["no recorded program has named model:4,"]);
    let row = place.run(&["of", "bank:accounts#row=8"]);
    row.is_error(1, &["of bank:accounts` answers for the whole"]);
    let directory = place.work().display().to_string();
    assert!(!row.err.contains(&directory), "{row:?}");
}
