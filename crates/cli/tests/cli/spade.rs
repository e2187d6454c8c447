//! `spade` answers queries in SPADE's language, tried with the example of SPADE's wiki.

use super::Place;

/// The example "illustrating provenance querying", with an order in time.
const EXAMPLE: &str = "\
type:Process id:1 name:root\\ process pid:10
type:Process id:2 name:child\\ process pid:32
type:WasTriggeredBy from:2 to:1 time:10
type:Artifact id:3 filename:output.tmp
type:Artifact id:4 filename:output.o
type:Used from:2 to:3 time:20
type:WasGeneratedBy from:4 to:2 time:30
type:WasDerivedFrom from:4 to:3
type:Agent id:user uid:10 gid:10 name:john
type:WasControlledBy from:1 to:user
type:WasControlledBy from:2 to:user
";

fn imported() -> Place {
    let place = Place::new();
    place.write("graph.dsl", EXAMPLE);
    let done = place.run(&["import", "spade", "graph.dsl"]);
    assert_eq!(done.status, 0, "{done:?}");
    place
}

/// The output of statements.
#[track_caller]
fn asked(place: &Place, statements: &[&str]) -> String {
    let options = statements.iter().flat_map(|one| ["-c", one]);
    let arguments: Vec<&str> = ["spade"].into_iter().chain(options).collect();
    let asked = place.run(&arguments);
    assert_eq!(
        (asked.status, asked.err.as_str()),
        (0, ""),
        "{statements:?}"
    );
    asked.out
}

#[test]
fn the_published_queries_have_the_published_answers() {
    let place = imported();
    let all = asked(
        &place,
        &[
            "%root = pid == '10'",
            "$root = $base.getVertex(%root)",
            "$child = $base.getVertex(name like 'child%')",
            "$object = $base.getVertex(* like '%output.o')",
            "stat $root; stat $child; stat $object",
            "$down = $base.getLineage($root, 10, 'descendants')",
            "stat $down.getVertex(type == 'Process') + $down.getVertex(* like '%output%')",
            "$up = $base.getLineage($object, 10, 'a')",
            "stat $up.getVertex(* like '%output.tmp')",
            "$path = $base.getPath($object, $root, 10)",
            "stat $path",
            "stat $base.getShortestPath($object, $root, 10)",
            "stat $base.getPath($root, $object, 10)",
            "stat $base.getLineage($object, 1, 'a').getVertex(pid == '10')",
            "stat $base.getLineage($root, 10, 'ancestors')",
        ],
    );
    let expected = [
        (1, 0), // the root process
        (1, 0), // the child
        (1, 0), // output.o
        (3, 0), // root, child, output.o
        (1, 0), // output.tmp is an ancestor of output.o
        (3, 2), // output.o, child, root
        (3, 2),
        (0, 0), // an edge leads from the effect to its cause
        (0, 0), // the root is two edges away
        (2, 1), // john controls the root
    ];
    let expected: String = expected
        .iter()
        .map(|(vertices, edges)| format!("vertices: {vertices}, edges: {edges}\n"))
        .collect();
    assert_eq!(all, expected);
}

#[test]
fn agents_and_other_keys_of_an_imported_graph_are_in_the_exported_one() {
    let place = Place::new();
    let graph = EXAMPLE.replace("pid:32", "pid:32 gid:7 from:x");
    place.write("graph.dsl", &graph);
    assert_eq!(place.run(&["import", "spade", "graph.dsl"]).status, 0);
    let stat = |graph: &str| asked(&place, &[&format!("stat {graph}")]);
    let john = "$base.getVertex(type == 'Agent' and name == 'john')";
    assert_eq!(stat(john), "vertices: 1, edges: 0\n");
    let controls = stat("$base.getEdge(type == 'WasControlledBy')");
    assert_eq!(controls, "vertices: 0, edges: 2\n");
    let child = stat("$base.getVertex(gid == '7' and pid == '32')");
    assert_eq!(child, "vertices: 1, edges: 0\n");
    let drawn = asked(&place, &[&format!("visualize {john}")]);
    assert!(drawn.contains("shape=\"octagon\""), "{drawn}");
    let exported = place.run(&["export", "opm", "--level", "all"]);
    let lines: Vec<&str> = exported.out.lines().collect();
    assert!(lines.contains(&"type:Agent id:g0 name:john"), "{lines:?}");
    assert!(!exported.out.contains("agent:"), "{lines:?}");
    place.write("again.dsl", &exported.out);
    assert_eq!(place.run(&["import", "spade", "again.dsl"]).status, 0);
    let processes = place.run(&["processes"]).out;
    assert_eq!(processes.matches("agent=john").count(), 2, "{processes}");
    assert!(processes.contains("gid=7"), "{processes}");
}

