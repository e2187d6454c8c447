//! The version of the rules by which programs are classified.
//!
//! A verdict that an earlier run kept holds only under the same rules. The version is a digest of
//! this crate's source, so that no change of a rule can leave it as it was.

/// The files that the rules are in, and everything else of this crate.
const SOURCES: [&[u8]; 13] = [
    include_bytes!("cache.rs"),
    include_bytes!("classify.rs"),
    include_bytes!("elf.rs"),
    include_bytes!("go.rs"),
    include_bytes!("instructions.rs"),
    include_bytes!("known.rs"),
    include_bytes!("known_file.rs"),
    include_bytes!("lib.rs"),
    include_bytes!("loads.rs"),
    include_bytes!("part.rs"),
    include_bytes!("rules.rs"),
    include_bytes!("symbols.rs"),
    include_bytes!("verdicts.rs"),
];

/// The version of the rules.
pub(crate) const RULES: u64 = digest();

/// FNV-1a of the sources and of the version of the program.
const fn digest() -> u64 {
    let mut hash = add(0xcbf2_9ce4_8422_2325, env!("CARGO_PKG_VERSION").as_bytes());
    let mut index = 0;
    while index < SOURCES.len() {
        hash = add(hash, SOURCES[index]);
        index += 1;
    }
    hash
}

const fn add(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_of_every_source_file() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        let files = std::fs::read_dir(directory).unwrap();
        let mut files: Vec<Vec<u8>> = files
            .map(|file| std::fs::read(file.unwrap().path()).unwrap())
            .collect();
        let mut sources: Vec<&[u8]> = SOURCES.to_vec();
        files.sort();
        sources.sort_unstable();
        assert_eq!(files, sources);
        assert_ne!(add(RULES, b"a"), RULES);
    }
}
