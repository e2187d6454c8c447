//! The answer of `diff`: the differences as a table, with the fields of `--json`.

use arrow_array::types::Int64Type;
use backstory_query::answer::RunDetails;
use backstory_replay::diff::{Diff, Difference};

use crate::columns::{AnswerTable, Columns};
use crate::failure::Failure;
use crate::reply::{AnswerFacts, Answered};

/// The comparison of two runs, or of how two versions of a file were made.
pub fn answer(diff: &Diff) -> Result<Answered, Failure> {
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
        tables: vec![table(&diff.differences)?],
    })
}

fn table(differences: &[Difference]) -> Result<AnswerTable, Failure> {
    let mut columns = Columns::default();
    let all = || differences.iter();
    columns.labels("kind", all().map(|one| Some(one.kind.word())));
    columns.text("of", all().map(|one| Some(&one.of)));
    columns.text("a", all().map(|one| one.a.as_ref()));
    columns.text("b", all().map(|one| one.b.as_ref()));
    columns.numbers::<Int64Type>("after_ns", all().map(|one| one.at));
    let fed_by = |one: &Difference| one.fed_by.iter().map(|&at| at as u32).collect();
    columns.indexes("fed_by", all().map(fed_by));
    columns.labels("weight", all().map(|one| Some(one.weight.word())));
    columns.bools("intermediate", all().map(|one| Some(one.is_intermediate)));
    Ok(columns.table()?)
}
