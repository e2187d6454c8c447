//! Calls of functions in the Open Provenance Model, as SPADE's reporter `LLVMTrace` writes them.
//!
//! In: the log of a run that was recorded with `--functions`. Out: for each call a process with the
//! keys `FunctionID`, `FunctionName` and `ThreadID`, triggered by the call around it. An argument
//! is an artifact that the caller generated and the call used. A result is one that the call
//! generated. Both have the type that the log has.
//!
//! A pointer to memory that an earlier call could change was derived from that call's argument or
//! result. Such an edge is possible: the log does not show that memory is freed, and used again.
//!
//! Invariant: memory grows with the calls that are active, not with those of the run.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use backstory_eventlog::Log;
use backstory_eventlog::event::{Bytes, Event, FunctionStep, Op, ValuePointer};
use backstory_graph::address_table::ProcessTables;

use super::opm_element::OpmElement;
use crate::{Error, Result};

/// A flag of `clone`: the child is a thread.
const CLONE_THREAD: u32 = 0x1_0000;

/// A call that has not returned.
struct OpenCall {
    /// Its number in the output.
    id: u64,
    /// The function's number in the log.
    function: u32,
}

/// A function, as the log names it.
struct FunctionName {
    name: Bytes,
    location: Bytes,
    types: FunctionTypes,
}

/// The types of a function's values in words of LLVM. Empty: not known.
#[derive(Clone, Default)]
struct FunctionTypes {
    result: String,
    parameters: Vec<String>,
}

impl FunctionTypes {
    /// The types in a type, as `i32(ptr,?)`.
    fn of(kind: &[u8]) -> FunctionTypes {
        let known = |word: &str| match word {
            "?" | "void" => String::new(),
            word => word.to_owned(),
        };
        let text = String::from_utf8_lossy(kind);
        let Some((result, parameters)) = text.split_once('(') else {
            return FunctionTypes::default();
        };
        FunctionTypes {
            result: known(result),
            parameters: parameters
                .trim_end_matches(')')
                .split(',')
                .map(known)
                .collect(),
        }
    }

    /// The type of a parameter, or of the result.
    fn get(&self, parameter: Option<usize>) -> Option<&str> {
        let found = match parameter {
            Some(at) => self.parameters.get(at)?,
            None => &self.result,
        };
        Some(found.as_str()).filter(|word| !word.is_empty())
    }
}

/// Writes calls, and remembers those that are active.
struct CallWriter<'o> {
    out: &'o mut dyn Write,
    names: HashMap<u32, FunctionName>,
    /// By process and thread.
    active: HashMap<(u32, u32), Vec<OpenCall>>,
    /// The artifacts of pointers with which calls could change memory.
    buffers: ProcessTables<String>,
    calls: u64,
}

/// Writes the calls of a run.
pub(super) fn write_calls(path: &Path, out: &mut dyn Write) -> Result<()> {
    let log = Log::open(path)?;
    let mut writer = CallWriter::new(out);
    for event in log.events() {
        writer.take(&event)?;
    }
    match writer.calls {
        0 => Err(Error::Nothing {
            subject: format!("run {}", log.header().id),
            what: "calls of functions",
            advice: "record with --functions NAME",
        }),
        _ => Ok(()),
    }
}

