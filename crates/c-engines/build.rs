//! Compiles the C file of each library that a feature asks for, and links the library.
//!
//! A missing header ends the build with the name of Debian's package.

use std::env;

/// Feature, header, library, package.
const LIBRARIES: [[&str; 4]; 2] = [
    ["berkeleydb", "db.h", "db-5.3", "libdb5.3-dev"],
    ["rocksdb", "rocksdb/c.h", "rocksdb", "librocksdb-dev"],
];

fn main() {
    println!("cargo:rerun-if-changed=c");
    for [feature, header, library, package] in LIBRARIES {
        let wanted = format!("CARGO_FEATURE_{}", feature.to_uppercase());
        if env::var_os(wanted).is_none() {
            continue;
        }
        let mut build = cc::Build::new();
        build.file(format!("c/{feature}.c")).std("gnu17");
        build.warnings(true).extra_warnings(true);
        if let Err(error) = build.try_compile(&format!("backstory_{feature}")) {
            panic!(
                "the feature {feature} needs the header {header} (Debian: apt-get install {package}), \
                 or leave the feature out: {error}"
            );
        }
        println!("cargo:rustc-link-lib=dylib={library}");
    }
}
