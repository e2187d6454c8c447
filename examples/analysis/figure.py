"""Draws mass over flipper length, one colour for each species."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas

figure, axes = plt.subplots(figsize=(6, 4))
for species, birds in pandas.read_csv("clean.csv").groupby("species"):
    axes.scatter(birds["flipper_mm"], birds["mass_g"], label=species, s=12)
axes.set(xlabel="flipper length (mm)", ylabel="mass (g)")
axes.legend()
figure.savefig("figure.png", dpi=100, metadata={"Software": None})
