//! `spade`: SPADE's query language over a run, or over all that a file came from.
//!
//! In: statements, from an option, a file or a terminal. Out: graphs as text, in SPADE's DSL, as
//! DOT or as JSON. A part of the language that has no meaning here is refused.

mod exported;
mod graph;
mod hash;
mod links;
mod pattern;
mod reach;
mod statistics;
mod syntax;
mod words;
mod workspace;

use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

use backstory_export::{Level, OpmElement, Request, View};

use super::Outcome;
use super::export::subject;
use crate::args::spade::SpadeArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain};
use graph::{BaseGraph, Part};
use syntax::{Statement, statement};
use words::{Token, tokens};
use workspace::Workspace;

const HELP: &str = "\
$g = $base.getVertex(path == '/work/out')     $g += $h   $g -= $h   $g &= $h   $a + $b - $c & $d
%c = type == 'Process' and \"command line\" like '%make%'     not, and, or, ==, !=, <, <=, >, >=, like, regexp
methods: getVertex, getEdge, getEdgeWithEndpoints, getEdgeEndpoints, getEdgeSource, getEdgeDestination,
  getLineage($from, depth, 'a'|'d'|'b'), getNeighbor($from, 'a'|'d'|'b'), getLink($one, $other, depth),
  getPath($from, $to, depth), getShortestPath, getSubgraph($g), span($g), getMatch($g, 'key', ...),
  collapseEdge('key'), limit(n)
functions: vertices('hash', ...), edges('hash', ...): hashes are in the JSON of export > FILE.json
stat vertex|edge KEY histogram|mean|std $g [digits]   stat vertex|edge KEY distribution $g intervals [digits]
list [graph|constraint|env]   stat $g   dump $g   visualize $g   export > FILE (of the next dump)
erase $g %c   reset workspace   env set|unset|print maxDepth|limit|precision|time   help   exit
";

/// Runs the statements.
pub fn run(args: SpadeArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let mut request = Request::new(subject(&current, args.subject.as_deref())?);
    request.level = Level::All;
    request.bytes = Some(current.home.bytes_dir(""));
    let view = View::load(&current.store, &request)?;
    let mut shell = Shell {
        workspace: Workspace::new(BaseGraph::of(&view)),
        target: None,
    };
    let stdin = io::stdin();
    if !args.command.is_empty() {
        for line in args.command.iter().flat_map(|text| text.lines()) {
            if shell.line(line)? {
                break;
            }
        }
        return Ok(0);
    }
    let is_terminal = stdin.is_terminal();
    let mut lines = stdin.lock().lines();
    loop {
        if is_terminal {
            super::answer(|out| out.write_all(b"-> "))?;
        }
        let Some(line) = lines.next().and_then(Result::ok) else {
            return Ok(0);
        };
        match shell.line(&line) {
            Ok(true) => return Ok(0),
            Ok(false) => {}
            Err(failure) if is_terminal => complain(&failure.line),
            Err(failure) => return Err(failure),
        }
    }
}

struct Shell {
    workspace: Workspace,
    /// The file of the next graph that is printed.
    target: Option<String>,
}

