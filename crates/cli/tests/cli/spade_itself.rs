//! SPADE's own code reads what backstory writes for it, and gives the same answers.
//!
//! `scripts/foreign-sources spade` fetches and compiles SPADE. Without it, the tests are skipped.
//! SPADE's reporters, its lineage and its grammar are asked by `spade_itself/Ask.java`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use backstory_testkit::need::{needs, skipped};
use serde_json::Value;

use super::{Answer, Place};

/// SPADE's code, with the compiled questions.
struct Spade {
    sources: PathBuf,
    questions: tempfile::TempDir,
}

impl Spade {
    /// `None`: this machine does not have it.
    fn here() -> Option<Spade> {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../");
        let sources = top.join("target/foreign-sources/spade");
        if !sources.join(".made").exists() {
            skipped("SPADE's own code", "run scripts/foreign-sources spade");
            return None;
        }
        if !needs("SPADE's own code", &["java", "javac"]) {
            return None;
        }
        let spade = Spade {
            sources: sources.canonicalize().unwrap(),
            questions: tempfile::tempdir().unwrap(),
        };
        let question = "tests/cli/spade_itself/Ask.java";
        let mut compiler = Command::new("javac");
        compiler.args(["-cp", &spade.classes(), "-d"]);
        let compiler = compiler.arg(spade.questions.path());
        let done = compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(question));
        let done = Answer::of(done.output().unwrap());
        assert_eq!(done.status, 0, "{done:?}");
        Some(spade)
    }

    fn classes(&self) -> String {
        let (own, spade) = (self.questions.path().display(), self.sources.display());
        format!("{own}:{spade}/classes:{spade}/tree/lib/*")
    }

    /// The lines of an answer. SPADE has no warning. Its settings are in its directory.
    #[track_caller]
    fn asked(&self, words: &[&str]) -> Vec<String> {
        let mut java = Command::new("java");
        java.current_dir(self.sources.join("tree"));
        java.args(["-cp", &self.classes(), "Ask"]).args(words);
        let answer = Answer::of(java.output().unwrap());
        assert_eq!(answer.status, 0, "{words:?}: {answer:?}");
        answer.out.lines().map(str::to_owned).collect()
    }

    /// The graph of a document that a program writes into the pipe of SPADE's reporter. Further
    /// words ask for a part of it.
    #[track_caller]
    fn graph(&self, question: &str, document: &str, words: &[&str]) -> Graph {
        let pipe = self.questions.path().join("pipe");
        let pipe = pipe.to_str().unwrap();
        let words = [&[question, document, pipe], words].concat();
        Graph::of(&self.asked(&words))
    }
}

/// A graph as SPADE has it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Graph {
    /// The annotations of each vertex.
    vertices: BTreeSet<String>,
    /// The annotations of each edge, without those of its ends.
    edges: Vec<String>,
    paths: BTreeSet<String>,
}

impl Graph {
    /// Asserts that each edge has its ends.
    #[track_caller]
    fn of(lines: &[String]) -> Graph {
        let (mut graph, mut hashes) = (Graph::default(), BTreeSet::new());
        let elements: Vec<Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for element in &elements {
            let annotations = &element["annotations"];
            if let Some(hash) = element["hash"].as_str() {
                assert!(hashes.insert(hash), "{element}");
                graph.vertices.insert(annotations.to_string());
                graph
                    .paths
                    .extend(annotations["path"].as_str().map(str::to_owned));
            } else {
                let mut all = annotations.clone();
                for end in ["from", "to"] {
                    all.as_object_mut().unwrap().remove(end);
                }
                graph.edges.push(all.to_string());
            }
        }
        let ends = elements
            .iter()
            .flat_map(|element| ["from", "to"].map(|end| element[end].as_str()));
        for end in ends.flatten() {
            assert!(hashes.contains(end), "an edge has no vertex {end}");
        }
        graph.edges.sort();
        graph
    }
}

/// A run that copies files with names that the language has to escape.
const NAMES: [&str; 5] = ["plain", "two words", "c:d", r"back\slash", "\u{fc}ber"];

fn recorded() -> Place {
    let place = Place::new();
    for name in NAMES {
        place.write(name, name);
    }
    place.record(r"cat plain 'two words' c:d 'back\slash' über | sort > mid; cp mid 'out put'");
    place
}

#[test]
fn spades_own_reporter_reads_each_line_of_an_exported_graph() {
    let Some(spade) = Spade::here() else {
        return;
    };
    let place = recorded();
    let document = place.path("graph.dsl");
    let exported = place.run(&[
        "export", "opm", "out put", "--level", "all", "-o", &document,
    ]);
    assert_eq!(exported.status, 0, "{exported:?}");
    let lines = std::fs::read_to_string(&document).unwrap().lines().count();
    let graph = spade.graph("dsl", &document, &[]);
    assert_eq!(graph.vertices.len() + graph.edges.len(), lines);
    for name in NAMES.into_iter().chain(["mid", "out put"]) {
        assert!(
            graph.paths.contains(&place.path(name)),
            "{name}: {:?}",
            graph.paths
        );
    }
}

