//! The branches of a node in an outline. Those to the same node become one.

use std::collections::HashMap;

use backstory_graph::model::Certainty;

/// A branch of the outline: a link to another node.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// The node at the other end.
    pub node: usize,
    /// The words before the name of the node: `read`, `ran and read`.
    pub words: String,
    /// The certainty of the strongest link. The words name weaker links.
    pub certainty: Certainty,
    /// True if the branch leads to the process that started the command (or that it started), not
    /// to data.
    pub informs: bool,
    /// True if the branch leads to the writer of the node (or to the node that it wrote), directly
    /// and not through a pipe.
    pub writes: bool,
}

/// The branches of a node, and how many were left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Branches {
    /// The branches that deserve a line.
    pub shown: Vec<Branch>,
    /// The number of branches that were left out because they are only possible.
    pub hidden: usize,
}

/// Joins branches to the same node. Observed links come first in the words, and the rest is called
/// possible.
pub fn joined(steps: Vec<Branch>) -> Vec<Branch> {
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut groups: Vec<Vec<Branch>> = Vec::new();
    for step in steps {
        let place = *places.entry(step.node).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(step),
            None => groups.push(vec![step]),
        }
    }
    groups.into_iter().filter_map(one).collect()
}

/// Joins several branches to the same node into one.
fn one(group: Vec<Branch>) -> Option<Branch> {
    let words = |certainty: Certainty| -> Vec<&str> {
        let mut words = Vec::new();
        for step in group.iter().filter(|step| step.certainty == certainty) {
            if !words.contains(&step.words.as_str()) {
                words.push(&step.words);
            }
        }
        words
    };
    let seen = words(Certainty::Seen);
    let mut possible = words(Certainty::Possible);
    possible.retain(|word| !seen.contains(word));
    let text = match (seen.is_empty(), possible.is_empty()) {
        (true, _) => possible.join(" and "),
        (false, true) => seen.join(" and "),
        (false, false) => format!(
            "{} and possibly {}",
            seen.join(" and "),
            possible.join(" and ")
        ),
    };
    Some(Branch {
        node: group.first()?.node,
        words: text,
        certainty: group.iter().map(|step| step.certainty).max()?,
        informs: group.iter().all(|step| step.informs),
        writes: group.iter().any(|step| step.writes),
    })
}
