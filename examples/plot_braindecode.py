"""
Any braindecode model as the encoder
====================================

A model of braindecode is a torch module from (trials, channels, times) to logits. Its last layer is
cut off: what goes into that layer is the latent, which is censored, and our linear classifier takes
its place.
"""

# %%
# Three architectures, each censored and not.

import matplotlib.pyplot as plt
import numpy as np
from braindecode.models import Deep4Net, EEGConformer, ShallowFBCSPNet

import autotransfer as at

data = at.make_subjects(n_subjects=5, n_trials=30, n_channels=8, n_times=128, random_state=0)
known = data.select(subjects=data.subject_ids[:-1])
new = data.select(subjects=data.subject_ids[-1:])
shape = {"n_chans": data.n_channels, "n_times": data.n_times, "n_outputs": len(data.labels)}
models = {
    "ShallowFBCSPNet": ShallowFBCSPNet(**shape, final_conv_length="auto"),
    "Deep4Net": Deep4Net(
        **shape,
        final_conv_length="auto",
        filter_time_length=5,
        pool_time_length=2,
        pool_time_stride=2,
        filter_length_2=5,
        filter_length_3=5,
        filter_length_4=5,
    ),
    "EEGConformer": EEGConformer(**shape, num_layers=1, pool_time_length=20, pool_time_stride=5),
}

# %%
# Nothing has to be said about the model: its last linear or convolution layer is found. Where that
# is the wrong one, ``encoder_options={"latent": "name of the layer"}`` names another.

scores = {}
for name, model in models.items():
    for measure in (None, "mmd"):
        clf = at.CensoredClassifier(
            measure, encoder=model, max_epochs=4, random_state=0, verbose=False
        )
        clf.fit(known.X, known.y, subject=known.subject)
        scores[name, measure] = clf.score(new.X, new.y)
        print(
            f"{name}, {measure or 'uncensored'}: latent of {clf.network_.n_latent} numbers, "
            f"{scores[name, measure]:.2f} on a person never seen"
        )

# %%
# Trained weights are the model's own: `network_.encoder.module` is the braindecode model.

print(type(clf.network_.encoder.module).__name__)

fig, axes = plt.subplots(figsize=(5, 3), layout="constrained")
at_x = np.arange(len(models))
for shift, measure in ((-0.2, None), (0.2, "mmd")):
    heights = [scores[name, measure] for name in models]
    axes.bar(at_x + shift, heights, 0.35, label=measure or "uncensored")
axes.set(xticks=at_x, xticklabels=list(models), ylabel="balanced accuracy", ylim=(0, 1))
axes.legend()
plt.show()
