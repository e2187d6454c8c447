//! The fields of nodes that expressions see, with their types.
//!
//! Invariant: a node has each of its fields with a value of this type. The worker refuses
//! comparisons by it (crate `inspect`, `expression_types.rs`).

backstory_vocabulary::vocabulary! {
    /// The type of a field.
    pub enum FieldType: "type of a field" {
        /// A text.
        Text = "string",
        /// A number.
        Number = "number",
        /// A number that can be unknown.
        NumberOrNull = "number or null",
        /// True or false.
        Bool = "bool",
        /// True or false, or unknown.
        BoolOrNull = "bool or null",
        /// Texts.
        Texts = "list of strings",
    }
}

/// The name of a field in expressions, and its type.
pub type Field = (&'static str, FieldType);
