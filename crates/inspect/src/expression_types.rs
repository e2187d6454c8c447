//! Finds comparisons whose result no value of their types can change.
//!
//! In: the parts of an expression (CEL), and the types of its variables. Out: the first such
//! comparison. `path == 3` is false for each text, so that a rule with it would decide nothing.
//!
//! Invariant: a comparison that depends on the values is never reported. A part whose type is not
//! known can have any type.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, MapExpr, StructExpr,
    operators,
};
use serde_json::Value;

const STRING: u8 = 1;
const NUMBER: u8 = 1 << 1;
const BOOL: u8 = 1 << 2;
const NULL: u8 = 1 << 3;
const LIST: u8 = 1 << 4;
const MAP: u8 = 1 << 5;
const BYTES: u8 = 1 << 6;
const ANY: u8 = u8::MAX;

/// The words of the types in messages.
const WORDS: [(u8, &str); 7] = [
    (STRING, "a string"),
    (NUMBER, "a number"),
    (BOOL, "a bool"),
    (NULL, "null"),
    (LIST, "a list"),
    (MAP, "a map"),
    (BYTES, "bytes"),
];

/// The types that a value can have, one bit each.
#[derive(Debug, Clone, Copy)]
struct Types {
    own: u8,
    /// The types of its elements, if it is a list.
    elements: u8,
}

const UNKNOWN: Types = Types {
    own: ANY,
    elements: ANY,
};

impl Types {
    fn of(own: u8) -> Types {
        Types { own, elements: ANY }
    }

    /// The types of a variable, by the word of the caller (crate `pipeline`, `fields.rs`).
    fn of_word(word: &str) -> Types {
        match word {
            "string" => Types::of(STRING),
            "number" => Types::of(NUMBER),
            "number or null" => Types::of(NUMBER | NULL),
            "bool" => Types::of(BOOL),
            "bool or null" => Types::of(BOOL | NULL),
            "list of strings" => Types {
                own: LIST,
                elements: STRING,
            },
            _ => UNKNOWN,
        }
    }

    fn or(self, other: Types) -> Types {
        Types {
            own: self.own | other.own,
            elements: self.elements | other.elements,
        }
    }
}

/// The first comparison whose result no value can change: the number of its part, and the reason.
/// `types` is a JSON object: the variables with the words of their types.
pub fn constant_comparison<'e>(
    expression: &'e IdedExpr,
    types: &'e Value,
) -> Option<(u64, String)> {
    let known = types.as_object().into_iter().flatten();
    let typed = known.map(|(name, word)| {
        let word = word.as_str().unwrap_or_default();
        (name.as_str(), Types::of_word(word))
    });
    let mut search = Search {
        variables: typed.collect(),
        found: None,
    };
    search.types(expression);
    search.found
}

struct Search<'e> {
    /// The variables with their types. The last one of a name counts.
    variables: Vec<(&'e str, Types)>,
    found: Option<(u64, String)>,
}

impl<'e> Search<'e> {
    /// The types that a part can have. Each part within it is looked at once.
    fn types(&mut self, part: &'e IdedExpr) -> Types {
        match &part.expr {
            Expr::Unspecified => UNKNOWN,
            Expr::Literal(literal) => Types::of(match literal {
                LiteralValue::Boolean(_) => BOOL,
                LiteralValue::Bytes(_) => BYTES,
                LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => NUMBER,
                LiteralValue::Null => NULL,
                LiteralValue::String(_) => STRING,
            }),
            Expr::Ident(name) => {
                let mut newest = self.variables.iter().rev();
                let known = newest.find(|(known, _)| known == name);
                known.map_or(UNKNOWN, |(_, types)| *types)
            }
            Expr::Select(select) => {
                self.types(&select.operand);
                Types::of(if select.test { BOOL } else { ANY })
            }
            Expr::Call(call) => self.call(part.id, call),
            Expr::List(list) => {
                let mut elements = 0;
                for element in &list.elements {
                    elements |= self.types(element).own;
                }
                // The list of a macro is empty at first. An optional element can be absent.
                if list.elements.is_empty() || !list.optional_indices.is_empty() {
                    elements = ANY;
                }
                Types {
                    own: LIST,
                    elements,
                }
            }
            Expr::Map(MapExpr { entries }) | Expr::Struct(StructExpr { entries, .. }) => {
                for entry in entries {
                    match &entry.expr {
                        EntryExpr::StructField(field) => self.types(&field.value),
                        EntryExpr::MapEntry(entry) => {
                            self.types(&entry.key);
                            self.types(&entry.value)
                        }
                    };
                }
                Types::of(if let Expr::Map(_) = part.expr {
                    MAP
                } else {
                    ANY
                })
            }
            Expr::Comprehension(macro_) => self.comprehension(macro_),
        }
    }

    /// The result of a macro such as `exists`, which has variables of its own.
    fn comprehension(&mut self, macro_: &'e ComprehensionExpr) -> Types {
        let range = self.types(&macro_.iter_range);
        let result = self.types(&macro_.accu_init);
        let before = self.variables.len();
        let element = match &macro_.iter_var2 {
            None if range.own == LIST => Types::of(range.elements),
            _ => UNKNOWN,
        };
        self.variables.push((macro_.iter_var.as_str(), element));
        let second = macro_.iter_var2.as_deref();
        self.variables.extend(second.map(|name| (name, UNKNOWN)));
        self.variables.push((macro_.accu_var.as_str(), result));
        self.types(&macro_.loop_cond);
        self.types(&macro_.loop_step);
        let result = self.types(&macro_.result);
        self.variables.truncate(before);
        result
    }

