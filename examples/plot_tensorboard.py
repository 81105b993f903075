"""
TensorBoard
===========

``log=FOLDER`` writes every epoch of a training for TensorBoard: losses, penalty, the critic, and
the scores at the end. It changes nothing of what is trained. Look at it with
``tensorboard --logdir FOLDER``.
"""

# %%
# Each training gets a run of its own in the folder, so a cross-validation or a grid search can log
# to one place.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import autotransfer as at

data = at.make_subjects(n_subjects=5, n_trials=30, n_channels=8, n_times=96, random_state=0)
there = tempfile.TemporaryDirectory()
log = Path(there.name) / "log"
for measure in (None, "mmd", "adversary"):
    at.CensoredClassifier(
        measure,
        encoder_options={"kernel_length": 32},
        max_epochs=10,
        random_state=0,
        verbose=False,
        log=log,
    ).fit(data.X, data.y, subject=data.subject)
runs = sorted(log.iterdir())
print([run.name.rpartition("-")[0] for run in runs])

# %%
# Read back with TensorBoard's own reader, this is what the page would show.

fig, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for run in runs:
    found = EventAccumulator(str(run)).Reload()
    name = run.name.rpartition("-")[0]
    print(name, found.Tags()["scalars"])
    for panel, tag in zip(axes, ("epoch/validation_loss", "epoch/penalty"), strict=True):
        if tag in found.Tags()["scalars"]:
            events = found.Scalars(tag)
            panel.plot([e.step for e in events], [e.value for e in events], label=name)
        panel.set(xlabel="epoch", title=tag)
axes[0].legend()
plt.show()
there.cleanup()

# %%
# A whole run
# -----------
# Of a hands-off run, ``AutoTransfer(classifier=CensoredClassifier(log=FOLDER))`` writes all trials
# when it ends; ``autotransfer.search.write_tensorboard(run_folder, FOLDER)`` does so at any time,
# also while the run goes on.
