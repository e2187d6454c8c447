//! Users' inspectors in WebAssembly, each in a real worker.

use std::path::Path;
use std::process::Command;

use backstory_inspection::question::{QuestionHead, ReadQuestion};
use backstory_inspection::{Answer, Catalogue, Question, Trouble};
use backstory_testkit::need::skipped;

/// The component of `first_byte.wat`.
fn first_byte() -> Vec<u8> {
    wat::parse_str(include_str!("first_byte.wat")).unwrap()
}

/// Asks the inspector with this component.
fn ask(component: &[u8], first: &[u8], second: Option<&[u8]>) -> Result<Answer, Trouble> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mesh.wasm");
    std::fs::write(&path, component).unwrap();
    ask_file(&path, first, second)
}

fn ask_file(path: &Path, first: &[u8], second: Option<&[u8]>) -> Result<Answer, Trouble> {
    let path = path.display();
    let text = format!(
        "[[inspector]]\nname = 'mesh'\nversion = 4\nglobs = ['*.mesh']\ncomponent = '{path}'\n"
    );
    let all = Catalogue::extended(&text, Path::new("inspectors.toml")).unwrap();
    let name = b"dir/part.mesh";
    let question = Question {
        name,
        first,
        second,
        key: &[],
    };
    super::worker().ask(all.choose(name, first).unwrap(), &question)
}

/// The reason of a failure, which names the inspector and the file.
fn failure(answer: Result<Answer, Trouble>) -> String {
    let said = answer.unwrap_err().to_string();
    assert!(
        said.contains("inspector mesh") && said.contains("dir/part.mesh"),
        "{said}"
    );
    said
}

#[test]
fn a_component_tells_facts_and_changes() {
    let component = first_byte();
    let facts = ask(&component, b"x...", None).unwrap();
    assert_eq!((facts.version, &facts.facts["first"]), (4, &"x".into()));
    let longer = ask(&component, b"x", Some(b"xy")).unwrap();
    assert_eq!(longer.sentences, ["it became longer"]);
    assert_eq!(longer.changes["longer"], true);
    let same = ask(&component, b"x", Some(b"y")).unwrap();
    assert!(same.sentences.is_empty() && same.changes.is_empty());
    let large = vec![b'L'; 4 << 20];
    assert_eq!(ask(&component, &large, None).unwrap().facts["first"], "L");
}

#[test]
fn a_component_that_refuses_traps_loops_or_grows_is_an_error() {
    let component = first_byte();
    for (content, why) in [
        ("?", "cannot read dir/part.mesh: it is no mesh"),
        ("u", "unreachable"),
        ("g", "no memory is left"),
        ("i", "secret"),
    ] {
        let said = failure(ask(&component, content.as_bytes(), None));
        assert!(said.contains(why), "{content}: {said}");
    }
    let loops = failure(ask(&component, b"!", None));
    // A program that was built without optimization reaches the limit of time first.
    let is_ended = loops.contains("million instructions") || loops.contains("took more than");
    assert!(is_ended, "{loops}");
}

/// Outside of the sandbox, only the number of instructions ends the loop. The compiler of
/// components has the stack of a worker's main thread.
#[test]
#[ignore = "400 million interpreted instructions: minutes without optimization"]
fn a_component_that_loops_is_ended_by_the_number_of_its_instructions() {
    let loops = || {
        let component = first_byte();
        let head = QuestionHead {
            inspector: "mesh".to_owned(),
            version: 4,
            name: "/dir/part.mesh".to_owned(),
            command: Vec::new(),
            component: true,
            key: Vec::new(),
        };
        let question = ReadQuestion {
            head,
            component: Some(&component),
            contents: vec![&b"!"[..]],
        };
        backstory_inspect::components::answer(&question)
            .error
            .unwrap()
    };
    let thread = std::thread::Builder::new().stack_size(8 << 20);
    let said = thread.spawn(loops).unwrap().join().unwrap();
    assert!(
        said.contains("ended after 400 million instructions"),
        "{said}"
    );
}

#[test]
fn a_file_that_is_no_such_component_is_an_error() {
    for (text, why) in [
        ("(module)", "it is not a WebAssembly component"),
        ("(component)", "does not fit the world"),
    ] {
        let bytes = wat::parse_str(text).unwrap();
        let said = failure(ask(&bytes, b"x", None));
        assert!(said.contains(why), "{text}: {said}");
    }
    let said = failure(ask(b"no component at all", b"x", None));
    assert!(said.contains("it is not a WebAssembly component"), "{said}");
    let whole = first_byte();
    for cut in (0..whole.len()).step_by(whole.len() / 8) {
        failure(ask(&whole[..cut], b"x", None));
    }
    for at in (8..whole.len()).step_by(whole.len() / 12) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x41;
        if let Err(error) = ask(&flipped, b"x", None) {
            assert!(error.to_string().contains("inspector mesh"), "{error}");
        }
    }
}

#[test]
fn a_missing_component_is_an_error_that_names_it() {
    let absent = ask_file(Path::new("/nonexistent/mesh.wasm"), b"x", None);
    let said = absent.unwrap_err().to_string();
    let wanted = "cannot read the component /nonexistent/mesh.wasm of inspector mesh";
    assert!(said.starts_with(wanted), "{said}");
}

/// Builds `examples/inspector-wasm` as its first lines tell users to.
#[test]
#[ignore = "needs rustup's target wasm32-wasip2 and crates of the example"]
fn the_example_in_rust_inspects_a_mesh() {
    let target = Command::new("rustup")
        .args(["target", "add", "wasm32-wasip2"])
        .output();
    if !target.is_ok_and(|target| target.status.success()) {
        skipped(
            "the example of a component",
            "needs rustup target add wasm32-wasip2",
        );
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/inspector-wasm");
    let built = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--target", "wasm32-wasip2"])
        .env("CARGO_TARGET_DIR", directory.path())
        .current_dir(source)
        .status();
    assert!(built.unwrap().success());
    let component = directory
        .path()
        .join("wasm32-wasip2/release/mesh_inspector.wasm");
    let old = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n";
    let facts = ask_file(&component, old, None).unwrap().facts;
    assert_eq!(
        (&facts["vertices"], &facts["faces"]),
        (&3.into(), &1.into())
    );
    let new = b"v 0 0 0\nv 1 0 0.5\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 3 4\n";
    let changes = ask_file(&component, old, Some(new)).unwrap();
    assert_eq!(
        changes.sentences,
        ["1 vertex moved", "vertices: 3 → 4", "faces: 1 → 2"]
    );
    let said = failure(ask_file(&component, b"v 1 2\n", None));
    assert!(
        said.contains("line 1: a vertex has three numbers"),
        "{said}"
    );
}
