//! The words for colours: the page has a colour for each tone of the vocabulary, in light and dark.
#![allow(clippy::unwrap_used)]

use backstory_vocabulary::{Tone, Word as _};

#[test]
fn the_page_has_each_colour_that_the_terminals_views_name() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/web/src/design/tokens.css");
    let css = std::fs::read_to_string(path).unwrap();
    for tone in Tone::ALL {
        let start = format!("\n  --{tone}: light-dark(#");
        let count = css.matches(&start).count();
        assert_eq!(
            count, 1,
            "{path} must define --{tone} once, for light and dark"
        );
    }
    // A colour of a thing that the page has and the terminal lacks would be a word of one of them
    // only. Grounds, lines and faint text are shades for which a terminal has no colour.
    let shades = [
        "ground",
        "raised",
        "sunken",
        "hover",
        "line",
        "faint",
        "on-accent",
    ];
    let colours = css.lines().filter(|line| line.contains("light-dark(#"));
    for line in colours {
        let name = line
            .trim()
            .trim_start_matches("--")
            .split(':')
            .next()
            .unwrap();
        let is_shade = shades.iter().any(|shade| name.contains(shade));
        let is_tone = Tone::ALL.iter().any(|tone| tone.to_string() == name);
        assert!(is_shade || is_tone, "--{name} is no tone of the vocabulary");
    }
}
