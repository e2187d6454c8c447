//! Undeclared inputs: compares the files that a run read with those that its build declared.
//!
//! In: a recorded run, and the build's own rules as the build tool reports them now. Out: a
//! [`Comparison`] in both directions. One list has the files that a step read although no rule says
//! so. The other has the files that a rule names although its step did not read them.
//!
//! Each build system is one file in [`systems`], behind the trait [`BuildSystem`]:
//!
//! | build system | source of its declarations |
//! | --- | --- |
//! | Make, CMake with makefiles | the database that `make -pn` prints |
//! | ninja, CMake and Meson with ninja | `ninja -t query` and `ninja -t deps` |
//! | compilers | the depfiles (`*.d`) that they wrote |
//! | Snakemake | `.snakemake/metadata` |
//! | any other | a file with one path or pattern a line ([`Listed`]) |
//! | Debian | `Build-Depends` in `debian/control` ([`debian`]), by package |
//!
//! A rule counts for the steps that make its target. The files that a prerequisite is made from
//! count as declared, too: a change of one makes the target again. A step that makes no target may
//! read all that any rule names.
//!
//! Absent: system files and packages, except for `Build-Depends`. No build system declares the
//! headers in `/usr/include` one by one.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod build_run;
mod compare;
pub mod debian;
mod error;
mod rules;
pub mod systems;

pub use build_run::{BuildRun, ToolCall};
pub use compare::{Comparison, Difference, compare};
pub use error::{Error, Result};
pub use rules::DeclaredRules;
pub use systems::{BuildSystem, Listed, declarations};
