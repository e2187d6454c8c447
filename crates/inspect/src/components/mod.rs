//! Runs a user's inspector that is a WebAssembly component.
//!
//! In: a question with a component (crate `inspection`, `question.rs`). Out: an answer. The world
//! of a component is `wit/inspector.wit`: two functions of the file's name and contents.
//!
//! The component is compiled for Pulley, wasmtime's interpreter. No memory becomes executable, so
//! the sandbox is that of the built-in inspectors. A filter of graphs is another world
//! (`filter.rs`).
//!
//! Invariant: a component costs at most [`FUEL`] instructions and [`MEMORY`] bytes, and calls
//! nothing outside of itself. Absent: the limits of the whole process (`sandbox.rs`).

use backstory_inspection::Answer;
use backstory_inspection::question::ReadQuestion;
use serde_json::{Map, Value};

use crate::{Read, UnreadableContent, refusal};
pub use engine::{FUEL, MEMORY};
use engine::{PreparedComponent, because, stopped};

mod engine;
pub mod filter;

mod world {
    // The macro writes the functions, which have the documentation of the file.
    #![allow(missing_docs, clippy::all, clippy::pedantic)]
    wasmtime::component::bindgen!({ path: "wit", world: "inspector" });
}

/// Answers a question by its component.
pub fn answer(question: &ReadQuestion<'_>) -> Answer {
    let mut answer = refusal(&question.head, "");
    answer.error = None;
    if let Err(error) = ask(question, &mut answer) {
        return refusal(&question.head, &error.to_string());
    }
    answer
}

fn ask(question: &ReadQuestion<'_>, answer: &mut Answer) -> Read<()> {
    let Some(component) = question.component else {
        return Err(UnreadableContent(
            "the question has no component".to_owned(),
        ));
    };
    let PreparedComponent {
        component,
        linker,
        mut store,
    } = PreparedComponent::of(component)?;
    let inspector =
        world::Inspector::instantiate(&mut store, &component, &linker).map_err(|error| {
            because(
                "it does not fit the world backstory:inspect/inspector@1.0.0",
                &error,
            )
        })?;
    let name = &question.head.name;
    match *question.contents {
        [one] => {
            let told = inspector.call_facts(&mut store, name, one);
            answer.facts = object(&told.map_err(stopped)?.map_err(UnreadableContent)?)?;
        }
        [old, new] => {
            let told = inspector.call_changes(&mut store, name, old, new);
            let (sentences, changes) = told.map_err(stopped)?.map_err(UnreadableContent)?;
            (answer.sentences, answer.changes) = (sentences, object(&changes)?);
        }
        _ => return Err(UnreadableContent("there is nothing to inspect".to_owned())),
    }
    Ok(())
}

/// The JSON object that a component wrote.
fn object(text: &str) -> Read<Map<String, Value>> {
    serde_json::from_str(text).map_err(|error| {
        UnreadableContent(format!(
            "the inspector did not write a JSON object: {error}"
        ))
    })
}
