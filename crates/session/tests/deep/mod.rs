//! Tests of deep recording. The oracle is strace, which watches the same processes.
#![allow(clippy::unwrap_used)]

mod strace_oracle;

mod bytes;
mod descriptors;
mod full_disk;
mod go;
mod signals;
mod trouble;
