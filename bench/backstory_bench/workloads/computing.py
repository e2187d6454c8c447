"""Computing: the programs of issue 18 beside SPLASH-3 and BLAST. Client starts: large programs.

They compute much and call the kernel seldom, or start with many calls and then end. The paper on
C2SR has such programs: SPEC CPU, and the initialisation of clients with a user interface.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from .base import Instance, Need, find, module, program, python

LUAS = ("lua5.4", "lua5.3", "lua")

_LUA = """
local function fannkuch(n)
  local p, q, s, sign, maxflips, sum = {}, {}, {}, 1, 0, 0
  for i = 1, n do p[i] = i; q[i] = i; s[i] = i end
  repeat
    local q0 = p[1]
    if q0 ~= 1 then
      for i = 2, n do q[i] = p[i] end
      local flips = 1
      while true do
        local qq = q[q0]
        if qq == 1 then
          sum = sum + sign * flips
          if flips > maxflips then maxflips = flips end
          break
        end
        q[q0] = q0
        if q0 >= 4 then
          local i, j = 2, q0 - 1
          repeat q[i], q[j] = q[j], q[i]; i = i + 1; j = j - 1 until i >= j
        end
        q0 = qq; flips = flips + 1
      end
    end
    if sign == 1 then
      p[1], p[2] = p[2], p[1]; sign = -1
    else
      p[2], p[3] = p[3], p[2]; sign = 1
      for i = 3, n do
        local sx = s[i]
        if sx ~= 1 then s[i] = sx - 1; break end
        if i == n then return sum, maxflips end
        s[i] = i
        local t = p[1]; for j = 1, i do p[j] = p[j + 1] end; p[i + 1] = t
      end
    end
  until false
end
local words = {}
for line in io.lines("words.txt") do
  for word in line:gmatch("%a+") do words[word] = (words[word] or 0) + 1 end
