//! Reads each manager's records, as the manager writes them, in a directory of the test's own.

mod indexed;
mod installed;
mod naming;
mod toolchains;

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::*;
use providers::{cargo, npm};

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Manager, name, version, and whether the content matches the checksum.
fn told(packages: &mut Packages, path: &Path, content: &str) -> Option<(String, bool)> {
    let owner = packages.owners(path).next()?;
    let same = is_as_installed(&owner, content.as_bytes());
    Some((
        format!("{} {} {}", owner.manager, owner.name, owner.version),
        same,
    ))
}

fn is_as_installed(owner: &Owner, mut content: &[u8]) -> bool {
    let sum = owner.checksum.as_ref();
    sum.is_some_and(|sum| compare(&mut content, sum).unwrap().2)
}

#[test]
fn dpkg_owns_what_its_lists_name_and_knows_diverted_and_configuration_files() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    let info = |file: &str, text: &str| write(root, &format!("var/lib/dpkg/info/{file}"), text);
    // The MD5 of "hello\n" and of "theirs\n".
    let (hello, theirs) = (
        "b1946ac92492d2347c6235b4d2611184",
        "c28f7ac4d2c3e4b3b4f3d0e0f5ae0d0c",
    );
    info(
        "a:amd64.list",
        "/.\n/bin\n/bin/tool\n/etc/a.conf\n/usr/share/both\n",
    );
    info(
        "a:amd64.md5sums",
        &format!("{hello}  bin/tool\n{hello}  usr/share/both\n"),
    );
    info("b.list", "/usr/share/both\n");
    info("b.md5sums", &format!("{theirs}  usr/share/both\n"));
    let status = format!(
        "Package: a\nArchitecture: amd64\nVersion: 1.0-1\nConffiles:\n /etc/a.conf {hello}\nDescription: x\n\n\
         Package: b\nArchitecture: all\nVersion: 2\n"
    );
    write(root, "var/lib/dpkg/status", &status);
    write(
        root,
        "var/lib/dpkg/diversions",
        "/usr/share/both\n/usr/share/both.moved\nb\n",
    );
    let mut packages = Packages::new(root);
    let mut of = |path: &str, content: &str| told(&mut packages, path.as_ref(), content);
    let a = |same| Some(("dpkg a:amd64 1.0-1".to_owned(), same));
    assert_eq!(of("/bin/tool", "hello\n"), a(true));
    assert_eq!(of("/usr/bin/tool", "hello\n"), a(true), "merged /usr");
    assert_eq!(of("/bin/tool", "changed\n"), a(false));
    assert_eq!(of("/etc/a.conf", "hello\n"), a(true));
    assert_eq!(of("/usr/share/both.moved", "hello\n"), a(true));
    assert_eq!(
        of("/usr/share/both", "x"),
        Some(("dpkg b 2".to_owned(), false))
    );
    assert_eq!(of("/usr/share/none", ""), None);
}

#[test]
fn files_outside_of_the_systems_directories_belong_to_no_system_package() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    let list = "/opt/x/file\n/home/user/file\n/usr/local/file\n/boot/file\n";
    write(root, "var/lib/dpkg/info/x.list", list);
    write(
        root,
        "var/lib/dpkg/status",
        "Package: x\nVersion: 1\n\nPackage: y\nVersion: 2\n",
    );
    let mut packages = Packages::new(root);
    let mut is_owned = |path: &str| packages.owners(path.as_ref()).next().is_some();
    assert!(!is_owned("/home/user/file") && !is_owned("/usr/local/file"));
    assert!(is_owned("/opt/x/file") && is_owned("/boot/file"));
}

#[test]
fn files_of_several_directories_in_turn_have_the_owners_of_their_own() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    let package = "{\"name\":\"x\",\"version\":\"1\"}";
    write(root, "app/node_modules/x/package.json", package);
    let sums = "{\"files\":{},\"package\":\"00\"}";
    write(root, "vendor/y/.cargo-checksum.json", sums);
    let manifest = "[package]\nname = \"y\"\nversion = \"2\"\n";
    write(root, "vendor/y/Cargo.toml", manifest);
    let mut packages = Packages::new(root);
    let mut of = |path: &str| {
        let owner = packages.owners(&root.join(path)).next();
        owner.map(|owner| format!("{} {}", owner.name, owner.version))
    };
    for _ in 0..2 {
        assert_eq!(of("app/mine.js"), None);
        assert_eq!(of("app/node_modules/x/lib/a.js").as_deref(), Some("x 1"));
        assert_eq!(of("vendor/y/src/a.rs").as_deref(), Some("y 2"));
        assert_eq!(of("vendor/a.rs"), None);
    }
}

