//! The modes of a run: how a command is recorded.
//!
//! Each mode is one enum from the argument of `record` to the log's header, the database and JSON.

use crate::{Word, vocabulary};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

vocabulary! {
    /// Which contents of files are stored (`--contents`).
    pub enum ContentsMode: "contents mode" {
        /// None.
        Off = "off",
        /// Contents that the run read, and contents that files have when it ends.
        Lazy = "lazy",
        /// Every version of every file, too.
        All = "all",
    }
}

vocabulary! {
    /// Whether the guard watches system calls in the kernel (`--guard`).
    pub enum GuardMode: "guard mode" {
        /// The recorder and the guard work together.
        On = "on",
        /// The recorder works alone: processes without it are not seen.
        Off = "off",
        /// The guard logs every watched call, and does not trust the recorder's gate.
        Strict = "strict",
        /// A process gets the guard's filter before something that the recorder would not see.
        Auto = "auto",
    }
}

vocabulary! {
    /// Which processes' look-ups (`stat`, `access`, `readlink`) are recorded (`--lookups`).
    pub enum LookupsMode: "look-ups mode" {
        /// Those of processes that the recorder runs in.
        Library = "library",
        /// Those of every process: the guard watches them, too.
        All = "all",
    }
}

vocabulary! {
    /// How `io_uring_setup` by a recorded process is treated (`--io-uring`).
    pub enum IoUringMode: "io_uring mode" {
        /// The call succeeds, and submissions are decoded where that is possible.
        Decode = "decode",
        /// `io_uring_setup` fails with `ENOSYS`.
        Refuse = "refuse",
    }
}

vocabulary! {
    /// Whether the log reaches the disk before the results of the run (`--durability`).
    #[derive(Default)]
    pub enum DurabilityMode: "durability mode" {
        /// After them: no call waits for the disk.
        #[default]
        After = "after",
        /// Before each content that a call of the run makes durable.
        Ordered = "ordered",
        /// Also before each write.
        Sync = "sync",
    }
}

vocabulary! {
    /// Whether the kernel reads and writes the files of a mount itself (`mount --passthrough`).
    pub enum PassthroughMode: "passthrough mode" {
        /// It does, where it can: opens are recorded, not each program's first read and write.
        On = "on",
        /// The mount does.
        Off = "off",
    }
}

vocabulary! {
    /// Whether the watch of a database records the rows that transactions changed (`watch --rows`).
    #[derive(Default)]
    pub enum RowsMode: "rows mode" {
        /// Each changed row, with its key and values.
        #[default]
        On = "on",
        /// Statements alone, with the tables that they read and change.
        Off = "off",
    }
}

vocabulary! {
    /// How a deep log has the bytes that left a process (`--outputs`).
    #[derive(Default)]
    pub enum OutputsMode: "outputs mode" {
        /// Their length and digest.
        #[default]
        Digest = "digest",
        /// The bytes.
        Full = "full",
    }
}

vocabulary! {
    /// Whether a deep log has the time that programs take without a system call (`--time`).
    #[derive(Default)]
    pub enum TimeMode: "time mode" {
        /// It does not.
        #[default]
        Usual = "usual",
        /// Each time is in it.
        Exact = "exact",
    }
}

vocabulary! {
    /// Whether repeated reads and writes of an open file are left out of the log (`--suppress`).
    ///
    /// Log headers and JSON have this mode as a Boolean.
    #[derive(Serialize, Deserialize)]
    #[serde(from = "bool", into = "bool")]
    pub enum SuppressMode: "suppress mode" {
        /// Only the first read and the first write of each open file are logged.
        On = "on",
        /// All reads and writes are logged.
        Off = "off",
    }
}

impl From<bool> for SuppressMode {
    fn from(on: bool) -> SuppressMode {
        if on {
            SuppressMode::On
        } else {
            SuppressMode::Off
        }
    }
}

impl From<SuppressMode> for bool {
    fn from(mode: SuppressMode) -> bool {
        mode == SuppressMode::On
    }
}

/// Log headers and the database have a mode as its word.
macro_rules! serialized_as_word {
    ($($mode:ty)+) => {$(
        impl Serialize for $mode {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl<'de> Deserialize<'de> for $mode {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Word::from_word(&word).map_err(de::Error::custom)
            }
        }
    )+};
}

serialized_as_word!(ContentsMode GuardMode LookupsMode IoUringMode DurabilityMode OutputsMode RowsMode);

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn words<W: Word + Debug + Serialize + de::DeserializeOwned>() -> Vec<String> {
        let mut words = Vec::new();
        for &value in W::ALL {
            assert_eq!(W::from_word(value.word()), Ok(value));
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<W>(&json).unwrap(), value);
            words.push(json);
        }
        words
    }

    #[test]
    fn every_mode_is_read_back_from_its_word_and_from_json() {
        assert_eq!(
            words::<ContentsMode>(),
            [r#""off""#, r#""lazy""#, r#""all""#]
        );
        assert_eq!(
            words::<GuardMode>(),
            [r#""on""#, r#""off""#, r#""strict""#, r#""auto""#]
        );
        assert_eq!(words::<LookupsMode>(), [r#""library""#, r#""all""#]);
        assert_eq!(words::<IoUringMode>(), [r#""decode""#, r#""refuse""#]);
        assert_eq!(words::<SuppressMode>(), ["true", "false"]);
        assert_eq!(
            words::<DurabilityMode>(),
            [r#""after""#, r#""ordered""#, r#""sync""#]
        );
        assert_eq!(words::<OutputsMode>(), [r#""digest""#, r#""full""#]);
        assert_eq!(words::<RowsMode>(), [r#""on""#, r#""off""#]);
    }

    #[test]
    fn an_unknown_word_names_its_list() {
        let error = "some".parse::<ContentsMode>().unwrap_err();
        assert_eq!(error.to_string(), "'some' is not a contents mode");
    }
}