impl CallWriter<'_> {
    fn new(out: &mut dyn Write) -> CallWriter<'_> {
        CallWriter {
            out,
            names: HashMap::new(),
            active: HashMap::new(),
            buffers: ProcessTables::default(),
            calls: 0,
        }
    }

    fn take(&mut self, event: &Event) -> Result<()> {
        let thread = (event.pid, event.tid);
        match &event.op {
            Op::Function {
                number,
                name,
                location,
                kind,
            } => {
                let function = FunctionName {
                    name: name.clone(),
                    location: location.clone(),
                    types: FunctionTypes::of(kind),
                };
                self.names.insert(*number, function);
            }
            Op::Calls(steps) => steps.iter().try_for_each(|step| match *step {
                FunctionStep::Call { number, .. } => self.begin(thread, number),
                FunctionStep::Return { .. } => {
                    // A child by fork returns from calls of its parent.
                    let _ = self.active.entry(thread).or_default().pop();
                    Ok(())
                }
            })?,
            Op::Values {
                number,
                returned,
                values,
                pointers,
            } => {
                self.values(thread, *number, *returned, (values, pointers))?;
            }
            Op::Fork { flags, .. } if flags & CLONE_THREAD == 0 => {
                if let Some(child) = event.outcome.value().filter(|&child| child > 0) {
                    let child = child as u32;
                    // A process that a signal killed has no exit, and another one can get its id.
                    self.forget(child);
                    self.buffers.begin(child, Some(event.pid));
                }
            }
            // Another program begins, unless the call failed.
            Op::Exec { .. } if event.outcome.value().is_none_or(|value| value >= 0) => {
                self.forget(event.pid);
            }
            Op::Exit { .. } => self.forget(event.pid),
            _ => {}
        }
        Ok(())
    }

    /// Forgets the calls of a process.
    fn forget(&mut self, process: u32) {
        self.active.retain(|(pid, _), _| *pid != process);
        self.buffers.forget(process);
    }

    fn begin(&mut self, thread: (u32, u32), function: u32) -> Result<()> {
        let id = self.calls;
        self.calls += 1;
        let name = self.name(function);
        let mut call = OpmElement::new("Process")
            .with("id", call_id(id))
            .with("FunctionID", unique(&name, id, thread.1))
            .with("FunctionName", &name)
            .with("ThreadID", thread.1.to_string())
            .with("pid", thread.0.to_string());
        if let Some(known) = self
            .names
            .get(&function)
            .filter(|one| !one.location.is_empty())
        {
            call = call.with("location", &known.location);
        }
        self.out.write_all(&call.line())?;
        let active = self.active.entry(thread).or_default();
        let around = active.last().map(|open| open.id);
        active.push(OpenCall { id, function });
        match around {
            Some(around) => self.edge("WasTriggeredBy", call_id(id), call_id(around)),
            None => Ok(()),
        }
    }

    /// The values of the thread's innermost call.
    fn values(
        &mut self,
        thread: (u32, u32),
        function: u32,
        returned: bool,
        (values, pointers): (&[Bytes], &[ValuePointer]),
    ) -> Result<()> {
        let active = self
            .active
            .get(&thread)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let Some((OpenCall { id, .. }, outer)) = active
            .split_last()
            .filter(|(open, _)| open.function == function)
        else {
            return Ok(());
        };
        let (id, around) = (*id, outer.last().map(|open| open.id));
        let types = self.names.get(&function).map(|one| one.types.clone());
        let types = types.unwrap_or_default();
        let function = self.name(function);
        for (at, text) in values.iter().enumerate() {
            let (name, value) = split(text);
            let artifact = match returned {
                true => format!("r{id}"),
                false => format!("a{id}-{at}"),
            };
            let mut vertex = OpmElement::new("Artifact").with("id", &artifact);
            if !returned {
                // LLVMTrace's key is `ID`. SPADE's language would take that for `id`.
                vertex = vertex.with("ArgID", argument(&function, id, at));
            }
            if let Some(kind) = types.get((!returned).then_some(at)) {
                let key = if returned { "ReturnType" } else { "ArgType" };
                vertex = vertex.with(key, kind);
            }
            let vertex = match returned {
                true => vertex.with("ReturnVal", value),
                false => vertex.with("ArgName", name).with("ArgVal", value),
            };
            self.out.write_all(&vertex.line())?;
            if let Some(pointer) = pointers.iter().find(|one| &*one.name == name) {
                self.derive(thread.0, &artifact, pointer, returned)?;
            }
            match returned {
                true => self.edge("WasGeneratedBy", artifact, call_id(id))?,
                false => {
                    self.edge("Used", call_id(id), artifact.clone())?;
                    if let Some(around) = around {
                        self.edge("WasGeneratedBy", artifact, call_id(around))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Joins a pointer with those of earlier calls that could change the same memory.
    fn derive(
        &mut self,
        process: u32,
        artifact: &str,
        pointer: &ValuePointer,
        returned: bool,
    ) -> Result<()> {
        let earlier = (self.buffers).overlapping(process, pointer.address, pointer.bytes);
        for earlier in earlier {
            let edge = OpmElement::new("WasDerivedFrom")
                .with("from", artifact)
                .with("to", earlier)
                .with("certainty", "possible");
            self.out.write_all(&edge.line())?;
        }
        if returned || !pointer.is_constant {
            let buffers = self.buffers.of(process);
            buffers.set(pointer.address, pointer.bytes, artifact.to_owned());
        }
        Ok(())
    }

    fn edge(&mut self, sort: &str, effect: String, cause: String) -> Result<()> {
        let edge = OpmElement::new(sort).with("from", effect).with("to", cause);
        Ok(self.out.write_all(&edge.line())?)
    }

    fn name(&self, function: u32) -> Vec<u8> {
        let known = self.names.get(&function).map(|one| one.name.to_vec());
        known.unwrap_or_else(|| format!("function {function:x}").into_bytes())
    }
}

fn call_id(id: u64) -> String {
    format!("c{id}")
}

/// The key that tells calls of one function apart, in LLVMTrace's form.
fn unique(name: &[u8], id: u64, tid: u32) -> Vec<u8> {
    [name, format!(".{id}.{tid}").as_bytes()].concat()
}

fn argument(name: &[u8], id: u64, at: usize) -> Vec<u8> {
    [name, format!(".{id}-{at}").as_bytes()].concat()
}

/// The name and the value of `NAME=VALUE`.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    let at = text.iter().position(|byte| *byte == b'=');
    at.map_or((text, &b""[..]), |at| (&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use backstory_eventlog::event::{Outcome, Via};

    use super::*;

    fn event(pid: u32, outcome: i32, op: Op) -> Event {
        Event {
            time: 0,
            pid,
            tid: pid,
            via: Via::Library,
            outcome: Outcome::Done(outcome),
            ident: None,
            resolved: false,
            op,
        }
    }

    /// A call of `f(p)` that does not return.
    fn call(pid: u32) -> [Event; 2] {
        let step = FunctionStep::Call {
            number: 1,
            after: 1,
        };
        let pointer = ValuePointer {
            name: b"p".as_slice().into(),
            address: 0x1000,
            bytes: 8,
            is_constant: false,
        };
        let values = Op::Values {
            number: 1,
            returned: false,
            values: vec![b"p=0x1000".as_slice().into()],
            pointers: vec![pointer],
        };
        [
            event(pid, 0, Op::Calls(Box::new([step]))),
            event(pid, 0, values),
        ]
    }

    fn fork(parent: u32, child: i32) -> Event {
        let fork = Op::Fork {
            flags: 0,
            spawn: None,
        };
        event(parent, child, fork)
    }

    /// The edges between calls and between their values.
    fn edges(events: impl IntoIterator<Item = Event>) -> Vec<String> {
        let mut out = Vec::new();
        let mut writer = CallWriter::new(&mut out);
        for event in events {
            writer.take(&event).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        let edges = text
            .lines()
            .filter(|line| line.contains("WasDerivedFrom") || line.contains("WasTriggeredBy"));
        edges.map(str::to_owned).collect()
    }

    #[test]
    fn a_process_with_the_id_of_a_killed_one_has_none_of_its_calls_and_buffers() {
        // Process 8 is killed, so that the log has no exit of it.
        let reused = call(8).into_iter().chain([fork(7, 8)]).chain(call(8));
        assert_eq!(edges(reused), Vec::<String>::new());
        let forked = call(7).into_iter().chain([fork(7, 8)]).chain(call(8));
        let derived = "type:WasDerivedFrom from:a1-0 to:a0-0 certainty:possible";
        assert_eq!(edges(forked), [derived]);
    }
}
