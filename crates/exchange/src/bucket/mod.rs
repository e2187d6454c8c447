//! A store in a bucket of an object storage that speaks S3's protocol.
//!
//! In: requests of an exchange, as a directory gets them. Out: objects, which `docs/formats/
//! exchange.md` lists, and archives made of them.
//!
//! ```text
//!   BucketPeer ── Objects ── Curl ═══ HTTPS ═══ bucket
//!   checks        keys       requests
//! ```
//!
//! Invariant: a bucket has no program of backstory. So all that a receiver must check is checked
//! here before it is written, and again by the store that pulls it.
//!
//! Absent: a database. A bucket cannot be asked; the runs that leave it are chosen by their ids.

mod account;
mod address;
mod curl;
mod listing;
mod notes;
mod objects;
mod peer;
mod scratch_store;

pub use address::BucketAddress;
pub use peer::BucketPeer;
