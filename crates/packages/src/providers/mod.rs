//! The providers of packages, one file for each.

pub mod apk;
pub mod cargo;
pub mod conda;
pub mod dpkg;
pub mod go;
pub mod maven;
pub mod npm;
pub mod pacman;
pub mod pip;
pub mod python;
pub mod r;
pub mod rpm;
pub mod rustup;
pub mod tex_live;
