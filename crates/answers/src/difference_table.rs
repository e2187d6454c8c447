//! The answer of `diff`: the differences as a table, with the fields of `--json`.

use backstory_query::RefinedRuns;
use backstory_query::answer::RunDetails;
use backstory_replay::diff::{Diff, Difference, UnusedCauses};

use crate::columns::{AnswerTable, Columns};
use crate::failure::Failure;
use crate::opened_store::OpenedStore;
use crate::reply::{AnswerFacts, Answered};

/// The comparison of two runs, or of how two versions of a file were made.
pub fn answer(opened: &OpenedStore, diff: &Diff) -> Result<Answered, Failure> {
    let mut runs = RefinedRuns::of(&*opened.store, &opened.home.bytes_dir(""));
    let unused = UnusedCauses::of(&mut runs, diff);
    let ids = |runs: &[RunDetails]| -> Vec<String> {
        runs.iter().map(|run| run.summary.id.clone()).collect()
    };
    Ok(Answered {
        facts: AnswerFacts::Diff {
            a: ids(&diff.a),
            b: ids(&diff.b),
            same_outputs: diff.same_outputs.clone(),
            unknown: diff.unknown.clone(),
        },
        tables: vec![table(&diff.differences, &unused)?],
    })
}

fn table(differences: &[Difference], unused: &UnusedCauses) -> Result<AnswerTable, Failure> {
    let mut columns = Columns::default();
    let all = || differences.iter();
    columns.labels("kind", all().map(|one| Some(one.kind.word())));
    columns.text("of", all().map(|one| Some(&one.of)));
    columns.text("a", all().map(|one| one.a.as_ref()));
    columns.text("b", all().map(|one| one.b.as_ref()));
    columns.numbers::<i64>("after_ns", all().map(|one| one.at));
    let indexes = |all: &[usize]| -> Vec<u32> { all.iter().map(|&at| at as u32).collect() };
    columns.indexes("fed_by", all().map(|one| indexes(&one.fed_by)));
    let unused = (0..differences.len()).map(|at| indexes(unused.of_output(at)));
    columns.indexes("no_byte_of", unused);
    columns.labels("weight", all().map(|one| Some(one.weight.word())));
    columns.bools("intermediate", all().map(|one| Some(one.is_intermediate)));
    Ok(columns.table())
}
