//! Finds the name that a misspelt word probably means, and the command for a word of other
//! programs.

/// More characters than a name has.
const LONGEST: usize = 64;

/// Words of other programs, and the commands that do what they do.
const COMMON_WORDS: [(&str, &str); 12] = [
    ("ancestors", "of"),
    ("ancestry", "of"),
    ("descendants", "uses"),
    ("history", "log"),
    ("lineage", "of"),
    ("list", "log"),
    ("ls", "files"),
    ("provenance", "of"),
    ("ps", "processes"),
    ("run", "record"),
    ("runs", "log"),
    ("trace", "record"),
];

/// The command that a common word of other programs means.
pub fn command_for(word: &str) -> Option<&'static str> {
    let mut words = COMMON_WORDS.iter();
    words.find(|(one, _)| *one == word).map(|(_, meant)| *meant)
}

/// `, did you mean NAME?` with the known name that differs least from a word. Empty if none is
/// similar.
pub fn suggestion<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    similar(word, known).map_or(String::new(), |name| format!(", did you mean {name}?"))
}

/// The known name that differs least from a word, if few characters differ. Case does not count.
fn similar<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word: Vec<char> = word.chars().take(LONGEST + 1).collect();
    if word.len() > LONGEST {
        return None;
    }
    let most = (1 + word.len() / 6).min(word.len().saturating_sub(1));
    known
        .into_iter()
        .map(|name| (distance(&word, &name.chars().collect::<Vec<char>>()), name))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many characters differ: those that are missing, added or exchanged, and neighbours that
/// changed places.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, one) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let differs = usize::from(!one.eq_ignore_ascii_case(other));
            let mut least = (rows[i][j] + differs)
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *other && b[j - 1] == *one {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_means_the_most_similar_name() {
        let known = ["runs", "processes", "files", "edges", "secret-sent"];
        for (word, meant) in [
            ("run", "runs"),
            ("RUNS", "runs"),
            ("proceses", "processes"),
            ("fiels", "files"),
            ("secret-snet", "secret-sent"),
        ] {
            assert_eq!(similar(word, known), Some(meant), "{word}");
        }
    }

    #[test]
    fn a_word_unlike_all_names_means_none_of_them() {
        let long = "r".repeat(100_000);
        for word in ["logs", "e", "", long.as_str()] {
            assert_eq!(similar(word, ["runs", "edges", "at"]), None);
            assert_eq!(suggestion(word, ["runs"]), "");
        }
    }
}
