//! Arguments of `emit`.

use backstory_graph::parts::Part;
use clap::{Args, Subcommand};

/// The text after the options in the help.
pub const EMIT: &str = "Examples:\n  \
    backstory emit begin train 'epoch 3'\n  \
    backstory emit read s3://bucket/images\n  \
    backstory emit write model:3\n  \
    backstory emit change bank:accounts#row=42\n  \
    backstory emit note loss 0.12\n  \
    backstory emit end\n\n\
    The statement is about the process that runs `backstory emit`, as a shell.\n\
    Outside of a recording it does nothing. The name of a thing is a URI with a\n\
    scheme of your own. `backstory of model:3` then answers what it came from.\n\
    Files need no statement: their uses are observed.\n\n\
    Kinds of parts: row, column, cell, key, field, member, bytes, lines, pages.\n\
    With --handle, activities may overlap. The handle is any word.";

/// `emit`
#[derive(Debug, Args)]
pub struct EmitArgs {
    /// The activity that the statement is about, by a word of your own
    #[arg(long, global = true, value_name = "WORD")]
    pub handle: Option<String>,

    /// With `begin --handle`: the handle of the activity around the new one
    #[arg(long, global = true, value_name = "WORD", requires = "handle")]
    pub around: Option<String>,

    /// What to say
    #[command(subcommand)]
    pub statement: EmitStatement,
}

/// The statements.
#[derive(Debug, Subcommand)]
pub enum EmitStatement {
    /// An activity begins inside the present one
    Begin {
        /// What the activity is, and words that describe it
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// The activity of the last `begin` ends, and another begins
    Next {
        /// What the activity is, and words that describe it
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// The activity of the last `begin` ends
    End,
    /// The activity read a thing
    Read {
        /// The name of the thing: a URI. #KIND=VALUE after it names a part
        name: String,
        /// A part of the thing, as row=42 or bytes=0-4095
        #[arg(long, value_name = "KIND=VALUE")]
        part: Option<Part>,
    },
    /// The activity made a thing, or all of its content is new
    Write {
        /// The name of the thing: a URI. #KIND=VALUE after it names a part
        name: String,
        /// A part of the thing, as row=42 or bytes=0-4095
        #[arg(long, value_name = "KIND=VALUE")]
        part: Option<Part>,
    },
    /// The activity changed a part of a thing
    Change {
        /// The name of the thing: a URI. #KIND=VALUE after it names a part
        name: String,
        /// A part of the thing, as row=42 or bytes=0-4095
        #[arg(long, value_name = "KIND=VALUE")]
        part: Option<Part>,
    },
    /// The activity deleted a thing
    Delete {
        /// The name of the thing: a URI. #KIND=VALUE after it names a part
        name: String,
        /// A part of the thing, as row=42 or bytes=0-4095
        #[arg(long, value_name = "KIND=VALUE")]
        part: Option<Part>,
    },
    /// The activity made a thing from another
    Derive {
        /// The name of the new thing: a URI
        name: String,
        /// The name of the thing that it was made from: a URI
        from: String,
    },
    /// The activity has an attribute
    Note {
        /// The name of the attribute
        key: String,
        /// Its value
        value: String,
    },
    /// The activity has an extended record
    Record {
        /// The type of the record: words with dots between them, as `org.example.metric`
        r#type: String,
        /// The record, best as JSON; `-` for standard input
        payload: String,
    },
}

#[cfg(test)]
mod tests {
    use backstory_graph::parts::PartKind;
    use backstory_vocabulary::Word;

    use super::EMIT;

    #[test]
    fn the_help_lists_all_kinds_of_parts() {
        let words: Vec<&str> = PartKind::ALL.iter().map(|kind| kind.word()).collect();
        let line = format!("Kinds of parts: {}.", words.join(", "));
        assert!(EMIT.contains(&line), "expected `{line}`");
    }
}
