//! Texts with the wildcards `*` and `?`, and whether the text of a field is such a text.
//!
//! As in Sigma, `\` takes away the meaning of a wildcard. The case of ASCII letters does not
//! matter, unless the modifier `cased` is given.
//!
//! The parts between two `*` are looked for from left to right, each behind the one before. No
//! earlier part is looked for again. A part without `?` is found as by Knuth, Morris and Pratt, in
//! at most two steps for each byte of the field. A part with `?` is compared at each position, so
//! it has a longest length.
//!
//! This is not the matcher of `backstory-wildcards`, which compares short names and patterns of the
//! user without a preparation. There, `\` is a plain byte, and the time may be the product of both
//! lengths. Rules come from others, and a field such as a command line may have megabytes. The
//! pieces of a pattern also become conditions of SQL.

/// Longest part with `?` between two `*`, in bytes.
const LONGEST: usize = 256;

/// A piece of a text with wildcards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// This byte.
    Byte(u8),
    /// Any byte.
    One,
    /// Any bytes.
    Any,
}

/// Where in the field the text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It is the whole field.
    Whole,
    /// Anywhere.
    Contains,
    /// At the beginning.
    Start,
    /// At the end.
    End,
}

/// A text with wildcards.
#[derive(Debug)]
pub struct Glob {
    pieces: Vec<Piece>,
    cased: bool,
    /// The indices of the first and the last `*`.
    stars: Option<(usize, usize)>,
    /// The parts between two `*`, in their order. None of them is empty.
    parts: Vec<Part>,
}

/// A part between two `*`.
#[derive(Debug)]
enum Part {
    /// Without `?`: its bytes, and the length of the longest border of each of its beginnings. A
    /// border is a shorter text that is both the beginning and the end.
    Plain(Vec<u8>, Vec<usize>),
    /// With `?`.
    Wild(Vec<Piece>),
}

impl Glob {
    /// A text with wildcards, or the mistake in it.
    ///
    /// # Errors
    ///
    /// A part with `?` is too long. The cause is one line.
    pub fn new(text: &str, anchor: Anchor, cased: bool) -> Result<Glob, String> {
        let pieces = pieces(text, anchor);
        let is_any = |piece: &Piece| *piece == Piece::Any;
        let first = pieces.iter().position(is_any);
        let stars = first.zip(pieces.iter().rposition(is_any));
        let between: &[Piece] = match stars {
            Some((first, last)) => &pieces[first..last],
            None => &[],
        };
        let parts = between.split(is_any).filter(|part| !part.is_empty());
        let parts = parts
            .map(|part| Part::new(part, cased))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Glob {
            pieces,
            cased,
            stars,
            parts,
        })
    }

    /// The bytes and wildcards.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether the case of letters matters.
    pub fn is_cased(&self) -> bool {
        self.cased
    }

    /// True if a field's text is such a text.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.is_met_by(text, &mut || ())
    }

    /// `step` is called for each comparison of two bytes, and for each byte of the text.
    fn is_met_by(&self, text: &[u8], step: &mut impl FnMut()) -> bool {
        let Some((first, last)) = self.stars else {
            return text.len() == self.pieces.len() && equals(&self.pieces, text, self.cased, step);
        };
        let (start, end) = (&self.pieces[..first], &self.pieces[last + 1..]);
        if text.len() < start.len() + end.len() {
            return false;
        }
        let (text, tail) = text.split_at(text.len() - end.len());
        let (head, mut rest) = text.split_at(start.len());
        if !equals(start, head, self.cased, step) || !equals(end, tail, self.cased, step) {
            return false;
        }
        for part in &self.parts {
            let Some(end) = part.end_in(rest, self.cased, step) else {
                return false;
            };
            rest = &rest[end..];
        }
        true
    }
}

impl Part {
    fn new(pieces: &[Piece], cased: bool) -> Result<Part, String> {
        let plain = |piece: &Piece| match piece {
            Piece::Byte(byte) => Some(folded(*byte, cased)),
            Piece::One | Piece::Any => None,
        };
        match pieces.iter().map(plain).collect::<Option<Vec<u8>>>() {
            Some(bytes) => {
                let borders = borders(&bytes);
                Ok(Part::Plain(bytes, borders))
            }
            None if pieces.len() <= LONGEST => Ok(Part::Wild(pieces.to_vec())),
            None => Err(format!(
                "a text with `?` has more than {LONGEST} bytes between two `*`"
            )),
        }
    }

    /// The end of the first such part in a text.
    fn end_in(&self, text: &[u8], cased: bool, step: &mut impl FnMut()) -> Option<usize> {
        match self {
            Part::Plain(bytes, borders) => {
                let mut met = 0;
                for (at, byte) in text.iter().enumerate() {
                    let byte = folded(*byte, cased);
                    step();
                    while met > 0 && bytes[met] != byte {
                        step();
                        met = borders[met - 1];
                    }
                    if bytes[met] == byte {
                        met += 1;
                    }
                    if met == bytes.len() {
                        return Some(at + 1);
                    }
                }
                None
            }
            Part::Wild(pieces) => {
                let mut windows = text.windows(pieces.len());
                let at = windows.position(|some| equals(pieces, some, cased, step))?;
                Some(at + pieces.len())
            }
        }
    }
}

impl Piece {
    fn fits(self, byte: u8, cased: bool) -> bool {
        match self {
            Piece::Byte(own) => folded(own, cased) == folded(byte, cased),
            Piece::One => true,
            Piece::Any => false,
        }
    }
}

