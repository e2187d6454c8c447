//! Neo4j loads the files of `export neo4j`, in both ways that `docs/export.md` describes, and
//! answers the query of that page as `of` does.
//!
//! `scripts/foreign-sources neo4j` fetches Neo4j. Without it, the tests are skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use backstory_testkit::need::{needs, skipped};

use super::standards::ancestry;
use super::{Answer, Place};

/// The page with the statements.
const PAGE: &str = include_str!("../../../../docs/export.md");

/// Neo4j's libraries, with the compiled questions.
struct Neo4j {
    libraries: PathBuf,
    questions: tempfile::TempDir,
}

impl Neo4j {
    /// `None`: this machine does not have it.
    fn here() -> Option<Neo4j> {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../");
        let sources = top.join("target/foreign-sources/neo4j");
        if !sources.join(".made").exists() {
            skipped("Neo4j", "run scripts/foreign-sources neo4j");
            return None;
        }
        if !needs("Neo4j", &["java", "javac"]) {
            return None;
        }
        let neo4j = Neo4j {
            libraries: sources.canonicalize().unwrap().join("lib"),
            questions: tempfile::tempdir().unwrap(),
        };
        let question = "tests/cli/neo4j/Cypher.java";
        let mut compiler = Command::new("javac");
        compiler.args(["-proc:none", "-cp", &neo4j.classes(), "-d"]);
        let compiler = compiler.arg(neo4j.questions.path());
        let done = compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(question));
        let done = Answer::of(done.output().unwrap());
        assert_eq!(done.status, 0, "{done:?}");
        Some(neo4j)
    }

    fn classes(&self) -> String {
        let (own, libraries) = (self.questions.path().display(), self.libraries.display());
        format!("{own}:{libraries}/*")
    }

    /// The output of a class, in the directory of a place.
    #[track_caller]
    fn run(&self, place: &Place, class: &str, words: &[&str]) -> String {
        let mut java = Command::new("java");
        java.current_dir(place.work())
            .env("NEO4J_HOME", place.path("home"))
            .env("NEO4J_CONF", place.path("home/conf"));
        java.args(["-Xmx1g", "-cp", &self.classes(), class]);
        let answer = Answer::of(java.args(words).output().unwrap());
        assert_eq!(answer.status, 0, "{words:?}: {answer:?}");
        answer.out
    }

    /// Asks the query of the page about a file, after a script.
    #[track_caller]
    fn behind(&self, place: &Place, file: &str, script: Option<&str>) -> Vec<String> {
        let query = block("cypher").replace("/work/report.txt", &place.path(file));
        let (home, graph) = (place.path("home"), place.path("graph"));
        let words: Vec<&str> = [&home, &graph, query.as_str()]
            .into_iter()
            .chain(script)
            .collect();
        let answer = self.run(place, "Cypher", &words);
        let paths = answer.split_terminator('\0').map(str::to_owned);
        let mut paths: Vec<String> = paths.collect();
        paths.sort_unstable();
        paths
    }
}

/// The block of code of a language in the page's section about Neo4j.
fn block(language: &str) -> &'static str {
    let section = PAGE.split("\n## Neo4j\n").nth(1).unwrap();
    let code = section.split(&format!("```{language}\n")).nth(1).unwrap();
    code.split("```").next().unwrap()
}

/// A run with names that CSV, DOT and shells quote, and its export.
fn exported() -> Place {
    let place = Place::new();
    for name in [
        "plain",
        "two words",
        "back\\",
        "qu\"ote",
        "\\\"",
        "new\nline",
        "\u{fc}ber, x",
    ] {
        place.write(name, name);
    }
    place.record("cat plain two* back* qu* '\\\"' new* \u{fc}ber* | sort > mid; cp mid report.txt");
    let export = block("console").lines().next().unwrap();
    let words: Vec<&str> = export.split_whitespace().skip(2).collect();
    let done = place.run(&words);
    assert_eq!((done.status, done.err.as_str()), (0, ""));
    place
}

#[test]
fn neo4j_loads_the_exported_script_and_has_the_ancestry_that_of_gives() {
    let Some(neo4j) = Neo4j::here() else {
        return;
    };
    let place = exported();
    let script = place.path("graph/load.cypher");
    let found = neo4j.behind(&place, "report.txt", Some(&script));
    assert_eq!(found, ancestry(&place, &["report.txt", "--lookups"]));
    assert!(found.contains(&place.path("back\\")), "{found:?}");
}

#[test]
fn neo4j_admin_imports_an_export_with_the_ancestry_that_of_gives() {
    let Some(neo4j) = Neo4j::here() else {
        return;
    };
    let place = exported();
    std::fs::create_dir_all(place.path("home/conf")).unwrap();
    let command = block("console").lines().nth(1).unwrap();
    let words: Vec<&str> = command.split_whitespace().skip(2).collect();
    neo4j.run(&place, "org.neo4j.cli.AdminTool", &words);
    let found = neo4j.behind(&place, "report.txt", None);
    assert_eq!(found, ancestry(&place, &["report.txt", "--lookups"]));
    assert!(found.contains(&place.path("\\\"")), "{found:?}");
}
