"""Workloads that the paper names as missing: a workflow, a database, a Go build, a container
build.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from .base import Instance, module, program, python, tree

_SNAKEFILE = """
rule all:
    input: "total.txt"
rule count:
    input: "tree/d000/f0000{n}.txt"
    output: "count{n}.txt"
    shell: "wc -w <{input} >{output}"
rule total:
    input: expand("count{n}.txt", n=range(4))
    output: "total.txt"
    shell: "cat {input} | sort -n >{output}"
"""
# New-order, payment and delivery transactions, nearly in TPC-C's proportions, on a database file.
# Every transaction is durable.
_TRANSACTIONS = """
import random, sqlite3, sys
random.seed(7)
db = sqlite3.connect("shop.db", isolation_level=None)
db.executescript('''pragma journal_mode=wal; pragma synchronous=full;
create table stock(item integer primary key, quantity integer); create table customer(id integer primary key, balance integer);
create table orders(id integer primary key, customer integer, delivered integer default 0);
create table line(orders integer, item integer, quantity integer);''')
db.execute("begin")
db.executemany("insert into stock values(?, 100)", ((i,) for i in range(1000)))
db.executemany("insert into customer values(?, 0)", ((i,) for i in range(300)))
db.execute("commit")
for n in range(400):
    db.execute("begin immediate")
    kind = random.random()
    if kind < 0.47:
        order = db.execute("insert into orders(customer) values(?)", (random.randrange(300),)).lastrowid
        for _ in range(random.randint(5, 15)):
            item, k = random.randrange(1000), random.randint(1, 10)
            db.execute("update stock set quantity = case when quantity >= ? + 10 then quantity - ? else quantity + 91 end where item=?", (k, k, item))
            db.execute("insert into line values(?,?,?)", (order, item, k))
    elif kind < 0.92:
        db.execute("update customer set balance = balance - ? where id=?", (random.randint(1, 5000), random.randrange(300)))
    else:
        db.execute("update orders set delivered=1 where id=(select min(id) from orders where delivered=0)")
    db.execute("commit")
print(db.execute("select count(*), sum(quantity) from line").fetchone(), db.execute("select sum(balance) from customer").fetchone())
"""


def _workflow(root: Path) -> None:
    tree(root, "tree", 4, 4000)
    (root / "Snakefile").write_text(_SNAKEFILE)


def stated(root: Path) -> set[str]:
    """Reads the inputs and outputs of all jobs from Snakemake's metadata.

    There is a file for each output, named after the output in base64.
    """
    found = set()
    for path in (root / ".snakemake" / "metadata").iterdir():
        output = base64.urlsafe_b64decode(path.name).decode()
        found |= {str(root / name) for name in (output, *json.loads(path.read_text())["input"])}
    return found


def _go(root: Path) -> None:
    (root / "go.mod").write_text("module example.org/words\n\ngo 1.19\n")
    (root / "main.go").write_text(
        'package main\n\nimport (\n\t"fmt"\n\t"sort"\n\t"strings"\n)\n\nfunc main() {\n\tw := strings.Fields("the quick brown fox")\n'
        "\tsort.Strings(w)\n\tfmt.Println(w)\n}\n"
    )


def _database(root: Path) -> None:
    (root / "transactions.py").write_text(_TRANSACTIONS)


def _container(root: Path) -> None:
    tree(root, "rootfs/data", 50, 2000)


INSTANCES = [
    Instance(
        "Workflows",
        "snakemake",
        "Snakemake: five jobs",
        f"rm -rf .snakemake count*.txt total.txt; {python()} -m snakemake -q -c1 >snakemake.txt 2>&1",
        (module("snakemake"),),
        _workflow,
        (".snakemake", "count*.txt", "total.txt", "snakemake.txt"),
        ("total.txt",),
        truth=stated,
    ),
    Instance(
        "Database",
        "transactions",
        "TPC-C-like transactions on SQLite, 400 a loop",
        f"rm -f shop.db*; {python()} transactions.py",
        (module("sqlite3"),),
        _database,
        ("shop.db*",),
        stdout=True,
    ),
    Instance(
        "Go build",
        "go-build",
        "go build of a small program, its cache cold for the program",
        "go build -o words . && ./words && go clean -cache",
        (program("go", "golang-go"),),
        _go,
        ("words", "cache"),
        ("words",),
        stdout=True,
        before='export GOCACHE="$PWD/cache" GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0 GOMAXPROCS=1',
        fixed=True,
    ),
    Instance(
        "Container build",
        "umoci",
        "an image of one layer, by umoci",
        "rm -rf image bundle; umoci init --layout image; umoci new --image image:one; umoci unpack --rootless --image image:one bundle;"
        " cp -a rootfs/data bundle/rootfs/; umoci repack --image image:one bundle",
        (program("umoci"),),
        _container,
        ("image", "bundle"),
    ),
]
