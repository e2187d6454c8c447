//! Each manager's records as it writes them, in a directory of the test's own.

use std::fs;
use std::path::Path;

use super::*;

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Manager, name, version, and whether the content is what the records say.
fn told(packages: &mut Packages, path: &Path, content: &str) -> Option<(String, bool)> {
    let owner = packages.owner(path)?;
    let same = owner
        .checksum
        .is_some_and(|sum| compare(&mut content.as_bytes(), &sum).unwrap().2);
    Some((
        format!("{} {} {}", owner.manager, owner.name, owner.version),
        same,
    ))
}

#[test]
fn dpkg_owns_what_its_lists_name_and_knows_diverted_and_configuration_files() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    let info = |file: &str, text: &str| write(root, &format!("var/lib/dpkg/info/{file}"), text);
    // md5 of "hello\n" and of "theirs\n".
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
    assert_eq!(of("/usr/share/both", "x"), Some(("dpkg b 2".to_owned(), false)));
    assert_eq!(of("/usr/share/none", ""), None);
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

/// The first entry of a directory whose name begins so.
fn entry(dir: &Path, start: &str) -> Option<std::path::PathBuf> {
    let entries = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    let mut found = entries.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(start))
    });
    found.next()
}

/// Installed by the managers themselves: the validators of the exports' tests, and what this is built from.
#[test]
fn packages_that_their_managers_installed_here_are_named_and_verified() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv");
    let home = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let registry = home.and_then(|home| entry(&home.join("registry/src"), ""));
    let site = entry(&root.join("lib"), "python3").map(|lib| lib.join("site-packages"));
    // Of each file: who has it, and whether the manager's records can tell that it is as it was installed.
    let files = [
        ("pip", "prov", site.map(|site| site.join("prov/model.py")), true),
        (
            "npm",
            "mermaid",
            Some(root.join("mermaid/node_modules/mermaid/package.json")),
            false,
        ),
        (
            "cargo",
            "thiserror",
            registry
                .and_then(|all| entry(&all, "thiserror-2"))
                .map(|dir| dir.join("Cargo.toml")),
            false,
        ),
    ];
    for (manager, name, file, verified) in files {
        let Some(file) = file.and_then(|file| file.canonicalize().ok()) else {
            eprintln!("SKIPPED: packages of {manager}: {name} is not installed here");
            continue;
        };
        let owner = Packages::new(Path::new("/")).owner(&file).unwrap();
        assert_eq!((owner.manager, owner.name.as_str()), (manager, name));
        assert!(
            owner.version.starts_with(|c: char| c.is_ascii_digit()),
            "{owner:?}"
        );
        let mut source = fs::File::open(&file).unwrap();
        let same = owner.checksum.map(|sum| compare(&mut source, &sum).unwrap().2);
        assert_eq!(same, verified.then_some(true), "{manager}: {}", file.display());
        // One byte more is another file.
        if let Some(owner) = Packages::new(Path::new("/"))
            .owner(&file)
            .filter(|owner| owner.checksum.is_some())
        {
            let mut more = fs::read(&file).unwrap();
            more.push(b'\n');
            assert!(!compare(&mut &more[..], &owner.checksum.unwrap()).unwrap().2);
        }
    }
}