#[test]
fn a_graph_is_dumped_in_the_dsl_drawn_and_exported() {
    let place = imported();
    let child = "$base.getVertex(name like 'child%')";
    let text = asked(&place, &[&format!("dump {child}")]);
    assert!(text.starts_with("type:Process "), "{text}");
    assert!(text.contains("name:child\\ process"), "{text}");
    let drawn = asked(&place, &["visualize force $base"]);
    assert!(drawn.starts_with("digraph"), "{drawn}");
    let lineage = format!("dump all $base.getLineage({child}, 5, 'both')");
    for (file, begins) in [("a.dot", "digraph"), ("a.dsl", "type:"), ("a.json", "[")] {
        let export = format!("export > {file}");
        assert_eq!(asked(&place, &[&export, &lineage]), "");
        let text = std::fs::read_to_string(place.path(file)).unwrap();
        assert!(text.starts_with(begins), "{file}: {text}");
    }
    let lines = format!("# One option, several lines.\nexport > c.dot; {lineage}\nstat {child}");
    assert_eq!(asked(&place, &[&lines]), "vertices: 1, edges: 0\n");
    assert!(std::fs::exists(place.path("c.dot")).unwrap());
    // Only the next graph goes into the file.
    assert!(asked(&place, &["export > b.dot", &lineage, &lineage]).starts_with("type:"));
    assert!(asked(&place, &["$a = $base.limit(1)", "list"]).contains("$a: 1 vertices, 1 edges"));
}

#[test]
fn a_lineage_respects_time_unless_it_is_told_not_to() {
    let place = Place::new();
    place.write("in", "1\n");
    // The program writes `early` before it reads `in`.
    place.record("echo x > early; read line < in; echo $line > late");
    let early = "$base.getLineage($base.getVertex(path like '%/early'), 9, 'a')";
    let input = |graph: &str| format!("stat {graph}.getVertex(path like '%/in')");
    let respectful = asked(&place, &[&input(early)]);
    assert_eq!(respectful, "vertices: 0, edges: 0\n");
    let all = asked(&place, &["env set time 0", &input(early)]);
    assert_eq!(all, "vertices: 1, edges: 0\n");
    let late = "$base.getLineage($base.getVertex(path like '%/late'), 9, 'a')";
    assert_eq!(asked(&place, &[&input(late)]), "vertices: 1, edges: 0\n");
}

