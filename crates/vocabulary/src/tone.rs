//! The tones of texts: the page and the terminal's views colour a text by its kind and its verdict.

use crate::vocabulary;

vocabulary! {
    /// The meaning of a colour. The page has a colour of this name (`--good` in its style sheet),
    /// and the terminal's views use the terminal's own.
    pub enum Tone: "tone" {
        /// Ordinary text.
        Ink = "ink",
        /// Text that matters less.
        Quiet = "ink-quiet",
        /// A success.
        Good = "good",
        /// A failure.
        Bad = "bad",
        /// A record that is not complete.
        Warn = "warn",
        /// Something in progress, or chosen.
        Accent = "accent",
        /// A file of the user.
        File = "file",
        /// A command.
        Step = "step",
        /// A file of a package or of the system.
        System = "system",
    }
}
