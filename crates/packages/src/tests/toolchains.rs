//! Packages of compilers, toolchains and other package managers, by their paths.

use super::installed::{done, there};
use super::naming::name;
use super::*;
use std::process::Command;

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn real_root(tmp: &tempfile::TempDir) -> std::path::PathBuf {
    tmp.path().canonicalize().unwrap()
}

#[test]
fn a_module_that_go_downloaded_or_vendored_and_go_itself_are_named() {
    let mut packages = Packages::new("/".as_ref());
    let is = |text: &str| Some(text.to_owned());
    let gone = "/gone/pkg/mod/github.com/!burnt!sushi/toml@v1.2.3/decode.go";
    assert_eq!(
        name(&mut packages, gone.as_ref()),
        is("github.com/BurntSushi/toml v1.2.3 (go)")
    );
    let archive = "/gone/pkg/mod/cache/download/golang.org/x/sys/@v/v0.1.0.zip";
    assert_eq!(
        name(&mut packages, archive.as_ref()),
        is("golang.org/x/sys v0.1.0 (go)")
    );
    let go = "/gone/pkg/mod/golang.org/toolchain@v0.0.1-go1.22.1.linux-amd64/src/fmt/print.go";
    assert_eq!(name(&mut packages, go.as_ref()), is("go 1.22.1 (go)"));
    if Command::new("go").arg("version").output().is_err() {
        backstory_testkit::need::skipped("modules that go itself downloaded", "needs go");
        return;
    }
    let root = output(Command::new("go").args(["env", "GOROOT"]));
    let found = name(&mut packages, &Path::new(&root).join("src/fmt/print.go")).unwrap();
    assert!(
        found.contains("go 1.") || found.starts_with("golang"),
        "{found}"
    );

    // A proxy in a directory: go downloads from it as from the network.
    let tmp = tempfile::tempdir().unwrap();
    let root = real_root(&tmp);
    let versions = "proxy/example.org/own!lib/@v";
    write(&root, &format!("{versions}/list"), "v1.4.0\n");
    write(
        &root,
        &format!("{versions}/v1.4.0.info"),
        "{\"Version\":\"v1.4.0\"}",
    );
    write(
        &root,
        &format!("{versions}/v1.4.0.mod"),
        "module example.org/ownLib\n",
    );
    let zip = "import sys,zipfile\nz=zipfile.ZipFile(sys.argv[1],'w')\n\
        for f,t in (('go.mod','module example.org/ownLib\\n'),('a.go','package ownlib\\n')): z.writestr('example.org/ownLib@v1.4.0/'+f,t)\nz.close()";
    done(
        Command::new("python3")
            .args(["-c", zip])
            .arg(root.join(versions).join("v1.4.0.zip")),
    );
    write(
        &root,
        "app/go.mod",
        "module app\n\ngo 1.18\n\nrequire example.org/ownLib v1.4.0\n",
    );
    write(
        &root,
        "app/main.go",
        "package main\n\nimport _ \"example.org/ownLib\"\n\nfunc main() {}\n",
    );
    let cache = root.join("gopath");
    let go = |arguments: &[&str]| {
        done(
            Command::new("go")
                .args(arguments)
                .current_dir(root.join("app"))
                .env("GOPATH", &cache)
                .env("GOCACHE", root.join("gocache"))
                .env(
                    "GOPROXY",
                    format!("file://{}", root.join("proxy").display()),
                )
                .env("GOSUMDB", "off")
                .env("GOTOOLCHAIN", "local")
                .env("GOFLAGS", "-modcacherw -mod=mod"),
        );
    };
    go(&["mod", "tidy"]);
    go(&["mod", "vendor"]);
    let mut of = |path: &str| name(&mut packages, &root.join(path));
    let module = is("example.org/ownLib v1.4.0 (go)");
    assert_eq!(of("gopath/pkg/mod/example.org/own!lib@v1.4.0/a.go"), module);
    assert_eq!(
        of("gopath/pkg/mod/cache/download/example.org/own!lib/@v/v1.4.0.zip"),
        module
    );
    assert_eq!(of("app/vendor/example.org/ownLib/a.go"), module);
    assert_eq!(of("app/main.go"), None);
}

#[test]
fn an_installed_r_package_is_named_and_its_sources_are_not() {
    if !there("R", "packages of R") {
        return;
    }
    let tmp = tempfile::tempdir().unwrap();
    let root = real_root(&tmp);
    let description = "Package: tiny\nVersion: 0.1.2\nTitle: Tiny\nDescription: Tiny.\nLicense: GPL-3\nAuthor: A\nMaintainer: A <a@example.org>\n";
    write(&root, "my-library/tiny/DESCRIPTION", description);
    write(&root, "my-library/tiny/NAMESPACE", "export(f)\n");
    write(&root, "my-library/tiny/R/f.R", "f <- function() 1\n");
    fs::create_dir_all(root.join("x86_64-library/4.2")).unwrap();
    done(
        Command::new("R")
            .args(["CMD", "INSTALL", "--no-docs", "--no-test-load", "-l"])
            .arg(root.join("x86_64-library/4.2"))
            .arg(root.join("my-library/tiny")),
    );
    let mut packages = Packages::new("/".as_ref());
    let mut of = |path: &str| name(&mut packages, &root.join(path));
    assert_eq!(
        of("x86_64-library/4.2/tiny/R/tiny.rdb"),
        Some("tiny 0.1.2 (R)".to_owned())
    );
    assert_eq!(of("my-library/tiny/R/f.R"), None);
}

