//! Users' filters of graphs in WebAssembly, each in a real worker.

use backstory_inspection::judging::{JudgeProgram, JudgeTrouble, judge_by};

fn judged(component: &[u8], lines: &str) -> Result<String, JudgeTrouble> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter.wasm");
    std::fs::write(&path, component).unwrap();
    let answer = judge_by(
        &super::worker(),
        &JudgeProgram::Component(path),
        lines.as_bytes(),
    )?;
    Ok(String::from_utf8(answer).unwrap())
}

#[test]
fn a_component_judges_nodes() {
    let component = wat::parse_str(include_str!("first_node.wat")).unwrap();
    let answer = judged(&component, "{}\n{\"id\":0}\n").unwrap();
    assert_eq!(answer, "{\"id\":0,\"action\":\"drop\"}\n");
    let large = format!("{{}}\n{}", "{\"id\":0}\n".repeat(400_000));
    assert_eq!(judged(&component, &large).unwrap(), answer);
}

#[test]
fn a_component_that_loops_refuses_or_is_of_another_world_is_an_error() {
    let component = wat::parse_str(include_str!("first_node.wat")).unwrap();
    let other = wat::parse_str(include_str!("first_byte.wat")).unwrap();
    for (component, lines, why) in [
        (&component[..], "!", "was ended"),
        (&component, "?", "no node is mine"),
        (&other, "{}", "filter@1.0.0"),
        (b"\0asm nothing", "{}", "not a WebAssembly component"),
        (b"a text", "{}", "not a WebAssembly component: magic header"),
    ] {
        let failure = judged(component, lines).unwrap_err().to_string();
        assert!(failure.contains(why), "{lines}: {failure}");
    }
}
