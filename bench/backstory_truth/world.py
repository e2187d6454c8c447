"""Directories, native executions and comparisons of trees.

Goes in: a case. Comes out: a snapshot of its sources, copies of it, the state that native
executions leave, and what differs between two trees. Invariant: all programs run with the same
environment, whether recorded or not; only TRUTH_OPT, the place of data below /opt, differs between
copies.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import tarfile
import time
from pathlib import Path

from .program import Case, Entry, Op, Step, command, script_entries

Tree = dict[str, tuple[str, int, bytes]]  # path: type, mode, bytes or target
NATIVE_SECONDS = 12
TOOL_STATE = {".ninja_log", ".ninja_deps"}  # they have times in them


def environment(opt: Path) -> dict[str, str]:
    """Returns the environment of every program."""
    keep = {k: v for k, v in os.environ.items() if k in ("TRUTH_BIN", "LD_LIBRARY_PATH")}
    return {
        **keep,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(opt.parent),
        "LC_ALL": "C",
        "TZ": "UTC",
        "TRUTH_OPT": str(opt),
        "PYTHONDONTWRITEBYTECODE": "1",
        "BACKSTORY_PAGER": "cat",
    }


def place(root: Path, opt: Path, path: str) -> Path:
    """Returns where a path of a case lies."""
    return opt / path[5:] if path.startswith("@opt/") else root / path


def write_sqlite(path: Path, rows: str) -> None:
    """Makes the table `t` of a database have these rows."""
    db = sqlite3.connect(path)
    db.execute("create table if not exists t(k integer, v text)")
    db.execute("delete from t")
    db.executemany("insert into t values(?, ?)", [r.split("=") for r in rows.splitlines()])
    db.commit()
    db.close()


def write_tar(path: Path, members: str) -> None:
    """Writes an archive with these members."""
    import io

    with tarfile.open(path, "w") as tar:
        for line in members.splitlines():
            name, data = line.split("=")
            info = tarfile.TarInfo(name)
            info.size = len(data) + 1
            tar.addfile(info, io.BytesIO(data.encode() + b"\n"))


def huge_text(end: str) -> str:
    """Returns more than a megabyte that ends with a given line."""
    return "".join(f"a row of some length, number {i}\n" for i in range(40000)) + end


def write_entry(root: Path, opt: Path, entry: Entry) -> None:
    """Writes one entry of a snapshot."""
    path = place(root, opt, entry.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.kind == "dir":
        path.mkdir(exist_ok=True)
        return
    if entry.kind == "setup":
        subprocess.run(["sh", "-ec", entry.data], cwd=root, env=environment(opt), check=True, stdout=subprocess.DEVNULL)
        return
    if entry.kind == "link":
        path.symlink_to(entry.data)
        return
    if entry.kind == "sqlite":
        write_sqlite(path, entry.data)
    elif entry.kind == "tar":
        write_tar(path, entry.data)
    elif entry.kind == "seq":
        path.write_text(huge_text(entry.data))
    else:
        path.write_text(entry.data)
    path.chmod(entry.mode)
    os.utime(path, (entry.mtime, entry.mtime))


def write_snapshot(case: Case, root: Path, opt: Path) -> None:
    """Writes all that exists before the first run."""
    root.mkdir(parents=True)
    opt.mkdir(parents=True)
    for entry in case.entries:
        write_entry(root, opt, entry)
    for run in case.runs():
        (root / run.cwd).mkdir(exist_ok=True, parents=True)
        for entry in script_entries(run):
            write_entry(root, opt, entry)


def copy_tree(source: Path, target: Path) -> None:
    """Copies with links, modes and times."""
    shutil.copytree(source, target, symlinks=True)


def apply(op: Op, root: Path, opt: Path) -> None:
    """Does one change."""
    path = place(root, opt, op.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if op.op == "write":
        path.write_text(op.data)
    elif op.op in ("replace", "mv", "same"):
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
        new = path.with_name(path.name + ".new~")
        new.write_text(op.data)
        new.chmod(mode)
        new.rename(path)
    elif op.op == "keep-mtime":
        before = path.stat().st_mtime_ns if path.exists() else BASE_NS
        path.write_text(op.data)
        os.utime(path, ns=(before, before))
    elif op.op == "append":
        with path.open("a") as f:
            f.write(op.data)
    elif op.op == "delete":
        path.unlink(missing_ok=True)
    elif op.op == "chmod":
        if path.exists():
            path.chmod(int(op.data, 8))
    elif op.op == "touch":
        os.utime(path)
    elif op.op == "link":
        path.unlink(missing_ok=True)
        path.symlink_to(op.data)
    elif op.op == "rename":
        if path.exists():
            path.rename(place(root, opt, op.data))
    elif op.op == "mkdir":
        path.mkdir(exist_ok=True)
    elif op.op == "sqlite":
        write_sqlite(path, op.data)
    elif op.op == "tar":
        write_tar(path, op.data)
    elif op.op == "seq":
        path.write_text(huge_text(op.data))
    elif op.op == "swapdir":
        old = path.with_name(path.name + ".old~")
        path.rename(old)
        shutil.copytree(old, path, symlinks=True)
        (path / "f1").write_text(op.data)
        shutil.rmtree(old)
    else:
        raise ValueError(op.op)


BASE_NS = 1577836800 * 10**9


def op_paths(op: Op) -> list[str]:
    """Returns the paths that a change touches."""
    return [op.path, op.data] if op.op == "rename" else [op.path]


def carry(paths: list[str], source: tuple[Path, Path], target: tuple[Path, Path]) -> None:
    """Makes paths in `target` (root and opt) what they are in `source`, with modes and times."""
    for name in paths:
        a, b = place(*source, name), place(*target, name)
        if b.is_symlink() or b.is_file():
            b.unlink()
        elif b.is_dir():
            shutil.rmtree(b)
        if not (a.exists() or a.is_symlink()):
            continue
        b.parent.mkdir(parents=True, exist_ok=True)
        if a.is_dir() and not a.is_symlink():
            shutil.copytree(a, b, symlinks=True)
        else:
            shutil.copy2(a, b, follow_symlinks=False)


def scan(root: Path) -> Tree:
    """Returns what lies below a directory, without directories themselves and byte code."""
    tree: Tree = {}
    for directory, folders, files in os.walk(root):
        folders[:] = [
            f for f in folders if f not in ("__pycache__", ".git") and not os.path.islink(os.path.join(directory, f))
        ]
        links = [f for f in os.listdir(directory) if os.path.islink(os.path.join(directory, f))]
        for name in {*files, *links} - TOOL_STATE:
            full = os.path.join(directory, name)
            try:
                info = os.lstat(full)
                mode = stat.S_IMODE(info.st_mode)
                if stat.S_ISLNK(info.st_mode):
                    what = ("link", 0, os.readlink(full).encode())
                elif stat.S_ISREG(info.st_mode):
                    with open(full, "rb") as f:
                        what = ("file", mode, f.read())
                else:
                    what = ("other", mode, b"")
            except FileNotFoundError:
                continue
            tree[os.path.relpath(full, root)] = what
    return tree


def changed(before: Tree, after: Tree) -> list[str]:
    """Returns the paths that are new or different in `after`."""
    return sorted(p for p, what in after.items() if before.get(p) != what)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends what a program left running in its own session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def start(
    run: Step, root: Path, env: dict[str, str], prefix: list[str], errors: Path | None = None
) -> subprocess.Popen[bytes]:
    """Starts the command of a run, perhaps below a prefix such as `backstory record --`."""
    cwd = root / run.cwd
    stdin_path = run.stdin or (run.script if run.form == "stdin" else "")
    given = cwd / stdin_path if stdin_path and (cwd / stdin_path).exists() else Path(os.devnull)
    taken = cwd / run.stdout if run.stdout else Path(os.devnull)
    with given.open("rb") as stdin, taken.open("wb") as stdout, (errors or Path(os.devnull)).open("ab") as stderr:
        return subprocess.Popen(
            [*prefix, *command(run)],
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )


def finish(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Waits; returns the status, or None if it took too long."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        end_group(process)
        process.wait()
        return None


def errors_of(root: Path) -> Path:
    """Returns the file with what native executions below a directory complained about."""
    return root.with_name(root.name + ".stderr")


def run_native(run: Step, root: Path, opt: Path) -> int | None:
    """Executes a run without backstory, to its end; returns its status as a shell does."""
    process = start(run, root, environment(opt), [], errors_of(root))
    status = finish(process, NATIVE_SECONDS)
    end_group(process)
    if run.form == "typed" and status is not None:
        return 0
    return status if status is None or status >= 0 else 128 - status


def kill_when(process: subprocess.Popen[bytes], path: Path) -> None:
    """Kills the group of a program as soon as a file exists and has bytes."""
    if wait_for(path, process):
        time.sleep(0.02)
        end_group(process)


def wait_for(path: Path, process: subprocess.Popen[bytes], seconds: float = 5) -> bool:
    """Waits until a file exists and is not empty."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if path.exists() and path.stat().st_size:
            return True
        time.sleep(0.002)
    return False
