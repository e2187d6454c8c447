//! Finds the name that a misspelt word probably means, and the command for a word of other
//! programs.

use strsim::osa_distance;

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
    let length = word.chars().take(LONGEST + 1).count();
    if length > LONGEST {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let most = (1 + length / 6).min(length.saturating_sub(1));
    known
        .into_iter()
        .map(|name| (osa_distance(&word, &name.to_ascii_lowercase()), name))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
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
