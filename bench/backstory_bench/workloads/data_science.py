"""Data science: a notebook, scripts, clustering examples (UMAP, HDBSCAN) and a training run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from .base import Instance, module, python

_CSV = "import random; random.seed(1); f = open('data.csv', 'w'); f.write('a,b,c\\n'); " + (
    "[f.write(f'{random.gauss(0, 1)},{random.gauss(3, 2)},{random.randrange(4)}\\n') for _ in range(20000)]"
)
_SCRIPT = """
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
t = pd.read_csv("data.csv")
m = LinearRegression().fit(t[["a"]], t["b"])
k = KMeans(4, n_init=2, random_state=0).fit(t[["a", "b"]])
t.groupby("c").mean().round(6).to_csv("means.csv")
print(round(float(m.intercept_), 4), sorted(round(float(c), 2) for c in k.cluster_centers_[:, 0]))
"""
_TRAINING = """
import numpy as np
from sklearn.neural_network import MLPClassifier
rng = np.random.default_rng(0)
x = rng.normal(size=(3000, 20)); y = (x[:, :3].sum(1) > 0).astype(int)
m = MLPClassifier((32, 16), max_iter=25, random_state=0, tol=0).fit(x, y)
np.save("weights.npy", m.coefs_[0]); print(round(m.score(x, y), 2))
"""
_UMAP = """
import numpy as np, umap
x = np.random.default_rng(0).normal(size=(300, 10))
print(umap.UMAP(n_epochs=50, random_state=0).fit_transform(x).shape)
"""
_HDBSCAN = """
import numpy as np
from sklearn.cluster import HDBSCAN
r = np.random.default_rng(0)
x = np.concatenate([r.normal(c, 0.2, size=(400, 2)) for c in (0, 3, 6)])
print(len(set(HDBSCAN().fit_predict(x)) - {-1}))
"""


def _prepare(root: Path) -> None:
    subprocess.run([python(), "-c", _CSV], cwd=root, check=True)
    cells = [part for part in _SCRIPT.strip().split("\n") if part]
    (root / "study.ipynb").write_text(
        json.dumps(
            {
                "cells": [
                    {
                        "cell_type": "code",
                        "id": f"c{i}",
                        "metadata": {},
                        "source": line,
                        "outputs": [],
                        "execution_count": None,
                    }
                    for i, line in enumerate(cells)
                ],
                "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
                "nbformat": 4,
                "nbformat_minor": 5,
            }
        )
    )
    for name, text in (
        ("script", _SCRIPT),
        ("training", _TRAINING),
        ("umap-example", _UMAP),
        ("hdbscan-example", _HDBSCAN),
    ):
        (root / f"{name}.py").write_text(text)


def _python(group: str, name: str, script: str, what: str, *modules: str, outputs: tuple[str, ...] = ()) -> Instance:
    return Instance(
        group,
        name,
        what,
        f"{python()} {script}.py",
        (module(*modules),),
        _prepare,
        outputs,
        outputs,
        stdout=True,
        before="export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1",
    )


SCRIPTS = "Data science python"
INSTANCES = [
    Instance(
        "Data science Notebook",
        "notebook",
        "nbconvert executes a notebook",
        f"{python()} -m nbconvert --to notebook --execute --output done.ipynb study.ipynb >convert.txt 2>&1",
        (module("nbconvert", "ipykernel", "pandas", "sklearn"),),
        _prepare,
        ("done.ipynb", "means.csv", "convert.txt"),
        ("means.csv",),
        before="export OMP_NUM_THREADS=1 JUPYTER_PLATFORM_DIRS=1",
    ),
    _python(
        SCRIPTS, "analysis", "script", "pandas and scikit-learn on a table", "pandas", "sklearn", outputs=("means.csv",)
    ),
    _python(SCRIPTS, "umap", "umap-example", "UMAP of 300 points", "umap"),
    _python(SCRIPTS, "hdbscan", "hdbscan-example", "HDBSCAN of 1,200 points", "sklearn"),
    _python(
        "Machine learning",
        "training",
        "training",
        "a small network is trained",
        "numpy",
        "sklearn",
        outputs=("weights.npy",),
    ),
]