fn pieces(text: &str, anchor: Anchor) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if matches!(anchor, Anchor::Contains | Anchor::End) {
        pieces.push(Piece::Any);
    }
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        pieces.push(match byte {
            b'*' => Piece::Any,
            b'?' => Piece::One,
            b'\\' => match bytes.next_if(|next| b"*?\\".contains(next)) {
                Some(plain) => Piece::Byte(plain),
                None => Piece::Byte(byte),
            },
            byte => Piece::Byte(byte),
        });
    }
    if matches!(anchor, Anchor::Contains | Anchor::Start) {
        pieces.push(Piece::Any);
    }
    pieces
}

/// The byte that stands for all that equal it.
fn folded(byte: u8, cased: bool) -> u8 {
    match cased {
        true => byte,
        false => byte.to_ascii_lowercase(),
    }
}

/// Compares pieces with a text of the same length.
fn equals(pieces: &[Piece], text: &[u8], cased: bool, step: &mut impl FnMut()) -> bool {
    let mut both = pieces.iter().zip(text);
    both.all(|(piece, byte)| {
        step();
        piece.fits(*byte, cased)
    })
}

/// The length of the longest border of each beginning of a text.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; bytes.len()];
    let mut met = 0;
    for at in 1..bytes.len() {
        while met > 0 && bytes[met] != bytes[at] {
            met = borders[met - 1];
        }
        if bytes[met] == bytes[at] {
            met += 1;
        }
        borders[at] = met;
    }
    borders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(pattern: &str, anchor: Anchor, cased: bool) -> Glob {
        Glob::new(pattern, anchor, cased).unwrap()
    }

    fn glob(pattern: &str, text: &str) -> bool {
        new(pattern, Anchor::Whole, false).matches(text.as_bytes())
    }

    #[test]
    fn wildcards_match_as_in_sigma() {
        assert!(glob("*/.ssh/id_*", "/home/a/.ssh/id_rsa") && glob("a?c", "abc"));
        assert!(glob("", "") && glob("*", "") && glob("**a**", "xay"));
        assert!(!glob("a?c", "ac") && !glob("*/.ssh/id_*", "/home/.ssh/x") && !glob("", "a"));
        assert!(glob("A*B", "axxb") && !new("A", Anchor::Whole, true).matches(b"a"));
        assert!(glob("*Ab*", "xaB") && !new("*Ab*", Anchor::Whole, true).matches(b"xaB"));
        assert!(glob(r"a\*b", "a*b") && !glob(r"a\*b", "axb"));
        assert!(new("sh", Anchor::End, false).matches(b"/bin/bash"));
        assert!(!new("sh", Anchor::Start, false).matches(b"/bin/bash"));
    }

    /// Compares by the definition of the wildcards, however long that takes.
    fn is_met(pieces: &[Piece], text: &[u8]) -> bool {
        match (pieces.split_first(), text.split_first()) {
            (None, _) => text.is_empty(),
            (Some((Piece::Any, rest)), _) => {
                (0..=text.len()).any(|from| is_met(rest, &text[from..]))
            }
            (Some((piece, rest)), Some((byte, others))) => {
                piece.fits(*byte, false) && is_met(rest, others)
            }
            (Some(_), None) => false,
        }
    }

    /// All texts of at most so many of these characters.
    fn texts(characters: &str, longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..longest {
            let end = all.len();
            for at in from..end {
                let longer = characters.chars().map(|one| format!("{}{one}", all[at]));
                let longer: Vec<String> = longer.collect();
                all.extend(longer);
            }
            from = end;
        }
        all
    }

    #[test]
    fn every_short_pattern_matches_the_texts_that_its_wildcards_mean() {
        let fields = texts("aB", 6);
        assert_eq!(fields.len(), 127);
        for pattern in texts("ab*?", 5) {
            let pattern = new(&pattern, Anchor::Whole, false);
            for field in &fields {
                let field = field.as_bytes();
                assert_eq!(
                    pattern.matches(field),
                    is_met(pattern.pieces(), field),
                    "{pattern:?} {field:?}"
                );
            }
        }
    }

    /// How many steps a comparison takes that finds nothing.
    fn steps(pattern: &Glob, text: &str) -> usize {
        let mut steps = 0;
        assert!(!pattern.is_met_by(text.as_bytes(), &mut || steps += 1));
        steps
    }

    #[test]
    fn a_hostile_pattern_takes_two_steps_for_each_byte_at_most() {
        let text = "a".repeat(10_000);
        let many = "*ac".repeat(2_000) + "*";
        let long = format!("*{}b*", "a".repeat(5_000));
        for pattern in ["*a*a*a*a*b", "*a*a*a*a*b*", &many, &long, "*ab*ab*"] {
            let pattern = new(pattern, Anchor::Whole, false);
            let most = 2 * text.len() + pattern.pieces().len();
            assert!(steps(&pattern, &text) <= most, "{}", steps(&pattern, &text));
        }
        // All parts but the last one are there.
        let pattern = new(&("*a".repeat(2_000) + "*b*"), Anchor::Whole, false);
        assert!(steps(&pattern, &text) <= 2 * text.len());
    }

    #[test]
    fn a_part_with_question_marks_takes_a_bounded_number_of_steps_for_each_byte() {
        let wild = format!("{}b", "a?".repeat(127));
        let text = "a".repeat(10_000);
        let pattern = new(&wild, Anchor::Contains, false);
        assert!(steps(&pattern, &text) <= LONGEST * text.len());
        let longer = format!("aa{wild}");
        let refused = Glob::new(&longer, Anchor::Contains, false).unwrap_err();
        assert!(refused.contains("more than 256 bytes"), "{refused}");
        assert!(Glob::new(&longer, Anchor::End, false).is_ok());
    }
}