#[test]
fn pip_owns_what_its_records_list_scripts_beside_it_too() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    // The URL-safe base 64 of the SHA-256 of "hello\n".
    let sum = "sha256=WJG1tSLV3whtD_CxEPvZ0hu0_HFjrzTQgoai6Eb2vgM";
    let record = format!(
        "pkg/__init__.py,{sum},6\n\"pkg/a,b.py\",{sum},6\n../../../bin/run,{sum},6\npkg-1.2.dist-info/RECORD,,\n"
    );
    write(
        root,
        "venv/lib/python3/site-packages/pkg-1.2.dist-info/RECORD",
        &record,
    );
    write(root, "venv/pyvenv.cfg", "");
    let mut packages = Packages::new(root);
    for file in [
        "lib/python3/site-packages/pkg/__init__.py",
        "lib/python3/site-packages/pkg/a,b.py",
        "bin/run",
    ] {
        let found = told(&mut packages, &root.join("venv").join(file), "hello\n");
        assert_eq!(found, Some(("pip pkg 1.2".to_owned(), true)), "{file}");
    }
    assert_eq!(told(&mut packages, &root.join("venv/bin/other"), ""), None);
}

#[test]
fn conda_npm_and_cargo_own_what_lies_in_their_directories() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    let sum = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    let meta = format!(
        "{{\"name\":\"zlib\",\"version\":\"1.3\",\"paths_data\":{{\"paths\":[{{\"_path\":\"lib/libz.so\",\"sha256_in_prefix\":\"{sum}\"}}]}}}}"
    );
    write(root, "env/conda-meta/zlib-1.3-0.json", &meta);
    write(
        root,
        "app/node_modules/@s/x/package.json",
        "{\"name\":\"@s/x\",\"version\":\"4.5.6\"}",
    );
    let sums = format!("{{\"files\":{{\"src/lib.rs\":\"{sum}\"}},\"package\":\"00\"}}");
    write(root, "vendor/rand/.cargo-checksum.json", &sums);
    write(
        root,
        "vendor/rand/Cargo.toml",
        "[package]\nname = \"rand\"\nversion = \"0.8.5\"\n",
    );
    write(
        root,
        "registry/src/index.crates.io-6f/serde_json-1.0.1+x/.cargo-ok",
        "{\"v\":1}",
    );
    let mut packages = Packages::new(root);
    let mut of = |path: &str| told(&mut packages, &root.join(path), "hello\n");
    let is = |name: &str, same| Some((name.to_owned(), same));
    assert_eq!(of("env/lib/libz.so"), is("conda zlib 1.3", true));
    assert_eq!(of("env/lib/mine.so"), None);
    assert_eq!(
        of("app/node_modules/@s/x/lib/index.js"),
        is("npm @s/x 4.5.6", false)
    );
    assert_eq!(of("app/node_modules/.package-lock.json"), None);
    assert_eq!(of("vendor/rand/src/lib.rs"), is("cargo rand 0.8.5", true));
    assert_eq!(
        of("registry/src/index.crates.io-6f/serde_json-1.0.1+x/src/lib.rs"),
        is("cargo serde_json 1.0.1+x", false)
    );
    assert_eq!(of("registry/src/index.crates.io-6f/file"), None);
    assert_eq!(
        of("registry/src/mine/thing-1/lib.rs"),
        None,
        "cargo has not unpacked it"
    );
}

#[test]
fn records_that_are_nonsense_own_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    for (file, text) in [
        ("env/conda-meta/x.json", "{\"name\":1"),
        ("app/node_modules/x/package.json", "[]"),
        ("v/x/.cargo-checksum.json", "{}"),
        ("l/site-packages/x.dist-info/RECORD", "\"\n,\n"),
        ("var/lib/dpkg/diversions", "a\nb"),
        ("var/lib/dpkg/info/x.list", "\u{0}\n/x\n"),
    ] {
        write(root, file, text);
    }
    let mut packages = Packages::new(root);
    for path in [
        "env/lib/x",
        "app/node_modules/x/y",
        "v/x/y",
        "l/site-packages/x",
        "x",
    ] {
        assert_eq!(told(&mut packages, &root.join(path), ""), None, "{path}");
    }
}

