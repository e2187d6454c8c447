"""BLAST: five query sets, one for each program, against generated databases."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from .base import Instance, program

GROUP = "BLAST"
DNA, PROTEIN = "ACGT", "ACDEFGHIKLMNPQRSTVWY"


def _mutated(rng: random.Random, text: str, letters: str) -> str:
    return "".join(rng.choice(letters) if rng.random() < 0.05 else letter for letter in text)


def _fasta(path: Path, entries: list[str]) -> None:
    path.write_text("".join(f">s{i}\n{text}\n" for i, text in enumerate(entries)))


def _prepare(root: Path) -> None:
    rng = random.Random(20240618)
    for kind, letters, length, database in (("nucl", DNA, 900, "dna"), ("prot", PROTEIN, 300, "protein")):
        entries = ["".join(rng.choices(letters, k=length)) for _ in range(600)]
        _fasta(root / f"{database}.fa", entries)
        _fasta(root / f"{database}-query.fa", [_mutated(rng, e, letters) for e in entries[:12]])
        make = ["makeblastdb", "-in", f"{database}.fa", "-dbtype", kind, "-out", database]
        subprocess.run(make, cwd=root, check=True, stdout=subprocess.DEVNULL)


def _set(name: str, query: str, database: str, run: str = "") -> Instance:
    return Instance(
        GROUP,
        name,
        f"{name}: 12 queries against 600 sequences",
        f"{run or name} -query {query}-query.fa -db {database} -outfmt 6 -num_threads 1 >hits.txt",
        (program("blastn", "ncbi-blast+"),),
        _prepare,
        ("hits.txt",),
        ("hits.txt",),
        before="export BLAST_USAGE_REPORT=false",
    )


INSTANCES = [
    _set("blastn", "dna", "dna", "blastn -task blastn"),
    _set("megablast", "dna", "dna", "blastn -task megablast"),
    _set("blastp", "protein", "protein"),
    _set("blastx", "dna", "protein"),
    _set("tblastn", "protein", "dna"),
]