#[test]
fn spades_own_lineage_is_that_which_backstory_answers_without_time() {
    let Some(spade) = Spade::here() else {
        return;
    };
    let place = recorded();
    let document = place.path("graph.dsl");
    let ask = |words: &[&str]| {
        let options = words.iter().flat_map(|one| ["-c", one]);
        let arguments: Vec<&str> = ["spade", "out put"].into_iter().chain(options).collect();
        let answer = place.run(&arguments);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{words:?}");
        answer.out
    };
    let export = format!("export > {document}");
    ask(&[&export, "dump all $base"]);
    let whole = spade.graph("dsl", &document, &[]);
    for (name, depth, word) in [
        ("out put", 3, "ancestors"),
        ("out put", 20, "ancestors"),
        ("two words", 20, "descendants"),
        ("mid", 1, "ancestors"),
    ] {
        let path = place.path(name);
        let depth = depth.to_string();
        let theirs = spade.graph("lineage", &document, &["path", &path, &depth, word]);
        let part = place.path("part.dsl");
        let own = format!("$base.getLineage($base.getVertex(path == '{path}'), {depth}, '{word}')");
        let export = format!("export > {part}");
        ask(&["env set time 0", &export, &format!("dump all {own}")]);
        let ours = spade.graph("dsl", &part, &[]);
        assert_eq!(theirs, ours, "{name} {depth} {word}");
        assert!(!ours.edges.is_empty() && ours.edges.len() <= whole.edges.len());
    }
}

#[test]
fn spades_own_example_has_the_same_lineage_in_both() {
    let Some(spade) = Spade::here() else {
        return;
    };
    let place = Place::new();
    let example = spade.sources.join("tree/test/query/lineage/server");
    let script = std::fs::read_to_string(example.join("input-for-dsl.sh")).unwrap();
    // The shell would take the backslashes out of a line, which SPADE refuses then.
    let script = script.replace("=/tmp/spade_pipe", "=document");
    place.write("script", &script.replace(r"\ ", r"\\\ "));
    let written = place.shell("bash ./script");
    assert_eq!(written.status, 0, "{written:?}");
    let imported = place.run(&["import", "spade", "document"]);
    assert_eq!(imported.status, 0, "{imported:?}");
    let queries = std::fs::read_to_string(example.join("spade.queries")).unwrap();
    let mut asked = vec!["env set time 0"];
    // The other instance of SPADE, which `remote` names, does not exist here.
    asked.extend(queries.lines().filter(|line| line.starts_with('$')));
    asked.push("export > own");
    asked.push("dump all $lineage");
    let options = asked.iter().flat_map(|one| ["-c", one]);
    let arguments: Vec<&str> = ["spade"].into_iter().chain(options).collect();
    let answer = place.run(&arguments);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{asked:?}");
    let words = ["path", "/etc/passwd", "6", "descendants"];
    let theirs = spade.graph("lineage", &place.path("document"), &words);
    let ours = spade.graph("dsl", &place.path("own"), &[]);
    let kinds = |graph: &Graph| {
        let texts = graph.vertices.iter().chain(&graph.edges);
        let values = texts.map(|text| serde_json::from_str::<Value>(text).unwrap());
        let mut kinds: Vec<String> = values
            .map(|one| format!("{} {}", one["type"], one["pid"]))
            .collect();
        kinds.sort();
        kinds
    };
    assert_eq!(kinds(&theirs), kinds(&ours));
    assert_eq!((ours.vertices.len(), ours.edges.len()), (4, 3));
}

#[test]
fn spades_own_reporters_read_the_graphs_that_a_query_exports() {
    let Some(spade) = Spade::here() else {
        return;
    };
    let place = Place::new();
    place.write("two words", "x\n");
    // SPADE does not read backslashes of DOT, so that the command has no quotes.
    place.write("steps", "sort 'two words' > out; wc -l out > count\n");
    place.record("sh steps");
    let exported = |name: &str| {
        let path = place.path(name);
        let export = format!("export > {path}");
        let answer = place.run(&["spade", "-c", &export, "-c", "dump all $base"]);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{name}");
        path
    };
    let expected = spade.graph("dsl", &exported("graph.dsl"), &[]);
    assert!(expected.paths.contains(&place.path("two words")));
    // SPADE makes its own of an `id`.
    let without_ids = |graph: &Graph| {
        let of = |text: &String| serde_json::from_str::<Value>(text).unwrap();
        let without_id = |text: &String| {
            let mut all = of(text);
            all.as_object_mut().unwrap().remove("id");
            all.to_string()
        };
        graph
            .vertices
            .iter()
            .map(without_id)
            .collect::<BTreeSet<_>>()
    };
    for (question, name) in [("dot", "graph.dot"), ("json", "graph.json")] {
        let read = Graph::of(&spade.asked(&[question, &exported(name)]));
        assert_eq!(without_ids(&read), without_ids(&expected), "{name}");
        assert_eq!(read.edges, expected.edges, "{name}");
    }
}

