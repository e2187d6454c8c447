//! The providers of packages, one file for each.

pub mod cargo;
pub mod conda;
pub mod dpkg;
pub mod npm;
pub mod pip;
pub mod python;
pub mod rpm;
