//! Fixed words of the interfaces. In: one table for each list of words. Out: an enum with its
//! parser and its printer.
//!
//! A fact such as the mode of a run is an enum everywhere in memory. It is a word only in
//! arguments, log headers, the database, JSON and text. [`vocabulary!`] makes the enum and both
//! conversions from one table, so that no other code compares words.
//!
//! Invariant: the words are part of the fixed interfaces. A word is added, never renamed.
//!
//! Absent on purpose: what a value does. Each crate decides that with a `match` over the enum.

mod error_chain;
mod modes;
mod number_words;
mod tone;

pub use error_chain::error_chain;
pub use modes::{
    ContentsMode, DurabilityMode, GuardMode, IoUringMode, LookupsMode, OutputsMode,
    PassthroughMode, RowsMode, SuppressMode, TimeMode,
};
pub use number_words::{counted, grouped, noun};
pub use tone::Tone;

/// A value that has a fixed word.
pub trait Word: Copy + Eq + 'static {
    /// All values, in the order in which help texts list them.
    const ALL: &'static [Self];
    /// The name of the list, for error messages.
    const LIST: &'static str;

    /// The value's word.
    fn word(self) -> &'static str;

    /// The value of a word.
    ///
    /// # Errors
    /// [`UnknownWord`] if no value has it.
    fn from_word(word: &str) -> Result<Self, UnknownWord> {
        let mut all = Self::ALL.iter().copied();
        all.find(|value| value.word() == word)
            .ok_or_else(|| UnknownWord {
                list: Self::LIST,
                word: word.to_owned(),
            })
    }
}

/// A word that no value of a list has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{word}' is not a {list}")]
pub struct UnknownWord {
    /// The name of the list.
    pub list: &'static str,
    /// The word.
    pub word: String,
}

/// Makes an enum from a table of variants and words, with [`Word`], `Display` and `FromStr`.
///
/// ```
/// use backstory_vocabulary::{Word, vocabulary};
/// vocabulary! {
///     /// Light of a crossing.
///     pub enum Light: "light" {
///         /// Stop.
///         Red = "red",
///         /// Go.
///         Green = "green",
///     }
/// }
/// assert_eq!("green".parse(), Ok(Light::Green));
/// assert_eq!(Light::Red.to_string(), "red");
/// assert_eq!(Light::from_word("blue").unwrap_err().to_string(), "'blue' is not a light");
/// ```
#[macro_export]
macro_rules! vocabulary {
    (
        $(#[$about:meta])*
        $visibility:vis enum $name:ident: $list:literal {
            $($(#[$note:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $visibility enum $name {
            $($(#[$note])* $variant,)+
        }

        impl $crate::Word for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];
            const LIST: &'static str = $list;

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad($crate::Word::word(*self))
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, $crate::UnknownWord> {
                $crate::Word::from_word(word)
            }
        }
    };
}