#[test]
fn spades_own_hashes_are_those_by_which_backstory_finds_vertices_and_edges() {
    let Some(spade) = Spade::here() else {
        return;
    };
    let place = recorded();
    let exported = |name: &str| {
        let path = place.path(name);
        let export = format!("export > {path}");
        let answer = place.run(&["spade", "out put", "-c", &export, "-c", "dump all $base"]);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{name}");
        path
    };
    let pipe = spade.questions.path().join("pipe");
    let theirs = spade.asked(&["dsl", &exported("graph.dsl"), pipe.to_str().unwrap()]);
    let theirs = theirs.iter().map(|line| {
        let element: Value = serde_json::from_str(line).unwrap();
        let hash = element.get("hash").or(element.get("edge")).unwrap();
        hash.as_str().unwrap().to_owned()
    });
    let text = std::fs::read_to_string(exported("graph.json")).unwrap();
    let ours: Vec<Value> = serde_json::from_str(&text).unwrap();
    let ours = ours
        .iter()
        .map(|element| element["hash"].as_str().unwrap().to_owned());
    let (theirs, ours) = (theirs.collect::<BTreeSet<_>>(), ours.collect());
    assert_eq!(theirs, ours);
}

#[test]
fn spades_own_grammar_has_the_statements_that_backstory_answers() {
    let Some(spade) = Spade::here() else {
        return;
    };
    let place = recorded();
    let statements = [
        "%make = type == 'Process' and \"command line\" like '%sort%'",
        "%other = not type == 'Agent' or pid >= '1' and * like '%x%'",
        "$out = $base.getVertex(path like '%/out put')",
        "$up = $base.getLineage($out, 5, 'ancestors')",
        "$both = $up + $out & $base - $out",
        "$both += $up; $both -= $out",
        "$path = $base.getPath($out, $base.getVertex(%make), 9)",
        "$short = $base.getShortestPath($out, $base.getVertex(%make), 9)",
        "$edges = $base.getEdge(operation == 'read').getEdgeEndpoints()",
        "$sub = $base.getSubgraph($path).collapseEdge('operation').limit(3)",
        "stat $path",
        "dump all $both",
        "%match = name ~ 'co[pm]' or path not regexp 'x$' and pid <> '1'",
        "$match = $up.getMatch($base, 'path', 'version')",
        "$named = vertices('815fd285f16cce9ab398b5b2ce5d2d03') + edges('b161b03a4365faf44d8cdd3713f811e9')",
        "list graph",
        "erase $both",
        "reset workspace",
    ];
    place.write("statements", &statements.join("\n"));
    let told = spade.asked(&["parse", &place.path("statements")]);
    let accepted = |answers: &[String]| answers.iter().all(|answer| answer == "accepted");
    assert!(
        told.len() == statements.len() && accepted(&told),
        "{told:?}"
    );
    let options = statements.iter().flat_map(|one| ["-c", one]);
    let arguments: Vec<&str> = ["spade", "out put"].into_iter().chain(options).collect();
    let answer = place.run(&arguments);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    // A grammar that accepts everything would prove nothing.
    place.write("wrong", "$out = = $base\nstat $out)");
    assert_eq!(
        spade.asked(&["parse", &place.path("wrong")]),
        ["refused"; 2]
    );
}

#[test]
fn spades_own_reporter_reads_exported_calls() {
    let Some(spade) = Spade::here() else {
        return;
    };
    let place = Place::new();
    place.write("sum.c", "int sum_up(int n) { return n ? n + sum_up(n - 1) : 0; }\nint main(void) { return sum_up(2) != 3; }\n");
    let built = place.run(&["cc", "--compiler=gcc", "-g", "-o", "sum", "sum.c"]);
    if built.status != 0 {
        return skipped("calls of functions", "no gcc");
    }
    place.keep("./sum", &["--functions", "sum_up", "--arguments"]);
    let document = place.path("calls.dsl");
    let calls = place.run(&["export", "opm", "--calls", "-o", &document]);
    assert_eq!(calls.status, 0, "{calls:?}");
    let lines = std::fs::read_to_string(&document).unwrap().lines().count();
    let graph = spade.graph("dsl", &document, &[]);
    assert_eq!(graph.vertices.len() + graph.edges.len(), lines);
    let processes = graph
        .vertices
        .iter()
        .filter(|one| one.contains("\"FunctionID\""));
    assert_eq!(processes.count(), 3);
}