impl Shell {
    /// Runs the statements of a line. True if one of them ends the shell.
    fn line(&mut self, line: &str) -> Result<bool, Failure> {
        if let Some((target, rest)) = export_target(line) {
            self.target = Some(target.to_owned());
            return self.line(rest);
        }
        let tokens = tokens(line).map_err(Failure::misuse)?;
        for words in tokens.split(|token| *token == Token::Sign(";")) {
            if !words.is_empty() {
                let statement = statement(words).map_err(Failure::misuse)?;
                if self.run(statement)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn run(&mut self, statement: Statement) -> Result<bool, Failure> {
        let workspace = &mut self.workspace;
        let done = match statement {
            Statement::Graph(name, sign, graph) => workspace.assign(name, sign, &graph),
            Statement::Constraint(name, condition) => {
                workspace.constraints.insert(name, condition);
                Ok(())
            }
            Statement::Erase(names) => workspace.erase(&names),
            Statement::Reset => {
                workspace.graphs.clear();
                workspace.constraints.clear();
                Ok(())
            }
            Statement::SetEnvironment(name, number) => {
                workspace.environment.insert(name, number);
                Ok(())
            }
            Statement::UnsetEnvironment(name) => {
                workspace.environment.remove(&name);
                Ok(())
            }
            Statement::Exit => return Ok(true),
            Statement::Statistics(graph) => {
                let part = workspace.graph(&graph).map_err(Failure::misuse)?;
                let (vertices, edges) = (part.vertices.len(), part.edges.len());
                return self.print(format!("vertices: {vertices}, edges: {edges}\n").as_bytes());
            }
            Statement::KeyStatistic(wanted) => {
                let text = workspace.statistic(&wanted).map_err(Failure::misuse)?;
                return self.print(text.as_bytes());
            }
            Statement::Dump(graph) => {
                let part = workspace.graph(&graph).map_err(Failure::misuse)?;
                return self.show(&part, false);
            }
            Statement::Visualize(graph) => {
                let part = workspace.graph(&graph).map_err(Failure::misuse)?;
                return self.show(&part, true);
            }
            Statement::DumpConstraint(name) => {
                let text = match workspace.constraints.get(&name) {
                    Some(condition) => format!("%{name} = {}\n", written(condition)),
                    None => return Err(Failure::misuse(format!("there is no %{name}"))),
                };
                return self.print(text.as_bytes());
            }
            Statement::PrintEnvironment(name) => {
                let text = match workspace.environment.get(&name) {
                    Some(number) => format!("{name} = {number}\n"),
                    None => format!("{name} is not set\n"),
                };
                return self.print(text.as_bytes());
            }
            Statement::List(which) => {
                let text = listed(workspace, which.as_deref()).map_err(Failure::misuse)?;
                return self.print(text.as_bytes());
            }
            Statement::Help => return self.print(HELP.as_bytes()),
        };
        done.map(|()| false).map_err(Failure::misuse)
    }

    fn print(&self, text: &[u8]) -> Result<bool, Failure> {
        super::answer(|out| out.write_all(text)).map(|_| false)
    }

    /// Prints a graph, or writes it into the file that `export` named.
    fn show(&mut self, part: &Part, as_dot: bool) -> Result<bool, Failure> {
        let target = self.target.take();
        let has = |end: &str| target.as_deref().is_some_and(|name| name.ends_with(end));
        let base = &self.workspace.base;
        let text = match (as_dot || has(".dot"), has(".json")) {
            (true, _) => exported::dot(base, part),
            (_, true) => exported::objects(base, part).map_err(Failure::not_found)?,
            _ => elements(base, part).flat_map(OpmElement::line).collect(),
        };
        let Some(path) = target else {
            return self.print(&text);
        };
        let written = File::create(&path).and_then(|mut file| file.write_all(&text));
        match written {
            Ok(()) => Ok(false),
            Err(error) => Err(Failure::not_found(format!("cannot write {path}: {error}"))),
        }
    }
}

/// The file in `export > FILE`, and the statements behind it.
fn export_target(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim().strip_prefix("export")?.trim_start();
    let target = rest.strip_prefix('>')?;
    let (path, rest) = target.split_once(';').unwrap_or((target, ""));
    Some((path.trim(), rest))
}

fn listed(workspace: &Workspace, which: Option<&str>) -> Result<String, String> {
    let is = |word: &str| which.is_none_or(|which| which == word || which == "all");
    if which.is_some() && !["graph", "constraint", "env", "all"].into_iter().any(is) {
        return Err("list: graph, constraint or env".to_owned());
    }
    let mut text = String::new();
    if is("graph") {
        let whole = workspace.base.whole();
        let all = workspace
            .graphs
            .iter()
            .map(|(name, part)| (name.as_str(), part));
        for (name, part) in std::iter::once(("base", &whole)).chain(all) {
            let (vertices, edges) = (part.vertices.len(), part.edges.len());
            text += &format!("${name}: {vertices} vertices, {edges} edges\n");
        }
    }
    if is("constraint") {
        for (name, condition) in &workspace.constraints {
            text += &format!("%{name} = {}\n", written(condition));
        }
    }
    if is("env") {
        for (name, number) in &workspace.environment {
            text += &format!("{name} = {number}\n");
        }
    }
    Ok(text)
}

fn written(condition: &syntax::Condition) -> String {
    use syntax::Condition;
    match condition {
        Condition::Named(name) => format!("%{name}"),
        Condition::Matches(key, pattern) => format!("\"{key}\" regexp '{}'", pattern.text()),
        Condition::Compare(key, sign, text) => format!("\"{key}\" {sign} '{text}'"),
        Condition::Not(inner) => format!("not {}", written(inner)),
        Condition::All(one, other) => format!("({} and {})", written(one), written(other)),
        Condition::Any(one, other) => format!("({} or {})", written(one), written(other)),
    }
}

fn elements<'a>(base: &'a BaseGraph, part: &'a Part) -> impl Iterator<Item = &'a OpmElement> {
    let vertices = part.vertices.iter().map(|&at| &base.vertices[at]);
    vertices.chain(part.edges.iter().map(|&at| &base.edges[at]))
}
