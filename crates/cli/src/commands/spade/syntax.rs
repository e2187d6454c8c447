//! Statements of SPADE's query language, from words.

use super::pattern::Pattern;
use super::statistics::Statistic;
use super::words::Token;

/// A set of vertices and edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Variable(String),
    /// A method of a graph, or a function without a graph.
    Call(Option<Box<Expression>>, String, Vec<Argument>),
    /// `+`, `-` or `&`.
    Join(&'static str, Box<Expression>, Box<Expression>),
}

/// An argument of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    Graph(Expression),
    Constraint(Condition),
    Text(String),
    Number(usize),
}

/// A condition for the annotations of a vertex or an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Named(String),
    /// The key, the comparison, and the text.
    Compare(String, &'static str, String),
    /// The key, and a regular expression that its value contains.
    Matches(String, Pattern),
    Not(Box<Condition>),
    All(Box<Condition>, Box<Condition>),
    Any(Box<Condition>, Box<Condition>),
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    /// The variable, `=`, `+=`, `-=` or `&=`, and the graph.
    Graph(String, &'static str, Expression),
    Constraint(String, Condition),
    List(Option<String>),
    Statistics(Expression),
    KeyStatistic(KeyStatistic),
    Dump(Expression),
    DumpConstraint(String),
    Visualize(Expression),
    Erase(Vec<Token>),
    Reset,
    SetEnvironment(String, usize),
    UnsetEnvironment(String),
    PrintEnvironment(String),
    Help,
    Exit,
}

/// `stat vertex KEY histogram $graph` and its like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyStatistic {
    pub of_edges: bool,
    pub key: String,
    pub statistic: Statistic,
    pub graph: Expression,
    /// Digits behind the point.
    pub digits: Option<usize>,
}

/// The most intervals of a distribution, and the most digits.
pub(super) const MOST: usize = 1000;

const COMPARISONS: [&str; 8] = ["==", "!=", "<>", "<=", ">=", "<", ">", "="];

