"""Drops the rows without a measurement and the species that the parameters leave out."""

import tomllib

import pandas

with open("params.toml", "rb") as file:
    params = tomllib.load(file)
birds = pandas.read_csv("penguins.csv").dropna()
birds = birds[birds["species"].isin(params["species"])]
birds.to_csv("clean.csv", index=False)
