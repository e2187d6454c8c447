//! Reads the commands of one statement, with the functions that it calls.

use std::collections::{HashMap, HashSet};

use brush_parser::ast::{
    AndOr, AndOrList, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList,
    ExtendedTestExpr, FunctionDefinition, IoFileRedirectTarget, IoRedirect, Pipeline,
    SeparatorOperator, SimpleCommand, Word,
};
use brush_parser::word;

use super::arguments::{Argument, opens_further, variable};
use super::builtins::*;
use super::statements::{
    BACKGROUND, DIRECTORY, Dialect, POSITIONAL, Statement, option_letters, parsed, syntax, words_of,
};

/// The definitions of functions, by name.
pub type Functions<'t> = HashMap<String, Vec<&'t FunctionDefinition>>;

/// Reads one statement.
pub struct Reader<'t, 'f> {
    dialect: Dialect,
    functions: &'f Functions<'t>,
    /// The functions whose bodies are being read.
    within: HashSet<String>,
    /// How deep the reader is in copies of the shell: what these set is lost.
    copies: usize,
    /// Options that the statement sets, if it does nothing else. `None`: not understood.
    pub options: Option<String>,
    /// The statement as far as it was read.
    pub statement: Statement,
    /// It reads a part of a command that is no top-level statement by itself.
    is_nested: bool,
    /// The command that is read has redirections of the descriptors from 3 on only.
    opens_further: bool,
    /// The actions of traps.
    pub actions: Vec<String>,
    exported: &'f mut HashSet<String>,
}

impl<'t, 'f> Reader<'t, 'f> {
    /// Nothing of the statement has been read.
    pub fn of(
        text: String,
        dialect: Dialect,
        functions: &'f Functions<'t>,
        exported: &'f mut HashSet<String>,
    ) -> Reader<'t, 'f> {
        Reader {
            dialect,
            functions,
            within: HashSet::new(),
            copies: 0,
            options: Some(String::new()),
            statement: Statement {
                text,
                ..Statement::default()
            },
            is_nested: false,
            opens_further: false,
            actions: Vec::new(),
            exported,
        }
    }

    /// Reads the statement itself.
    pub fn item(&mut self, list: &AndOrList, separator: &SeparatorOperator) -> Option<()> {
        match separator {
            SeparatorOperator::Async => {
                self.set(BACKGROUND);
                self.copy(|reader| reader.and_or(list))
            }
            SeparatorOperator::Sequence => self.and_or(list),
        }
    }

    /// Reads what a copy of the shell does.
    fn copy(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.statement.forks = true;
        let is_nested = self.is_nested;
        self.copies += 1;
        let read = read(self);
        self.copies -= 1;
        self.is_nested = is_nested;
        read
    }

    /// Reads the commands of a list.
    pub fn list(&mut self, list: &CompoundList) -> Option<()> {
        self.is_nested = true;
        for item in &list.0 {
            self.item(&item.0, &item.1)?;
        }
        Some(())
    }