end
local names = {}
for word in pairs(words) do names[#names + 1] = word end
table.sort(names)
for _, word in ipairs(names) do io.write(word, " ", words[word], "\\n") end
io.write(string.format("%d %d\\n", fannkuch(9)))
"""


def _any_lua() -> str | None:
    if any(find(name) for name in LUAS):
        return None
    return "no Lua is installed (Debian package lua5.4)"


def _lua(root: Path) -> None:
    rng = random.Random(5)
    (root / "program.lua").write_text(_LUA)
    vocabulary = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 6))) for _ in range(2000)]
    lines = (" ".join(rng.choices(vocabulary, k=12)) for _ in range(20_000))
    (root / "words.txt").write_text("\n".join(lines) + "\n")


def _statements(rows: int) -> list[str]:
    """Returns the statements of the kinds in SQLite's `speedtest1`: its tests 100 to 980."""
    rng = random.Random(31)

    def words(number: int) -> str:
        return " ".join(("zero", "one", "two", "three", "five", "eight")[int(digit) % 6] for digit in str(number))

    def inserts(table: str) -> list[str]:
        values = [(rng.randrange(rows * 10), n) for n in range(1, rows + 1)]
        return ["begin;", *(f"insert into {table} values({n},{b},'{words(b)}');" for b, n in values), "commit;"]

    ranges = [sorted(rng.sample(range(rows * 10), 2)) for _ in range(60)]
    found = ["create table z1(a integer, b integer, c text);", *inserts("z1")]
    found += ["create table z2(a integer primary key, b integer, c text);", "create index z2b on z2(b);"]
    found += inserts("z2")
    found += [f"select count(*), avg(b), sum(length(c)) from z1 where b between {a} and {b};" for a, b in ranges]
    found += [f"select count(*), avg(b) from z1 where c like '%{word}%';" for word in ("five", "eight two", "one")]
    found += ["select a, b, c from z1 where c like '%three%' order by a limit 100;"]
    found += ["create index z1b on z1(b);", "create index z1c on z1(c);"]
    found += [f"select count(*), avg(b), max(c) from z1 where b between {a} and {b};" for a, b in ranges]
    found += ["begin;", *(f"update z2 set b=b+1 where b between {a} and {a + 50};" for a, _ in ranges), "commit;"]
    found += ["select count(*), sum(z1.b) from z1 join z2 on z1.c=z2.c and z1.a<z2.a;"]
    found += ["begin;", *(f"delete from z2 where b between {a} and {a + 30};" for a, _ in ranges), "commit;"]
    return [*found, "vacuum;", "pragma integrity_check;", "select count(*), sum(b), sum(length(c)) from z2;"]


def _sqlite(root: Path) -> None:
    (root / "speed.sql").write_text("\n".join(_statements(20_000)) + "\n")


WIDTH, HEIGHT, FRAMES = 320, 192, 40


def _video(root: Path) -> None:
    """Makes a video: a noisy picture that moves, so that the encoder finds motion."""
    rng = random.Random(264)
    wide = [rng.randbytes(WIDTH * 2) for _ in range(16)]
    chroma = bytes([128]) * (WIDTH * HEIGHT // 2)
    with (root / "in.y4m").open("wb") as out:
        out.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip A1:1 C420jpeg\n".encode())
        for frame in range(FRAMES):
            rows = (wide[(y + frame) // 12 % 16][2 * frame : 2 * frame + WIDTH] for y in range(HEIGHT))
            out.write(b"FRAME\n" + b"".join(rows) + chroma)


def _repository(root: Path) -> None:
    work = root / "work"
    git = ["git", "-C", str(work), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    for number in range(20):
        for file in range(20):
            (work / f"file{file}").write_text(f"line {number}\n" * (file + 1))
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", f"commit {number}"], check=True)


def _start(name: str, what: str, body: str, needs: tuple[Need, ...], clean: tuple[str, ...] = ()) -> Instance:
    return Instance("Client starts", name, what, body, needs, clean=clean, stdout=True)


_SPEEDTEST1 = Need(lambda: None if find("speedtest1") else "speedtest1 is not installed (built from SQLite's sources)")
_MODULES = "; ".join(f'require("{name}")' for name in ("crypto", "dns", "fs", "http", "https", "tls", "zlib"))
_NETWORK = "import asyncio, email, ftplib, http.client, http.server, json, smtplib, ssl, urllib.request"

INSTANCES = [
    Instance(
        "Computing",
        "lua",
        "a Lua program: words of a file, and permutations",
        '"$LUA" program.lua >out.txt',
        (Need(_any_lua, "lua5.4"),),
        _lua,
        ("out.txt",),
        ("out.txt",),
        before=f"LUA=$({' || '.join(f'command -v {name}' for name in LUAS)})",
    ),
    Instance(
        "Computing",
        "speedtest1",
        "SQLite's own speedtest1",
        "rm -f speed.db*; speedtest1 --size 10 speed.db >out.txt",
        (_SPEEDTEST1,),
        clean=("speed.db*", "out.txt"),
    ),
    Instance(
        "Computing",
        "sqlite",
        "SQL of the kinds in speedtest1, by sqlite3",
        "rm -f speed.db*; sqlite3 speed.db <speed.sql >out.txt",
        (program("sqlite3"),),
        _sqlite,
        ("speed.db*", "out.txt"),
        ("out.txt",),
    ),
    Instance(
        "Computing",
        "x264",
        f"x264: {FRAMES} frames of {WIDTH} x {HEIGHT}",
        "x264 --quiet --threads 1 --preset medium -o out.264 in.y4m",
        (program("x264"),),
        _video,
        ("out.264",),
        ("out.264",),
    ),
    _start(
        "chromium",
        "Chromium without a window, and an empty page",
        "rm -rf profile; chromium --headless --no-sandbox --disable-gpu --user-data-dir=profile --dump-dom about:blank 2>err.txt",
        (program("chromium"),),
        ("profile", "err.txt"),
    ),
    Instance(
        "Client starts",
        "git",
        "git clone of a repository in another directory",
        "rm -rf clone; git clone -q --no-local work clone",
        (program("git"),),
        _repository,
        ("clone",),
        ("clone/file19",),
    ),
    _start(
        "libreoffice",
        "LibreOffice without a window, which ends when it has started",
        "rm -rf profile; soffice --headless --norestore --terminate_after_init"
        ' "-env:UserInstallation=file://$PWD/profile" >err.txt 2>&1',
        (program("soffice", "libreoffice-writer"),),
        ("profile", "err.txt"),
    ),
    _start(
        "node",
        "Node with its modules for the network",
        f"node -e '{_MODULES}; console.log(1)'",
        (program("node", "nodejs"),),
    ),
    _start(
        "requests",
        "Python with the package requests",
        f"{python()} -c 'import requests; print(requests.codes.ok)'",
        (module("requests"),),
    ),
    _start(
        "python", "Python with its modules for the network", f"{python()} -c '{_NETWORK}; print(json.dumps(1))'", ()
    ),
]
