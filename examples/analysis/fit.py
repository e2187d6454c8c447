"""Fits a line of mass over flipper length to each species, and writes how well it fits."""

import json
import tomllib

import numpy
import pandas

with open("params.toml", "rb") as file:
    params = tomllib.load(file)
rows, squares, total = [], 0.0, 0.0
for species, birds in pandas.read_csv("clean.csv").groupby("species"):
    if len(birds) < params["smallest_group"]:
        continue
    line = numpy.polyfit(birds["flipper_mm"], birds["mass_g"], params["degree"])
    left = birds["mass_g"] - numpy.polyval(line, birds["flipper_mm"])
    squares += float((left**2).sum())
    total += float(((birds["mass_g"] - birds["mass_g"].mean()) ** 2).sum())
    rows.append({"species": species, "birds": len(birds), "slope": round(float(line[-2]), 2)})
pandas.DataFrame(rows).to_csv("slopes.csv", index=False)
with open("metrics.json", "w") as file:
    json.dump({"r_squared": round(1 - squares / total, 4), "species": len(rows)}, file)
