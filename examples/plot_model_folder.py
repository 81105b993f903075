"""
The model folder
================

A trained model is a folder of JSON and safetensors, in the manner of Hugging Face's model hub. It
can be read by other programs, compared in a pull request and uploaded as it is. Nothing in it
executes when it is loaded.
"""

# %%
# Train a little, and save.

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from safetensors.numpy import load_file

import autotransfer as at
from autotransfer.errors import ModelFolderError

data = at.make_subjects(n_subjects=5, n_trials=30, n_channels=8, n_times=96, random_state=0)
clf = at.CensoredClassifier(
    "mmd", encoder_options={"kernel_length": 32}, max_epochs=8, random_state=0, verbose=False
)
clf.fit(data.X, data.y, subject=data.subject)

there = tempfile.TemporaryDirectory()
folder = clf.save(Path(there.name) / "gestures.model")
for file in sorted(folder.iterdir()):
    print(f"{file.name:22} {file.stat().st_size:6} bytes")

# %%
# The model card
# --------------
# ``README.md`` begins with the header that model hubs read. It counts people and does not name
# them; write on it as you like.

print((folder / "README.md").read_text())

# %%
# Documents and weights
# ---------------------
# Options and provenance are JSON; weights can be read by anything that reads safetensors.

provenance = json.loads((folder / "provenance.json").read_text())
print({name: provenance[name] for name in ("autotransfer", "seed", "best_epoch", "scores")})
weights = load_file(folder / "weights.safetensors")
print({name: value.shape for name, value in list(weights.items())[:4]})

fig, axes = plt.subplots(figsize=(5, 3), layout="constrained")
axes.plot(weights["encoder.conv_temporal.weight"].squeeze().T)
axes.set(xlabel="time point", ylabel="weight", title="temporal filters, from the file")
plt.show()

# %%
# Loading
# -------
# The loaded model gives the same answers. A folder that was changed is refused.

again = at.CensoredClassifier.load(folder)
assert np.array_equal(again.predict_proba(data.X), clf.predict_proba(data.X))
(folder / "labels.json").write_text('{"kind": "i", "values": [1, 0]}')
try:
    at.CensoredClassifier.load(folder)
except ModelFolderError as error:
    print("refused:", str(error).replace(str(folder), "gestures.model"))
there.cleanup()