#[test]
fn a_toolchain_of_rustup_has_its_version_and_a_program_of_cargo_its_package() {
    let mut packages = Packages::new("/".as_ref());
    match Command::new("rustc").args(["--print", "sysroot"]).output() {
        Ok(found) if String::from_utf8_lossy(&found.stdout).contains("/toolchains/") => {
            let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]));
            let version = output(Command::new("rustc").arg("--version"));
            let found = name(&mut packages, &Path::new(&sysroot).join("bin/rustc")).unwrap();
            let number = version.split(' ').nth(1).unwrap();
            assert_eq!(found, format!("rust {number} (rustup)"));
        }
        _ => backstory_testkit::need::skipped("toolchains of rustup", "this Rust is not rustup's"),
    }
    let tmp = tempfile::tempdir().unwrap();
    let root = real_root(&tmp);
    write(
        &root,
        "tool/Cargo.toml",
        "[package]\nname = \"own-tool\"\nversion = \"0.2.0\"\n[[bin]]\nname = \"owt\"\npath = \"m.rs\"\n[workspace]\n",
    );
    write(&root, "tool/m.rs", "fn main() {}\n");
    done(
        Command::new(env!("CARGO"))
            .args(["install", "--quiet", "--offline", "--debug", "--path"])
            .arg(root.join("tool"))
            .arg("--root")
            .arg(root.join("home"))
            .env("CARGO_TARGET_DIR", root.join("target")),
    );
    let mut of = |path: &str| name(&mut packages, &root.join(path));
    assert_eq!(
        of("home/bin/owt"),
        Some("own-tool 0.2.0 (cargo)".to_owned())
    );
    assert_eq!(of("home/bin/other"), None);
    assert_eq!(
        of("git/checkouts/tokio-rs-0a1b2c/d4e5f6a/src/lib.rs"),
        Some("tokio-rs d4e5f6a (cargo)".to_owned())
    );
}

#[test]
fn alpines_and_archs_packages_are_named() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    write(
        root,
        "lib/apk/db/installed",
        "C:Q1x=\nP:musl\nV:1.2.4-r2\nF:lib\nR:ld-musl-x86_64.so.1\na:0:0:755\n\nP:busybox\nV:1.36-r1\nF:bin\nR:busybox\nF:etc\nR:securetty\n",
    );
    write(
        root,
        "var/lib/pacman/local/gcc-libs-13.2.1-3/files",
        "%FILES%\nusr/\nusr/lib/\nusr/lib/libgcc_s.so.1\n\n%BACKUP%\netc/x\tabc\n",
    );
    let mut packages = Packages::new(root);
    let mut of = |path: &str| name(&mut packages, path.as_ref());
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(of("/lib/ld-musl-x86_64.so.1"), is("musl 1.2.4-r2"));
    assert_eq!(of("/etc/securetty"), is("busybox 1.36-r1"));
    assert_eq!(of("/usr/lib/libgcc_s.so.1"), is("gcc-libs 13.2.1-3"));
    assert_eq!(of("/usr/lib/other"), None);
}

#[test]
fn a_tree_of_tex_live_lists_its_packages() {
    let tmp = tempfile::tempdir().unwrap();
    let root = real_root(&tmp);
    write(
        &root,
        "texlive/2023/tlpkg/texlive.tlpdb",
        "name 00texlive.config\ncategory TLCore\nrevision 1\n\nname hyperref\ncategory Package\nrevision 66\ncatalogue-version 7.00y\n\
         runfiles size=10\n texmf-dist/tex/latex/hyperref/hyperref.sty\ndocfiles size=1\n texmf-dist/doc/latex/hyperref/README.md details=\"Readme\"\n\n\
         name kpathsea.x86_64-linux\nrevision 59\nbinfiles arch=x86_64-linux size=5\n bin/x86_64-linux/kpsewhich\n",
    );
    let mut packages = Packages::new("/".as_ref());
    let mut of = |path: &str| name(&mut packages, &root.join("texlive/2023").join(path));
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(
        of("texmf-dist/tex/latex/hyperref/hyperref.sty"),
        is("hyperref 7.00y (TeX Live)")
    );
    assert_eq!(
        of("texmf-dist/doc/latex/hyperref/README.md"),
        is("hyperref 7.00y (TeX Live)")
    );
    assert_eq!(
        of("bin/x86_64-linux/kpsewhich"),
        is("kpathsea r59 (TeX Live)")
    );
    assert_eq!(
        of("texmf-var/web2c/pdftex/pdflatex.fmt"),
        is("texlive 2023 (TeX Live)")
    );
}

#[test]
fn an_artifact_in_mavens_repository_is_named() {
    let mut packages = Packages::new("/".as_ref());
    let path = "/h/.m2/repository/org/apache/commons/commons-lang3/3.12.0/commons-lang3-3.12.0.jar";
    let found = name(&mut packages, path.as_ref());
    assert_eq!(
        found,
        Some("org.apache.commons:commons-lang3 3.12.0 (maven)".to_owned())
    );
}