    fn and_or(&mut self, list: &AndOrList) -> Option<()> {
        self.is_nested |= !list.additional.is_empty();
        self.pipeline(&list.first)?;
        for next in &list.additional {
            let (AndOr::And(next) | AndOr::Or(next)) = next;
            self.pipeline(next)?;
        }
        Some(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Option<()> {
        match &*pipeline.seq {
            [one] => self.command(one),
            all => all
                .iter()
                .try_for_each(|one| self.copy(|reader| reader.command(one))),
        }
    }

    fn command(&mut self, command: &Command) -> Option<()> {
        let redirects = match command {
            Command::Simple(simple) => return self.simple(simple),
            Command::Function(function) => {
                self.set(&function.fname);
                return Some(());
            }
            Command::Compound(compound, redirects) => {
                self.is_nested = true;
                self.compound(compound)?;
                redirects
            }
            Command::ExtendedTest(test) => {
                self.tests();
                self.set("BASH_REMATCH");
                return self.test(test);
            }
        };
        let mut all = redirects.iter().flat_map(|redirects| &redirects.0);
        all.try_for_each(|redirect| self.redirect(redirect))
    }

    fn compound(&mut self, compound: &CompoundCommand) -> Option<()> {
        match compound {
            CompoundCommand::Arithmetic(_) => {
                self.tests();
                self.end();
                self.set_all_words();
                Some(())
            }
            CompoundCommand::ArithmeticForClause(one) => {
                self.tests();
                self.set_all_words();
                // Its expressions may start anything.
                self.statement.starts_any = true;
                self.statement.forks = true;
                self.list(&one.body.0)
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.0),
            CompoundCommand::Subshell(shell) => self.copy(|reader| reader.list(&shell.0)),
            CompoundCommand::ForClause(one) => {
                self.set(&one.variable_name);
                let mut values = one.values.iter().flatten();
                values.try_for_each(|value| self.word(value))?;
                self.list(&one.body.0)
            }
            CompoundCommand::CaseClause(case) => {
                self.word(&case.value)?;
                for case in &case.cases {
                    case.patterns.iter().try_for_each(|word| self.word(word))?;
                    case.cmd.iter().try_for_each(|list| self.list(list))?;
                }
                Some(())
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition)?;
                self.list(&clause.then)?;
                for other in clause.elses.iter().flatten() {
                    other
                        .condition
                        .iter()
                        .try_for_each(|list| self.list(list))?;
                    self.list(&other.body)?;
                }
                Some(())
            }
            CompoundCommand::WhileClause(one) | CompoundCommand::UntilClause(one) => {
                self.list(&one.0)?;
                self.list(&one.1.0)
            }
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr) -> Option<()> {
        match test {
            ExtendedTestExpr::And(one, other) | ExtendedTestExpr::Or(one, other) => {
                self.test(one)?;
                self.test(other)
            }
            ExtendedTestExpr::Not(one) | ExtendedTestExpr::Parenthesized(one) => self.test(one),
            ExtendedTestExpr::UnaryTest(_, word) => self.word(word),
            ExtendedTestExpr::BinaryTest(_, one, other) => {
                self.word(one)?;
                self.word(other)
            }
        }
    }

    fn redirect(&mut self, redirect: &IoRedirect) -> Option<()> {
        match redirect {
            IoRedirect::File(_, _, target) => match target {
                IoFileRedirectTarget::Filename(word) => self.target(word),
                IoFileRedirectTarget::Duplicate(word) => {
                    // The offset moves, also if a copy of the shell moves it.
                    let names = words_of(&word.value);
                    self.statement.sets.names.extend(names);
                    self.word(word)
                }
                IoFileRedirectTarget::Fd(_) => Some(()),
                IoFileRedirectTarget::ProcessSubstitution(_, shell) => {
                    self.copy(|reader| reader.list(&shell.0))
                }
            },
            IoRedirect::HereDocument(_, document) => self.word(&document.doc),
            IoRedirect::HereString(_, word) => self.word(word),
            IoRedirect::OutputAndError(word, _) => self.target(word),
        }
    }

    fn target(&mut self, word: &Word) -> Option<()> {
        let literal = Argument::of(word, self.dialect).literal;
        if literal.is_none() {
            self.tests();
        }
        self.statement.targets.push(literal);
        self.word(word)
    }

    /// Reads the commands in a word.
    fn word(&mut self, word: &Word) -> Option<()> {
        let text = &word.value;
        // `${x:=…}` and `$((x = …))` set variables.
        let is_arithmetic = text.contains("((") || text.contains("$[");
        if is_arithmetic || text.contains("=") && text.contains("${") {
            self.set_all_words();
        }
        // A wrong number ends the shell.
        if is_arithmetic || text.contains("${") && text.contains(":$") {
            self.end();
        }
        if text.contains("${") && text.contains('?') {
            self.end();
        }
        if !text.contains("$(") && !text.contains('`') {
            return Some(());
        }
        let pieces = word::parse(text, &syntax(self.dialect)).ok()?;
        self.pieces(pieces)
    }

    fn pieces(&mut self, pieces: Vec<word::WordPieceWithSource>) -> Option<()> {
        use word::WordPiece::*;
        for one in pieces {
            match one.piece {
                CommandSubstitution(text) => self.substitution(&text)?,
                BackquotedCommandSubstitution(text) => {
                    // The escapes in it are read once more.
                    match text.contains('\\') {
                        true => self.unknown_programs(),
                        false => self.substitution(&text)?,
                    }
                }
                DoubleQuotedSequence(inner) | GettextDoubleQuotedSequence(inner) => {
                    self.pieces(inner)?;
                }
                ref expansion @ (ParameterExpansion(_) | ArithmeticExpression(_)) => {
                    let inside = format!("{expansion:?}");
                    if inside.contains('`') || inside.contains("$(") {
                        self.unknown_programs();
                    }
                }
                Text(_) | SingleQuotedText(_) | AnsiCQuotedText(_) | TildePrefix(_)
                | EscapeSequence(_) => {}
            }
        }
        Some(())
    }

    fn unknown_programs(&mut self) {
        self.statement.forks = true;
        self.statement.starts_any = true;
    }

    fn substitution(&mut self, text: &str) -> Option<()> {
        let lists = parsed(text, self.dialect)?;
        self.copy(|reader| lists.iter().try_for_each(|list| reader.list(list)))
    }

    fn simple(&mut self, simple: &SimpleCommand) -> Option<()> {
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        let name = simple.word_or_name.as_ref();
        let mut words: Vec<Argument<'_>> = name
            .iter()
            .map(|word| Argument::of(word, self.dialect))
            .collect();
        let mut assigned = Vec::new();
        for item in prefix {
            match item {
                Item::IoRedirect(redirect) => self.redirect(redirect)?,
                Item::AssignmentWord(_, word) | Item::Word(word) => {
                    self.word(word)?;
                    assigned.push(word);
                }
                Item::ProcessSubstitution(..) => return None,
            }
        }
        name.iter().try_for_each(|word| self.word(word))?;
        for item in suffix {
            match item {
                Item::IoRedirect(redirect) => self.redirect(redirect)?,
                Item::Word(word) | Item::AssignmentWord(_, word) => {
                    self.word(word)?;
                    words.push(Argument::of(word, self.dialect));
                }
                Item::ProcessSubstitution(_, shell) => {
                    self.copy(|reader| reader.list(&shell.0))?;
                    words.push(Argument::default());
                }
            }
        }
        // An assignment before a command is the command's. Before a special builtin it may stay.
        self.opens_further = simple.suffix.iter().all(|suffix| opens_further(&suffix.0));
        if name.is_some() {
            self.command_of(&words)?;
        }
        let literal = words.first().and_then(|word| word.literal.as_deref());
        // An error of a special builtin ends the shell.
        let is_special = literal.is_some_and(|name| STAYING.contains(&name));
        if is_special && self.statement.targets.iter().any(Option::is_none) {
            self.end();
        }
        let is_temporary = literal.is_some_and(|name| {
            !is_special
                && !INTERPRETING.contains(&name)
                && !OTHER.contains(&name)
                && !self.functions.contains_key(name)
        });
        if !is_temporary {
            let names = assigned.into_iter().map(|word| variable(&word.value));
            names.for_each(|name| self.set(name));
        }
        Some(())
    }

    /// Reads a command by its words.
    fn command_of(&mut self, words: &[Argument<'_>]) -> Option<()> {
        let Some(first) = words.first() else {
            return Some(());
        };
        let Some(name) = first.literal.as_deref() else {
            // A name with a directory is that of a program.
            match first.has_directory() {
                true => self.program(words),
                false => self.other(),
            }
            return Some(());
        };
        let arguments = &words[1..];
        if self.functions.contains_key(name) {
            self.call(name)?;
        } else if PLAIN.contains(&name) {
        } else if TESTING.contains(&name) {
            self.tests();
            if name == "printf" {
                self.set_by_printf(arguments);
            }
        } else if SETTING.contains(&name) {
            self.tests();
            self.set_by(name, arguments)?;
        } else if EVALUATING.contains(&name) {
            if self.copies == 0 {
                return None;
            }
            self.other();
        } else if INTERPRETING.contains(&name) {
            self.statement.interprets |= self.copies == 0;
            self.other();
        } else if OTHER.contains(&name) {
            self.set_everything();
        } else {
            match name {
                "cd" | "pushd" | "popd" => {
                    self.tests();
                    let state = ["OLDPWD", "PWD", DIRECTORY];
                    state.iter().for_each(|name| self.set(name));
                }
                // Without enough parameters, dash ends.
                "shift" => {
                    self.end();
                    self.set(POSITIONAL);
                }
                "return" if !self.within.is_empty() => {}
                "exit" | "return" => self.end(),
                "set" => self.options(arguments)?,
                "wait" => {
                    self.tests();
                    self.set(BACKGROUND);
                }
                "trap" => self.trap(arguments)?,
                // It opens or closes descriptors.
                "exec" if arguments.iter().all(|word| word.raw.starts_with('{')) => {
                    self.statement.opens = true;
                    match self.opens_further {
                        true => self.set_all_words(),
                        false => self.other(),
                    }
                }
                "exec" => self.other(),
                "command" if arguments.first().is_some_and(|word| word.is_name()) => {
                    return self.command_of(arguments);
                }
                "command" => self.other(),
                _ => self.program(words),
            }
        }
        Some(())
    }

    fn program(&mut self, words: &[Argument<'_>]) {
        self.statement.is_program = !self.is_nested && self.copies == 0 && self.within.is_empty();
        let words = words.iter().map(|word| word.literal.clone());
        self.statement.programs.push(words.collect());
    }

    /// Reads the body of a function where it is called.
    fn call(&mut self, name: &str) -> Option<()> {
        if !self.within.insert(name.to_owned()) {
            return Some(());
        }
        for function in self.functions.get(name).into_iter().flatten() {
            self.statement.text.push('\n');
            self.statement.text.push_str(&function.body.to_string());
            let body = Command::Compound(function.body.0.clone(), function.body.1.clone());
            self.command(&body)?;
        }
        self.within.remove(name);
        Some(())
    }

    fn set_by_printf(&mut self, arguments: &[Argument<'_>]) {
        let first = arguments.first().and_then(|word| word.literal.as_deref());
        match (first, arguments.get(1).map(|word| &word.literal)) {
            (Some("-v"), Some(Some(name))) => self.set(variable(name)),
            (Some(option), _) if !option.starts_with("-v") => {}
            _ => self.set_all_words(),
        }
    }

    /// Notes what a builtin sets that has names of variables among its words.
    fn set_by(&mut self, builtin: &str, arguments: &[Argument<'_>]) -> Option<()> {
        SET_BY_THEM.iter().for_each(|name| self.set(name));
        let mut exports = builtin == "export";
        for argument in arguments {
            match &argument.literal {
                // Another name of a variable.
                Some(option)
                    if option.starts_with('-')
                        && option.contains('n')
                        && RENAMING.contains(&builtin) =>
                {
                    return None;
                }
                Some(option) if option.starts_with(['-', '+']) => exports |= option.contains('x'),
                _ => {}
            }
        }
        for argument in arguments {
            let text = argument.literal.as_deref().unwrap_or(argument.raw);
            let name = variable(text);
            let is_assignment = text[name.len()..].starts_with(['=', '+', '[']);
            if builtin == "let" || argument.literal.is_none() && !is_assignment {
                self.set_all_words();
                self.end();
                if builtin != "read" {
                    self.exported.extend(words_of(&self.statement.text));
                }
                continue;
            }
            self.set(name);
            if exports {
                self.exported.insert(name.to_owned());
            }
        }
        Some(())
    }

    /// Reads the action of a trap. At the top level it runs when the shell ends, or after a signal
    /// from outside.
    fn trap(&mut self, arguments: &[Argument<'_>]) -> Option<()> {
        let words: Option<Vec<&str>> = arguments
            .iter()
            .map(|word| word.literal.as_deref())
            .collect();
        let words = words?;
        let (action, signals) = words.split_first()?;
        let is_late = |signal: &&str| AT_THE_END.contains(signal);
        if self.copies == 0 {
            if !signals.iter().all(is_late) {
                return None;
            }
            self.actions.push((*action).to_owned());
            return Some(());
        }
        match action.is_empty() || action.starts_with('-') {
            true => Some(()),
            false => self.substitution(action),
        }
    }

    /// Reads the words of `set`.
    fn options(&mut self, arguments: &[Argument<'_>]) -> Option<()> {
        let words = arguments.iter().map(|word| word.literal.as_deref());
        let literal: Option<Vec<&str>> = words.collect();
        let letters = literal.and_then(|words| option_letters(words.into_iter()));
        let first = arguments.first().and_then(|word| word.literal.as_deref());
        match letters {
            Some(letters) if !self.is_nested => self.options = Some(letters),
            // In a subshell the options end with it.
            Some(_) if self.copies > 0 => {}
            None if first.is_some_and(|first| first == "--" || !first.starts_with(['-', '+'])) => {
                self.set(POSITIONAL);
            }
            _ if self.copies > 0 => self.other(),
            _ => return None,
        }
        Some(())
    }

    fn set(&mut self, name: &str) {
        if self.copies == 0 {
            self.statement.sets.add(name);
        }
    }

    fn set_all_words(&mut self) {
        if self.copies == 0 {
            let all = words_of(&self.statement.text);
            self.statement.sets.names.extend(all);
        }
    }

    fn tests(&mut self) {
        self.statement.tests = true;
    }

    fn end(&mut self) {
        self.statement.ends |= self.copies == 0;
    }

    /// Notes a command with any effect.
    fn other(&mut self) {
        self.statement.uses_all = true;
        self.statement.targets.push(None);
        self.unknown_programs();
        self.set_everything();
    }

    fn set_everything(&mut self) {
        self.statement.sets.all |= self.copies == 0;
    }
}

/// Collects the definitions of functions in a list.
pub fn functions_of_list<'t>(list: &'t CompoundList, found: &mut Functions<'t>) {
    for item in &list.0 {
        let others = item.0.additional.iter();
        let others = others.map(|(AndOr::And(next) | AndOr::Or(next))| next);
        let all = std::iter::once(&item.0.first).chain(others);
        all.flat_map(|pipeline| &pipeline.seq)
            .for_each(|command| functions_of(command, found));
    }
}

fn functions_of<'t>(command: &'t Command, found: &mut Functions<'t>) {
    let compound = match command {
        Command::Function(function) => {
            let name = function.fname.clone();
            found.entry(name).or_default().push(function);
            &function.body.0
        }
        Command::Compound(compound, _) => compound,
        Command::Simple(_) | Command::ExtendedTest(_) => return,
    };
    match compound {
        CompoundCommand::ArithmeticForClause(one) => functions_of_list(&one.body.0, found),
        CompoundCommand::BraceGroup(group) => functions_of_list(&group.0, found),
        CompoundCommand::Subshell(shell) => functions_of_list(&shell.0, found),
        CompoundCommand::ForClause(one) => functions_of_list(&one.body.0, found),
        CompoundCommand::CaseClause(case) => {
            let lists = case.cases.iter().filter_map(|case| case.cmd.as_ref());
            lists.for_each(|list| functions_of_list(list, found));
        }
        CompoundCommand::IfClause(clause) => {
            functions_of_list(&clause.condition, found);
            functions_of_list(&clause.then, found);
            for other in clause.elses.iter().flatten() {
                let condition = other.condition.iter();
                condition.for_each(|list| functions_of_list(list, found));
                functions_of_list(&other.body, found);
            }
        }
        CompoundCommand::WhileClause(one) | CompoundCommand::UntilClause(one) => {
            functions_of_list(&one.0, found);
            functions_of_list(&one.1.0, found);
        }
        CompoundCommand::Arithmetic(_) => {}
    }
}