    fn call(&mut self, id: u64, call: &'e CallExpr) -> Types {
        if let Some(target) = call.target.as_deref() {
            self.types(target);
        }
        let args: Vec<Types> = call.args.iter().map(|part| self.types(part)).collect();
        let name = call.func_name.as_str();
        match (name, &args[..]) {
            (
                operators::EQUALS
                | operators::NOT_EQUALS
                | operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS
                | operators::IN,
                &[left, right],
            ) => {
                if self.found.is_none() {
                    self.found = mistake(name, left, right).map(|what| (id, what));
                }
                Types::of(BOOL)
            }
            (
                operators::LOGICAL_AND
                | operators::LOGICAL_OR
                | operators::LOGICAL_NOT
                | operators::NOT_STRICTLY_FALSE
                | "startsWith"
                | "endsWith"
                | "contains"
                | "matches",
                _,
            ) => Types::of(BOOL),
            (
                operators::NEGATE
                | operators::SUBSTRACT
                | operators::MULTIPLY
                | operators::DIVIDE
                | operators::MODULO
                | "size"
                | "int"
                | "uint"
                | "double",
                _,
            ) => Types::of(NUMBER),
            ("string", _) => Types::of(STRING),
            (operators::ADD, &[left, right]) if left.own == right.own => left.or(right),
            (operators::CONDITIONAL, &[_, yes, no]) => yes.or(no),
            (operators::INDEX, &[list, _]) if list.own == LIST => Types::of(list.elements),
            _ => UNKNOWN,
        }
    }
}

/// The reason why a comparison of these types has the same result for all values.
fn mistake(operator: &str, left: Types, right: Types) -> Option<String> {
    if operator == operators::IN {
        return match right.own & (LIST | MAP) {
            0 => Some(format!("nothing is in {}: it is no list", words(right.own))),
            _ if right.own == LIST && left.own & right.elements == 0 => {
                let (left, elements) = (words(left.own), words(right.elements));
                Some(format!(
                    "{left} is never in this list: each element is {elements}"
                ))
            }
            _ => None,
        };
    }
    if left.own & right.own != 0 {
        return None;
    }
    let (left, right) = (words(left.own), words(right.own));
    Some(match operator {
        operators::EQUALS | operators::NOT_EQUALS => format!("{left} is never equal to {right}"),
        _ => format!("{left} is neither less nor greater than {right}"),
    })
}

/// The types as a phrase.
fn words(types: u8) -> String {
    let words = WORDS.iter().filter(|(bit, _)| types & bit != 0);
    let words: Vec<&str> = words.map(|(_, word)| *word).collect();
    words.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(expression: &str) -> Option<String> {
        let program = cel::Program::compile(expression).unwrap();
        let types = serde_json::json!({
            "path": "string", "size": "number", "last": "bool", "exit": "number or null",
            "same": "bool or null", "names": "list of strings", "new": "a type of a newer version",
        });
        constant_comparison(program.expression(), &types).map(|(_, what)| what)
    }

    #[test]
    fn a_comparison_that_no_value_can_change_is_found() {
        for (expression, what) in [
            ("path == 3", "a string is never equal to a number"),
            ("3 != path", "a number is never equal to a string"),
            (
                "last && !(size == '3')",
                "a number is never equal to a string",
            ),
            ("path == null", "a string is never equal to null"),
            ("exit == '0'", "a number or null is never equal to a string"),
            ("names == 'x'", "a list is never equal to a string"),
            ("names[0] == 1", "a string is never equal to a number"),
            ("size(path) == '1'", "a number is never equal to a string"),
            (
                "(last ? 1 : 2) == path",
                "a number is never equal to a string",
            ),
            ("path + 'x' == 1", "a string is never equal to a number"),
            (
                "names.exists(n, n == 3)",
                "a string is never equal to a number",
            ),
            (
                "path < 3",
                "a string is neither less nor greater than a number",
            ),
            (
                "3 in names",
                "a number is never in this list: each element is a string",
            ),
            ("path in [1, true]", "each element is a number or a bool"),
            ("'x' in path", "nothing is in a string"),
        ] {
            let found = found(expression);
            assert!(
                found.as_deref().is_some_and(|found| found.contains(what)),
                "{expression}: {found:?}"
            );
        }
    }

    #[test]
    fn a_comparison_that_depends_on_values_is_none() {
        for expression in [
            "path == 'x' && size > 3 && size >= 3.5 && last == true",
            "exit == null || exit == 0 || same == null || same != false",
            "'x' in names && names.all(n, n != '') && path in ['a', 'b']",
            "names.map(n, size(n)).exists(k, k == 3)",
            "names.filter(n, n == 'x') == [] && names.exists_one(n, n == 'x')",
            "run.name == null && run.command[0] == 'x' && run.id == path",
            "new == 3 && new == 'x' && [1, 'x'][0] == path && path in []",
            "(last ? 1 : path) == path && {'a': 1}.a == 1 && 'a' in {'a': 1}",
            "string(size) == path && int(path) == size && path.size() == 3",
        ] {
            assert_eq!(found(expression), None, "{expression}");
        }
    }
}
