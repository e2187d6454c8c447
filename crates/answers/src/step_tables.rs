//! The commands that a person would have written, and the files between them, as tables. The
//! columns have the names of `backstory of --level step --json`.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;
use std::path::Path;

use backstory_account::{Account, Command};
use backstory_query::answer::Lineage;
use backstory_query::{Direction, projects};
use backstory_workflow::ownership::Ownership;

use crate::columns::{AnswerTable, Columns};
use crate::failure::Failure;
use crate::opened_store::OpenedStore;
use crate::reply::{AnswerFacts, Answered};

/// The steps of a lineage, without what was not observed. The tables are the files, the commands
/// through which content flowed, and the commands that started these.
pub fn steps(
    opened: &OpenedStore,
    lineage: &Lineage,
    direction: Direction,
) -> Result<Answered, Failure> {
    let directories = projects(&opened.store, lineage)?;
    let projects = directories.iter().map(|directory| &**directory);
    let mut ownership = Ownership::new(Path::new("/"), projects);
    let account = Account::new(&opened.store, lineage, direction, false, &mut ownership)?;
    let all = account.chain.iter().chain(&account.drivers);
    let used = all.flat_map(|&at| {
        let command = &account.commands[at];
        command.reads.iter().chain(&command.writes)
    });
    let files: BTreeSet<usize> = used.chain(&account.roots).copied().into_tree();
    let files: Vec<usize> = files.into_iter().collect();
    let index = |file: &usize| files.binary_search(file).unwrap_or_default() as u32;
    Ok(Answered {
        facts: AnswerFacts::Steps(account.roots.iter().map(index).collect()),
        tables: vec![
            file_table(&account, &files)?,
            step_table(&account, &account.chain, &index)?,
            step_table(&account, &account.drivers, &index)?,
        ],
    })
}

fn file_table(account: &Account, files: &[usize]) -> Result<AnswerTable, Failure> {
    let mut columns = Columns::default();
    let all = || files.iter().map(|&file| (file, &account.files[file]));
    columns.paths("path", all().map(|(_, file)| Some(&file.path)));
    columns.numbers::<u64>("id", all().map(|(_, file)| file.entity));
    columns.labels("kind", all().map(|(_, file)| Some(file.kind.word())));
    columns.bools("source", all().map(|(at, _)| Some(account.is_source(at))));
    columns.bools("own", all().map(|(_, file)| Some(file.own)));
    columns.bools("by_content", all().map(|(_, file)| Some(file.by_content)));
    Ok(columns.table())
}

fn step_table(
    account: &Account,
    steps: &[usize],
    index: &dyn Fn(&usize) -> u32,
) -> Result<AnswerTable, Failure> {
    let mut columns = Columns::default();
    let all = || steps.iter().map(|&at| (at, &account.commands[at]));
    let run = |command: &Command| &account.runs[command.run].details.summary.id;
    columns.labels("run", all().map(|(_, command)| Some(run(command))));
    columns.text(
        "command",
        all().map(|(_, command)| Some(command.line.command())),
    );
    columns.text("cwd", all().map(|(_, command)| Some(&command.line.cwd)));
    columns.times("start", all().map(|(_, command)| Some(command.start)));
    columns.times("end", all().map(|(_, command)| Some(command.end)));
    columns.numbers::<u32>(
        "processes",
        all().map(|(_, command)| command.programs.len() as u32),
    );
    let indexes = |files: &[usize]| files.iter().map(index).collect();
    columns.indexes("inputs", all().map(|(_, command)| indexes(&command.reads)));
    columns.indexes(
        "outputs",
        all().map(|(_, command)| indexes(&command.writes)),
    );
    columns.bools("own", all().map(|(at, _)| Some(account.concerns(at))));
    Ok(columns.table())
}
