//! YAML with the place of each value, for messages about rules.
//!
//! In: a text. Out: its documents as trees. Bounded: the text's length, the depth, and no aliases,
//! so that a small file cannot become a large tree. A key that occurs twice is a mistake.

use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::{ScanError, TScalarStyle};

/// Longest text in bytes.
const LONGEST: usize = 1 << 20;
/// Deepest nesting.
const DEEPEST: usize = 16;

/// A line and a column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A mistake in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where it is.
    pub at: Place,
    /// The mistake, and how to correct it.
    pub cause: String,
}

impl Place {
    /// A mistake here.
    pub fn mistake(self, cause: impl Into<String>) -> Mistake {
        Mistake {
            at: self,
            cause: cause.into(),
        }
    }
}

/// A value, with its place.
#[derive(Debug)]
pub struct Node {
    /// Where it begins.
    pub at: Place,
    /// Its content.
    pub value: NodeValue,
}

/// A value.
#[derive(Debug)]
pub enum NodeValue {
    /// A text or number. True if it is the null of YAML.
    Scalar(String, bool),
    /// A list.
    List(Vec<Node>),
    /// Keys and values, in the order of the text.
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// The text of a scalar.
    ///
    /// # Errors
    ///
    /// It is a list or a map.
    pub fn text(&self) -> Result<&str, Mistake> {
        match &self.value {
            NodeValue::Scalar(text, _) => Ok(text),
            _ => Err(self.at.mistake("expected a text")),
        }
    }

    /// The items of a list. A scalar is a list of itself.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            NodeValue::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// The texts of a list of scalars.
    ///
    /// # Errors
    ///
    /// An item is no scalar.
    pub fn texts(&self) -> Result<Vec<String>, Mistake> {
        let texts = self.items().iter();
        texts.map(|item| item.text().map(str::to_owned)).collect()
    }

    /// The entries of a map.
    ///
    /// # Errors
    ///
    /// It is no map.
    pub fn entries(&self) -> Result<&[(Node, Node)], Mistake> {
        match &self.value {
            NodeValue::Map(entries) => Ok(entries),
            _ => Err(self.at.mistake("expected `key: value` lines")),
        }
    }

    /// The value of a key in a map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let entries = self.entries().ok()?.iter();
        let mut found = entries.filter(|(name, _)| name.text() == Ok(key));
        found.next().map(|(_, value)| value)
    }
}

/// A collection that is not complete yet.
enum Open {
    List(Place, Vec<Node>),
    Map(Place, Vec<(Node, Node)>, Option<Node>),
}

/// The documents of a text.
///
/// # Errors
///
/// The text is no YAML, or exceeds a bound.
pub fn documents(text: &str) -> Result<Vec<Node>, Mistake> {
    let begin = Place { line: 1, column: 1 };
    if text.len() > LONGEST {
        return Err(begin.mistake("the file has more than 1 MB"));
    }
    let mut parser = Parser::new_from_str(text);
    let (mut open, mut documents) = (Vec::<Open>::new(), Vec::new());
    loop {
        let (event, mark) = parser.next_token().map_err(|error| scanned(&error))?;
        let at = Place {
            line: mark.line().max(1),
            column: mark.col() + 1,
        };
        let whole = match event {
            Event::StreamEnd => return Ok(documents),
            Event::Alias(_) => {
                return Err(at.mistake("aliases are not supported: repeat the value"));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == DEEPEST => {
                return Err(at.mistake("nested too deeply"));
            }
            Event::SequenceStart(..) => {
                open.push(Open::List(at, Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(at, Vec::new(), None));
                continue;
            }
            Event::Scalar(text, style, ..) => {
                let is_null = style == TScalarStyle::Plain && matches!(&*text, "" | "~" | "null");
                Node {
                    at,
                    value: NodeValue::Scalar(text, is_null),
                }
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(at, items)) => Node {
                    at,
                    value: NodeValue::List(items),
                },
                Some(Open::Map(at, entries, _)) => Node {
                    // Without braces, the parser has the colon after the first key.
                    at: entries.first().map_or(at, |(key, _)| at.min(key.at)),
                    value: NodeValue::Map(entries),
                },
                None => continue,
            },
            _ => continue,
        };
        match open.last_mut() {
            None => documents.push(whole),
            Some(Open::List(_, items)) => items.push(whole),
            Some(Open::Map(_, entries, key)) => match key.take() {
                None => {
                    let name = whole.text()?;
                    if entries.iter().any(|(other, _)| other.text() == Ok(name)) {
                        return Err(whole.at.mistake(format!("`{name}` is here twice")));
                    }
                    *key = Some(whole);
                }
                Some(key) => entries.push((key, whole)),
            },
        }
    }
}

fn scanned(error: &ScanError) -> Mistake {
    let mark = error.marker();
    let at = Place {
        line: mark.line().max(1),
        column: mark.col() + 1,
    };
    at.mistake(format!("this is no YAML: {}", error.info()))
}