/// A `.tar.gz` with these files, below one directory.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, format!("top/{name}"), content.as_bytes())
            .unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn hexed(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A manager's answer for a file, and whether the file is as installed.
fn asked(manager: &mut dyn Provider, path: &Path) -> Option<(String, bool)> {
    let owner = manager.owner(path)?;
    let same = is_as_installed(&owner, &fs::read(path).unwrap());
    Some((format!("{} {}", owner.name, owner.version), same))
}

#[test]
fn files_that_cargo_unpacked_are_verified_by_their_indexed_archive() {
    let tmp = tempfile::tempdir().unwrap();
    let registry = tmp.path().join("registry");
    let bytes = archive(&[("src/lib.rs", "hello\n"), ("Cargo.toml", "changed since\n")]);
    let sum = hexed(&Sha256::digest(&bytes));
    let index = format!(
        "\u{3}\u{2}\0\0\0etag: x\0 0.9.0\0{{\"vers\":\"0.9.0\",\"cksum\":\"00\"}}\0 1.0.0\0{{\"name\":\"aB\",\"vers\":\"1.0.0\",\"cksum\":\"{sum}\"}}\0"
    );
    write(&registry, "index/here-1/.cache/2/ab", &index);
    for (file, content) in [
        (".cargo-ok", "{}"),
        ("src/lib.rs", "hello\n"),
        ("Cargo.toml", "mine\n"),
    ] {
        write(&registry, &format!("src/here-1/aB-1.0.0/{file}"), content);
    }
    let crates = registry.join("cache/here-1");
    fs::create_dir_all(&crates).unwrap();
    let of = |file: &str| {
        let path = registry.join("src/here-1/aB-1.0.0").join(file);
        asked(&mut cargo::Cargo::default(), &path)
    };
    let is = |same| Some(("aB 1.0.0".to_owned(), same));
    assert_eq!(of("src/lib.rs"), is(false), "no archive");
    fs::write(crates.join("aB-1.0.0.crate"), &bytes).unwrap();
    assert_eq!(of("src/lib.rs"), is(true));
    assert_eq!(of("Cargo.toml"), is(false), "changed after it was unpacked");
    assert_eq!(of(".cargo-ok"), is(false), "not in the archive");
    // An archive other than the indexed one proves nothing.
    fs::write(
        crates.join("aB-1.0.0.crate"),
        archive(&[("src/lib.rs", "hello\n")]),
    )
    .unwrap();
    assert_eq!(of("src/lib.rs"), is(false));
}

#[test]
fn files_that_npm_unpacked_are_verified_by_the_cached_archive() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    let bytes = archive(&[("index.js", "hello\n")]);
    let sum = sha2::Sha512::digest(&bytes);
    let name = hexed(&sum);
    let cached = format!(
        "cache/_cacache/content-v2/sha512/{}/{}/{}",
        &name[..2],
        &name[2..4],
        &name[4..]
    );
    let lock = |version: &str| {
        let text = format!(
            "{{\"packages\":{{\"node_modules/a/node_modules/@s/x\":{{\"version\":\"{version}\",\"integrity\":\"sha1-x sha512-{}\"}}}}}}",
            to_base64(&sum)
        );
        write(root, "app/node_modules/.package-lock.json", &text);
    };
    let package = "app/node_modules/a/node_modules/@s/x";
    write(
        root,
        &format!("{package}/package.json"),
        "{\"name\":\"@s/x\",\"version\":\"1.0.0\"}",
    );
    write(root, &format!("{package}/index.js"), "hello\n");
    let of = |file: &str| {
        let mut npm = npm::Npm::with_cache(Some(root.join("cache")));
        asked(&mut npm, &root.join(package).join(file))
    };
    let is = |same| Some(("@s/x 1.0.0".to_owned(), same));
    assert_eq!(of("index.js"), is(false), "no lock file");
    lock("1.0.0");
    assert_eq!(of("index.js"), is(false), "no archive");
    fs::create_dir_all(root.join(&cached).parent().unwrap()).unwrap();
    fs::write(root.join(&cached), &bytes).unwrap();
    assert_eq!(of("index.js"), is(true));
    assert_eq!(of("package.json"), is(false), "not in the archive");
    lock("2.0.0");
    assert_eq!(
        of("index.js"),
        is(false),
        "the lock file speaks of another version"
    );
    lock("1.0.0");
    fs::write(root.join(&cached), archive(&[("index.js", "other\n")])).unwrap();
    assert_eq!(of("index.js"), is(false), "the archive is another one");
}

fn to_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three
            .iter()
            .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - three.len()));
        for at in 0..4 {
            let digit = char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]);
            text.push(if at <= three.len() { digit } else { '=' });
        }
    }
    text
}
