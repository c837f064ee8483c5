#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a forest that recognises handwritten digits, and writes models/digits_forest/1/model.txt with
LightGBM. predictions.csv gets what LightGBM itself predicts for the first images of
clients/digits.csv, one line of ten probabilities for each.

usage: pip install lightgbm scikit-learn && python examples/backend/forest/train.py
"""

import csv
import pathlib

import lightgbm
import numpy as np
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).resolve().parent
IMAGES = HERE.parents[1] / "clients" / "digits.csv"
COMPARED = 20

digits = load_digits()
with open(IMAGES, encoding="utf-8") as file:
    held_out = np.array([row[1:] for row in list(csv.reader(file))[1:]], dtype=np.float32)
known = (digits.data[:, None].astype(np.float32) == held_out[None]).all(-1).any(-1)
booster = lightgbm.train(
    {"objective": "multiclass", "num_class": 10, "num_leaves": 8, "learning_rate": 0.4, "verbose": -1, "seed": 1},
    lightgbm.Dataset(digits.data[~known], digits.target[~known]),
    num_boost_round=8,
)
booster.save_model(HERE / "models" / "digits_forest" / "1" / "model.txt", importance_type="gain")
np.savetxt(HERE / "predictions.csv", booster.predict(held_out[:COMPARED]), fmt="%.7g", delimiter=",")