/// Reads the words of one statement.
pub(super) fn statement(tokens: &[Token]) -> Result<Statement, String> {
    let mut parser = Parser { tokens, at: 0 };
    let statement = parser.statement()?;
    match parser.peek() {
        None => Ok(statement),
        Some(token) => Err(format!("{} is not expected there", shown(token))),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<&Token> {
        self.at += 1;
        self.tokens.get(self.at - 1)
    }

    fn sign(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(sign)) if *sign == wanted);
        self.at += usize::from(found);
        found
    }

    /// Takes a name that is not case-sensitive.
    fn keyword(&mut self, wanted: &str) -> bool {
        let found =
            matches!(self.peek(), Some(Token::Name(name)) if name.eq_ignore_ascii_case(wanted));
        self.at += usize::from(found);
        found
    }

    fn need(&mut self, wanted: &str) -> Result<(), String> {
        match self.sign(wanted) {
            true => Ok(()),
            false => Err(format!("{wanted} is missing before {}", self.here())),
        }
    }

    fn here(&self) -> String {
        self.peek().map_or("the end".to_owned(), shown)
    }

    fn name(&mut self) -> Result<String, String> {
        match self.next() {
            Some(Token::Name(name)) => Ok(name.clone()),
            _ => {
                self.at -= 1;
                Err(format!("a name is missing before {}", self.here()))
            }
        }
    }

    fn statement(&mut self) -> Result<Statement, String> {
        match self.peek().cloned() {
            Some(Token::Graph(variable)) => {
                self.at += 1;
                for sign in ["=", "+=", "-=", "&="] {
                    if self.sign(sign) {
                        return Ok(Statement::Graph(variable, sign, self.graph()?));
                    }
                }
                Err(format!(
                    "= is missing after ${variable}; `dump` prints a graph"
                ))
            }
            Some(Token::Constraint(name)) => {
                self.at += 1;
                self.need("=")?;
                Ok(Statement::Constraint(name, self.condition()?))
            }
            Some(Token::Name(_)) => self.command(),
            other => Err(format!(
                "{} begins no statement",
                other.as_ref().map_or("the end".to_owned(), shown)
            )),
        }
    }

    fn command(&mut self) -> Result<Statement, String> {
        let command = self.name()?;
        match command.to_ascii_lowercase().as_str() {
            "list" => Ok(Statement::List(self.name().ok())),
            "stat" if self.keyword("vertex") => self.key_statistic(false),
            "stat" if self.keyword("edge") => self.key_statistic(true),
            "stat" => Ok(Statement::Statistics(self.graph()?)),
            "dump" => {
                if let Some(Token::Constraint(name)) = self.peek().cloned() {
                    self.at += 1;
                    return Ok(Statement::DumpConstraint(name));
                }
                let _ = self.keyword("all") || self.keyword("force");
                Ok(Statement::Dump(self.graph()?))
            }
            "visualize" => {
                let _ = self.keyword("all") || self.keyword("force");
                Ok(Statement::Visualize(self.graph()?))
            }
            "erase" => {
                let rest = self.tokens[self.at..].to_vec();
                self.at = self.tokens.len();
                Ok(Statement::Erase(rest))
            }
            "reset" if self.keyword("workspace") => Ok(Statement::Reset),
            "env" => self.environment(),
            "help" => Ok(Statement::Help),
            "exit" | "quit" => Ok(Statement::Exit),
            "native" => Err("native: `backstory query` asks in SQL".to_owned()),
            "set" => Err("set storage: the store is that of --store".to_owned()),
            _ => Err(format!(
                "there is no command '{command}'; `help` lists them"
            )),
        }
    }

    fn key_statistic(&mut self, of_edges: bool) -> Result<Statement, String> {
        let key = self.name()?;
        let name = self.name()?.to_ascii_lowercase();
        let graph = self.graph()?;
        let statistic = match name.as_str() {
            "histogram" => Statistic::Histogram,
            "mean" => Statistic::Mean,
            "std" => Statistic::Deviation,
            "distribution" => {
                let count = self.number().filter(|count| (1..=MOST).contains(count));
                let count = count.ok_or(format!("distribution: 1 to {MOST} intervals"))?;
                Statistic::Distribution(count)
            }
            _ => return Err(format!("stat {name}: histogram, mean, std or distribution")),
        };
        Ok(Statement::KeyStatistic(KeyStatistic {
            of_edges,
            key,
            statistic,
            graph,
            digits: self.number(),
        }))
    }

    fn number(&mut self) -> Option<usize> {
        let Some(Token::Number(number)) = self.peek() else {
            return None;
        };
        let number = *number;
        self.at += 1;
        Some(number)
    }

    fn environment(&mut self) -> Result<Statement, String> {
        let what = self.name()?;
        let variable = self.name()?;
        match what.as_str() {
            "set" => match self.next() {
                Some(Token::Number(number)) => Ok(Statement::SetEnvironment(variable, *number)),
                _ => Err(format!("env set {variable}: a number is missing")),
            },
            "unset" => Ok(Statement::UnsetEnvironment(variable)),
            "print" => Ok(Statement::PrintEnvironment(variable)),
            _ => Err(format!("env {what}: set, unset or print")),
        }
    }

    fn graph(&mut self) -> Result<Expression, String> {
        let mut left = self.operand()?;
        loop {
            let sign = ["+", "-", "&"].into_iter().find(|sign| self.sign(sign));
            let Some(sign) = sign else {
                return Ok(left);
            };
            left = Expression::Join(sign, Box::new(left), Box::new(self.operand()?));
        }
    }

    fn operand(&mut self) -> Result<Expression, String> {
        let mut graph = match self.peek().cloned() {
            Some(Token::Graph(name)) => {
                self.at += 1;
                Expression::Variable(name)
            }
            Some(Token::Name(name)) => {
                self.at += 1;
                Expression::Call(None, name, self.arguments()?)
            }
            Some(Token::Sign("(")) => {
                self.at += 1;
                let inner = self.graph()?;
                self.need(")")?;
                inner
            }
            _ => return Err(format!("a graph is missing before {}", self.here())),
        };
        while self.sign(".") {
            let method = self.name()?;
            graph = Expression::Call(Some(Box::new(graph)), method, self.arguments()?);
        }
        Ok(graph)
    }

    fn arguments(&mut self) -> Result<Vec<Argument>, String> {
        self.need("(")?;
        let mut all = Vec::new();
        while !self.sign(")") {
            if !all.is_empty() {
                self.need(",")?;
            }
            all.push(self.argument()?);
        }
        Ok(all)
    }

    fn argument(&mut self) -> Result<Argument, String> {
        Ok(match self.peek().cloned() {
            Some(Token::Number(number)) => {
                self.at += 1;
                Argument::Number(number)
            }
            Some(Token::Text(text)) => {
                self.at += 1;
                Argument::Text(text)
            }
            Some(Token::Name(_) | Token::Constraint(_)) => Argument::Constraint(self.condition()?),
            _ => Argument::Graph(self.graph()?),
        })
    }

    fn condition(&mut self) -> Result<Condition, String> {
        let mut left = self.comparison()?;
        loop {
            let is_all = self.keyword("and");
            if !is_all && !self.keyword("or") {
                return Ok(left);
            }
            let (one, other) = (Box::new(left), Box::new(self.comparison()?));
            left = match is_all {
                true => Condition::All(one, other),
                false => Condition::Any(one, other),
            };
        }
    }

    fn comparison(&mut self) -> Result<Condition, String> {
        if self.keyword("not") {
            return Ok(Condition::Not(Box::new(self.comparison()?)));
        }
        if self.sign("(") {
            let inner = self.condition()?;
            self.need(")")?;
            return Ok(inner);
        }
        if let Some(Token::Constraint(name)) = self.peek().cloned() {
            self.at += 1;
            return Ok(Condition::Named(name));
        }
        let key = self.name()?;
        let is_negated = self.keyword("not");
        let sign = match COMPARISONS.into_iter().find(|sign| self.sign(sign)) {
            Some("=") => "==",
            Some("<>") => "!=",
            Some(sign) => sign,
            None if self.keyword("like") => "like",
            None if self.sign("~") || self.keyword("regexp") => "regexp",
            None => return Err(format!("a comparison is missing after {key}")),
        };
        let text = match self.next().cloned() {
            Some(Token::Text(text)) => text,
            Some(Token::Number(number)) => number.to_string(),
            _ => return Err(format!("{key} {sign}: a text in single quotes is missing")),
        };
        let condition = match sign {
            "regexp" => Condition::Matches(key, Pattern::of(&text)?),
            sign => Condition::Compare(key, sign, text),
        };
        Ok(match is_negated {
            true => Condition::Not(Box::new(condition)),
            false => condition,
        })
    }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Name(text) | Token::Text(text) => format!("'{text}'"),
        Token::Number(number) => number.to_string(),
        Token::Graph(name) => format!("${name}"),
        Token::Constraint(name) => format!("%{name}"),
        Token::Sign(sign) => (*sign).to_owned(),
    }
}
