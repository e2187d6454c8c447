//! Evaluates a user's expression (CEL) about each node of a graph.
//!
//! In: an expression, and lines of JSON: the first names the fields of nodes, each other is a node.
//! Out: a line of JSON for each node for which the expression is true or has no value. A field is a
//! variable of the expression.
//!
//! Invariant: a wrong expression is reported once, with line and column. That includes comparisons
//! of types that are never equal. Absent: limits, which the sandbox sets.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};

use cel::common::ast::{EntryExpr, Expr, IdedExpr, MapExpr, StructExpr};
use cel::objects::Map;
use cel::{Context, Program, Value as Cel};
use serde_json::{Value, json};

use crate::expression_types::constant_comparison;

/// The most bytes of an expression.
pub const LONGEST: usize = 8 << 10;

/// Writes the verdicts to standard output.
///
/// # Errors
/// The caller has stopped reading, or its lines are not JSON.
pub fn write_verdicts(expression: &str, lines: &[u8]) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut lines = lines
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    let hello: Value = serde_json::from_slice(lines.next().unwrap_or(b"{}"))?;
    let program = match compiled(expression, &hello) {
        Ok(program) => program,
        Err(mistake) => {
            writeln!(out, "{mistake}")?;
            return out.flush();
        }
    };
    // The functions of the language are made once.
    let mut language = Context::default();
    language.add_variable_from_value("run", from_json(&hello["run"]));
    for line in lines {
        let node: Value = serde_json::from_slice(line)?;
        let mut context = language.new_inner_scope();
        for (name, value) in node.as_object().into_iter().flatten() {
            context.add_variable_from_value(name.as_str(), from_json(value));
        }
        let id = &node["id"];
        match program.execute(&context) {
            Ok(Cel::Bool(false)) => {}
            Ok(Cel::Bool(true)) => writeln!(out, "{}", json!({"id": id, "action": "match"}))?,
            Ok(_) => {
                let error = "the expression is neither true nor false";
                writeln!(out, "{}", json!({"id": id, "error": error}))?;
            }
            Err(error) => writeln!(out, "{}", json!({"id": id, "error": error.to_string()}))?,
        }
    }
    out.flush()
}

/// The program of an expression, or the line that reports its first mistake.
fn compiled(expression: &str, hello: &Value) -> Result<Program, Value> {
    let mistake = |line: isize, column: isize, what: &str| json!({"error": what, "line": line.max(1), "column": column.max(1)});
    let program = Program::compile(expression).map_err(|errors| {
        let first = errors.errors.first();
        let (line, column) = first.map_or((1, 1), |error| error.pos);
        mistake(line, column, first.map_or("", |error| &error.msg))
    })?;
    let fields: Vec<&str> = match hello["fields"].as_array() {
        Some(fields) => fields.iter().filter_map(Value::as_str).collect(),
        None => return Ok(program),
    };
    let mut known = fields;
    if !known.contains(&"run") {
        known.push("run");
    }
    let all = known.join(", ");
    let unknown = unknown_variable(program.expression(), &mut known);
    let wrong = match unknown {
        Some((id, name)) => Some((id, format!("unknown variable {name}; there are {all}"))),
        None => constant_comparison(program.expression(), &hello["types"]),
    };
    let Some((id, what)) = wrong else {
        return Ok(program);
    };
    let start = program
        .source_info()
        .offset_for(id)
        .map_or(0, |(start, _)| start as usize);
    let (line, column) = position(expression, start);
    Err(mistake(line, column, &what))
}

/// The first variable that is not known, with the number of its part of the expression. A macro
/// such as `exists` has variables of its own.
fn unknown_variable<'e>(part: &'e IdedExpr, known: &mut Vec<&'e str>) -> Option<(u64, &'e str)> {
    match &part.expr {
        Expr::Unspecified | Expr::Literal(_) => None,
        Expr::Ident(name) => (!known.contains(&name.as_str())).then_some((part.id, name)),
        Expr::Select(select) => unknown_variable(&select.operand, known),
        Expr::Call(call) => {
            let mut parts = call.target.as_deref().into_iter().chain(&call.args);
            parts.find_map(|part| unknown_variable(part, known))
        }
        Expr::List(list) => {
            let mut parts = list.elements.iter();
            parts.find_map(|part| unknown_variable(part, known))
        }
        Expr::Map(MapExpr { entries }) | Expr::Struct(StructExpr { entries, .. }) => {
            entries.iter().find_map(|entry| match &entry.expr {
                EntryExpr::StructField(field) => unknown_variable(&field.value, known),
                EntryExpr::MapEntry(entry) => unknown_variable(&entry.key, known)
                    .or_else(|| unknown_variable(&entry.value, known)),
            })
        }
        Expr::Comprehension(macro_) => {
            let outside = [&macro_.iter_range, &macro_.accu_init];
            let found = outside
                .into_iter()
                .find_map(|part| unknown_variable(part, known));
            let before = known.len();
            known.extend([macro_.iter_var.as_str(), macro_.accu_var.as_str()]);
            known.extend(macro_.iter_var2.as_deref());
            let inside = [&macro_.loop_cond, &macro_.loop_step, &macro_.result];
            let found = found.or_else(|| {
                inside
                    .into_iter()
                    .find_map(|part| unknown_variable(part, known))
            });
            known.truncate(before);
            found
        }
    }
}

/// Line and column of a byte, from 1.
fn position(text: &str, at: usize) -> (isize, isize) {
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() as isize + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() as isize + 1;
    (line, column)
}

fn from_json(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Cel::Int(number),
            (None, number) => Cel::Float(number.unwrap_or_default()),
        },
        Value::String(text) => Cel::from(text.as_str()),
        Value::Array(values) => Cel::from(values.iter().map(from_json).collect::<Vec<Cel>>()),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), from_json(value)));
            Cel::Map(Map::from(fields.collect::<HashMap<String, Cel>>()))
        }
    }
}
