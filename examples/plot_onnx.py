"""
ONNX: the model without Python
==============================

``export_onnx`` writes normalisation, encoder and classifier as one graph: raw signals in,
probabilities and latents out. It runs in a C++ program, a browser or a phone.
"""

# %%
# Train a little, and export.

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import torch

import autotransfer as at

torch.set_num_threads(1)
data = at.make_subjects(n_subjects=5, n_trials=30, n_channels=16, n_times=128, random_state=0)
clf = at.CensoredClassifier("mmd", max_epochs=5, random_state=0, verbose=False)
clf.fit(data.X, data.y, subject=data.subject)

there = tempfile.TemporaryDirectory()
file = clf.export_onnx(Path(there.name) / "gestures.onnx")
print(file.name, file.stat().st_size, "bytes")

# %%
# Run it with onnxruntime; torch and autotransfer are not needed for this. The classes are in the
# model's metadata, in the order of the probabilities.

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(str(file), options)
about = json.loads(session.get_modelmeta().custom_metadata_map["autotransfer"])
probabilities, latent = session.run(None, {"signals": data.X})
print("labels:", about["labels"]["values"], "shapes:", probabilities.shape, latent.shape)

# %%
# The same answers as the classifier's.

gaps = {
    "probabilities": np.abs(probabilities - clf.predict_proba(data.X)).max(),
    "latent": np.abs(latent - clf.transform(data.X)).max(),
}
print("largest differences:", {name: f"{gap:.1e}" for name, gap in gaps.items()})
assert max(gaps.values()) < 1e-5

# %%
# One trial at a time, on one thread
# ----------------------------------
# How long a person waits for the answer.

ways: dict[str, Callable[[Any], Any]] = {
    "predict": lambda x: clf.predict(x),
    "onnxruntime": lambda x: session.run(None, {"signals": x}),
}
milliseconds: dict[str, list[float]] = {name: [] for name in ways}
for i in range(150):
    for name, way in ways.items():
        start = time.perf_counter()
        way(data.X[i % len(data)][None])
        milliseconds[name].append(1e3 * (time.perf_counter() - start))
for name, values in milliseconds.items():
    print(f"{name}: {np.median(values[10:]):.2f} ms for one trial of 16 x 128 (median)")

fig, axes = plt.subplots(figsize=(5, 2.5), layout="constrained")
axes.boxplot(
    [v[10:] for v in milliseconds.values()], tick_labels=list(ways), orientation="horizontal"
)
axes.set(xscale="log", xlabel="ms for one trial")
plt.show()
there.cleanup()
