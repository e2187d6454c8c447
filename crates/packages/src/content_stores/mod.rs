//! Finds the content-addressed store that has a file's content. It is git-annex, the cache of DVC,
//! the cache of Hugging Face, an OCI image layout, the models of Ollama, or a git repository.
//!
//! In: the path of a file without links. Out: the file of the store with the same content, and the
//! checksum that its name states. Each store is one file in this directory, behind the trait
//! [`content_store::ContentStore`].
//!
//! Invariant: the answer comes from names and sizes only. A caller that needs certainty compares
//! the file with the checksum ([`crate::compare`]).

mod content_store;
mod dvc;
mod git;
mod git_annex;
mod hugging_face;
mod oci;

use std::path::{Path, PathBuf};

use crate::checksum::Checksum;
use content_store::ContentStore;

/// A file of a content-addressed store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldFile {
    /// The store in words: `the cache of DVC`.
    pub store: &'static str,
    /// The file in the store. It can be the file that was asked about. An object of git can be in a
    /// pack instead: `backstory_git_objects::open_blob` opens it.
    pub path: PathBuf,
    /// The checksum of its content.
    pub checksum: Checksum,
}

/// All kinds of content-addressed stores.
pub struct ContentStores(Vec<Box<dyn ContentStore>>);

impl Default for ContentStores {
    fn default() -> Self {
        ContentStores(vec![
            Box::new(git_annex::GitAnnex),
            Box::new(hugging_face::HuggingFace),
            Box::new(oci::Oci),
            Box::new(oci::Ollama),
            Box::new(dvc::Dvc::default()),
            Box::new(git::GitRepository::default()),
        ])
    }
}