#[test]
fn expressions_matches_and_hashes_choose_vertices_and_edges() {
    let place = imported();
    let counts = |graph: &str| asked(&place, &[&format!("stat {graph}")]);
    let chosen = |condition: &str| counts(&format!("$base.getVertex({condition})"));
    // An expression is found anywhere in a value.
    assert_eq!(chosen("name ~ '^(root|child) '"), "vertices: 2, edges: 0\n");
    assert_eq!(chosen("* regexp 'output[.]o$'"), "vertices: 1, edges: 0\n");
    assert_eq!(
        chosen("pid not regexp '3' and pid <> '11'"),
        chosen("pid == '10'")
    );
    // The root and the child differ in their pid only.
    let by = |key: &str| {
        let of = |name: &str| format!("$base.getVertex(name like '{name}%')");
        counts(&format!(
            "{}.getMatch({}, 'type', '{key}')",
            of("root"),
            of("child")
        ))
    };
    assert_eq!(by("run"), "vertices: 2, edges: 0\n");
    assert_eq!(by("pid"), "vertices: 0, edges: 0\n");
    assert_eq!(by("no such key"), "vertices: 0, edges: 0\n");
    // Each element has a hash of its own, by which it is found.
    asked(&place, &["export > all.json", "dump all $base"]);
    let text = std::fs::read_to_string(place.path("all.json")).unwrap();
    let all: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let hashes = |key: &str| -> Vec<String> {
        let with = all.iter().filter(|one| one.get(key).is_some());
        with.map(|one| format!("'{}'", one["hash"].as_str().unwrap()))
            .collect()
    };
    let (vertices, edges) = (hashes("id"), hashes("from"));
    let whole = format!("vertices: {}, edges: {}\n", vertices.len(), edges.len());
    let named = format!(
        "vertices({}) + edges({})",
        vertices.join(", "),
        edges.join(", ")
    );
    assert_eq!(counts(&named), whole);
    assert_eq!(
        counts(&format!("edges({})", edges[0])),
        "vertices: 0, edges: 1\n"
    );
    let mistake = ["-c", "dump $base.getVertex(name ~ '(')"];
    let refused = place.run(&[&["spade"], &mistake[..]].concat());
    refused.is_error(2, &["'(' is no regular expression: unclosed group"]);
}

#[test]
fn a_mistake_names_the_word_that_is_wrong() {
    let place = imported();
    for (statement, words) in [
        ("dump $nothing", "there is no $nothing"),
        (
            "$a = $base.getVertex(pid 10)",
            "a comparison is missing after pid",
        ),
        ("$base = $base", "$base is the whole graph"),
        (
            "$a = $base.getLineage($base, 5, 'x')",
            "'x' is not 'a', 'd' or 'b'",
        ),
        ("frobnicate", "there is no command 'frobnicate'"),
        ("dump $base)", ") is not expected there"),
        ("%a = %a; dump $base.getVertex(%a)", "%a refers to itself"),
        ("dump 'open", "' has no end in"),
    ] {
        place.run(&["spade", "-c", statement]).is_error(2, &[words]);
    }
}

#[test]
fn neighbours_links_and_statistics_of_a_key_are_answered() {
    let place = imported();
    let counts = |graph: &str| asked(&place, &[&format!("stat {graph}")]);
    let child = "$base.getVertex(name like 'child%')";
    let of = |way: &str| counts(&format!("$base.getNeighbor({child}, '{way}')"));
    assert_eq!(of("a"), "vertices: 4, edges: 3\n");
    assert_eq!(of("d"), "vertices: 2, edges: 1\n");
    assert_eq!(of("b"), "vertices: 5, edges: 4\n");
    let used = counts("$base.getEdgeWithEndpoints(type == 'Used')");
    assert_eq!(used, "vertices: 2, edges: 1\n");
    let file = |name: &str| format!("$base.getVertex(* like '%{name}')");
    let link = |depth| {
        let (one, other) = (file("output.tmp"), file("output.o"));
        counts(&format!("$base.getLink({one}, {other}, {depth})"))
    };
    assert_eq!(link(1), "vertices: 2, edges: 1\n");
    assert_eq!(link(2), "vertices: 3, edges: 3\n");
    let spanned = counts(&format!("({} + {child}).span($base)", file("output.o")));
    assert_eq!(spanned, "vertices: 2, edges: 1\n");
    let statistic = |text: &str| asked(&place, &[&format!("stat {text}")]);
    let types = "Agent\t1\nArtifact\t2\nProcess\t2\n";
    assert_eq!(statistic("vertex type histogram $base"), types);
    assert_eq!(statistic("vertex pid mean $base 1"), "Mean\t21.0\n");
    let deviation = "Standard Deviation\t15.556\n";
    assert_eq!(statistic("vertex pid std $base"), deviation);
    let two = "10\t21\t1\n21\t32\t1\n";
    assert_eq!(statistic("vertex pid distribution $base 2 0"), two);
    let digits = asked(
        &place,
        &["env set precision 70000", "stat vertex pid mean $base"],
    );
    assert!(digits.ends_with(&format!("Mean\t21.{}\n", "0".repeat(1000))));
    assert!(statistic("edge type histogram $base").contains("Used\t1\n"));
}