impl ContentStores {
    /// The store that has the content of the file at `real`, an absolute path without links, if the
    /// store's file exists.
    pub fn holder(&mut self, real: &Path) -> Option<HeldFile> {
        self.0.iter_mut().find_map(|store| {
            let (path, checksum) = store.holder(real)?;
            store.has(&path).then(|| HeldFile {
                store: store.name(),
                path,
                checksum,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::content_store::{md5, sha256};
    use super::*;

    const SHA: &str = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    const MD5: &str = "b1946ac92492d2347c6235b4d2611184";

    fn holder(path: &Path) -> Option<(&'static str, PathBuf, Checksum)> {
        let held = ContentStores::default().holder(path)?;
        Some((held.store, held.path, held.checksum))
    }

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_path_in_a_store_names_store_and_checksum() {
        let tmp = tempfile::tempdir().unwrap();
        let sha = sha256(SHA).unwrap();
        let key = format!("SHA256E-s6--{SHA}.csv");
        let md5_key = format!("MD5-s6--{MD5}");
        let cases = [
            (
                format!("ds/.git/annex/objects/1x/Qk/{key}/{key}"),
                "git-annex",
                sha.clone(),
            ),
            (
                format!("ds/.git/annex/objects/a1b/0c2/{md5_key}/{md5_key}"),
                "git-annex",
                md5(MD5).unwrap(),
            ),
            (
                format!("hub/models--org--name/blobs/{SHA}"),
                "the cache of Hugging Face",
                sha.clone(),
            ),
            (
                format!("image/blobs/sha256/{SHA}"),
                "an OCI image layout",
                sha.clone(),
            ),
            (
                format!("models/blobs/sha256-{SHA}"),
                "the models of Ollama",
                sha,
            ),
            (
                format!("p/.dvc/cache/files/md5/{}/{}", &MD5[..2], &MD5[2..]),
                "the cache of DVC",
                md5(MD5).unwrap(),
            ),
        ];
        write(&tmp.path().join("image/oci-layout"), "{}");
        for (path, store, checksum) in cases {
            let path = tmp.path().join(path);
            assert_eq!(holder(&path), None, "it does not exist: {path:?}");
            write(&path, "hello\n");
            assert_eq!(holder(&path), Some((store, path.clone(), checksum)));
        }
        for other in [
            format!("blobs/{SHA}"),
            format!("blobs/md5/{MD5}"),
            format!("no-layout/blobs/sha256/{SHA}"),
            format!("annex/objects/a/b/SHA256E-s6--{SHA}"),
            format!("files/md5/b1/{MD5}"),
            "plain.csv".to_owned(),
        ] {
            let path = tmp.path().join(other);
            write(&path, "hello\n");
            assert_eq!(holder(&path), None, "{path:?}");
        }
    }

    #[test]
    fn dvc_has_what_its_files_and_its_lock_name_in_directories_too() {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path();
        let at = |path: &str| root.join(path);
        write(&at(".dvc/config"), "");
        write(
            &at("data/raw.csv.dvc"),
            &format!("outs:\n- md5: {MD5}\n  size: 6\n  hash: md5\n  path: raw.csv\n"),
        );
        let listing = "0123456789abcdef0123456789abcdef";
        write(
            &at("dvc.lock"),
            &format!(
                "schema: '2.0'\nstages:\n  fit:\n    cmd: ./fit\n    outs:\n    - path: out/models\n      md5: {listing}.dir\n    - path: one.bin\n      md5: {MD5}\n"
            ),
        );
        let cached = at(&format!(".dvc/cache/files/md5/{}/{}", &MD5[..2], &MD5[2..]));
        write(&cached, "hello\n");
        write(
            &at(&format!(".dvc/cache/files/md5/01/{}.dir", &listing[2..])),
            &format!("[{{\"md5\": \"{MD5}\", \"relpath\": \"sub/m.bin\"}}]"),
        );
        let expected = Some(("the cache of DVC", cached.clone(), md5(MD5).unwrap()));
        for file in ["data/raw.csv", "out/models/sub/m.bin", "one.bin"] {
            assert_eq!(holder(&at(file)), expected, "{file}");
        }
        for file in ["data/other.csv", "out/models/other", "data/raw.csv.dvc"] {
            assert_eq!(holder(&at(file)), None, "{file}");
        }
        // Another directory for the cache, and the layout of DVC 2.
        write(
            &at(".dvc/config"),
            "[core]\n    remote = s\n[cache]\n    dir = ../../shared\n",
        );
        let moved = root
            .parent()
            .unwrap()
            .join("shared")
            .join(&MD5[..2])
            .join(&MD5[2..]);
        assert_eq!(holder(&at("one.bin")), None);
        write(&moved, "hello\n");
        let found = holder(&at("one.bin")).unwrap().1;
        assert_eq!(found.canonicalize().unwrap(), moved.canonicalize().unwrap());
        std::fs::remove_dir_all(moved.parent().unwrap()).unwrap();
    }

    /// A loose object of git with this id.
    fn write_object(root: &Path, id: &str, object: &[u8]) -> PathBuf {
        use std::io::Write;
        let path = root.join(".git/objects").join(&id[..2]).join(&id[2..]);
        let level = flate2::Compression::fast();
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
        encoder.write_all(object).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, encoder.finish().unwrap()).unwrap();
        path
    }

    /// A repository whose commit has `file` as this blob. Returns the path of the blob and its id.
    fn repository(root: &Path, id: &str, blob: &[u8]) -> (PathBuf, [u8; 20]) {
        let blob = write_object(root, id, blob);
        let id: [u8; 20] = crate::records::hex(id).unwrap();
        let (commit, tree) = ("30".repeat(20), "20".repeat(20));
        let entry = [&b"100644 file\0"[..], &id].concat();
        let head = format!("tree {}\0", entry.len());
        write_object(root, &tree, &[head.as_bytes(), &entry].concat());
        let text = format!("tree {tree}\n");
        let head = format!("commit {}\0", text.len());
        write_object(root, &commit, (head + &text).as_bytes());
        write(&root.join(".git/HEAD"), &commit);
        (blob, id)
    }

    #[test]
    fn a_file_that_git_may_pack_beyond_reach_is_not_left_in_its_repository() {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path().canonicalize().unwrap();
        for (size, is_left) in [(8 << 20, true), ((8 << 20) + 1, false)] {
            let id = "10".repeat(20);
            // Only the size that the blob states is compared here.
            let (blob, id) = repository(&root, &id, format!("blob {size}\0").as_bytes());
            let file = std::fs::File::create(root.join("file")).unwrap();
            file.set_len(size).unwrap();
            let expected = ("a git repository", blob, Checksum::GitBlob { size, id });
            assert_eq!(holder(&root.join("file")), is_left.then_some(expected));
        }
    }

    #[test]
    fn a_git_repository_has_a_committed_file_of_the_same_size() {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path().canonicalize().unwrap();
        // `git hash-object` of "hello\n".
        let id = "ce013625030ba8dba906f756967f9e9ca394464a";
        let (blob, id) = repository(&root, id, b"blob 6\0hello\n");
        let file = root.join("file");
        for (text, other) in [("hello\n", false), ("hello", true), ("hallo\n", false)] {
            write(&file, text);
            let checksum = Checksum::GitBlob { size: 6, id };
            let expected = ("a git repository", blob.clone(), checksum.clone());
            assert_eq!(holder(&file), (!other).then_some(expected), "{text:?}");
            let same = crate::compare(&mut text.as_bytes(), &checksum).unwrap().2;
            assert_eq!(same, text == "hello\n");
        }
        write(&root.join("other"), "hello\n");
        assert_eq!(holder(&root.join("other")), None);
        std::fs::remove_file(&blob).unwrap();
        write(&file, "hello\n");
        assert_eq!(holder(&file), None);
    }
}
