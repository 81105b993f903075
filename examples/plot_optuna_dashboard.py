"""
Optuna's tools and dashboard on a run
=====================================

The trials of a run can be exported as studies of Optuna, also while the run goes on, and whatever
reads those (`optuna.load_study`, Optuna's plots and importances, its dashboard) opens them.
"""

# %%
# A small run. (The executor keeps this example in one process; leave ``engine`` out to use
# processes.)

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import optuna
from optuna_dashboard import wsgi

import autotransfer as at
from autotransfer.search import Space, export_optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
data = at.make_subjects(n_subjects=4, n_trials=24, n_channels=4, n_times=64, random_state=0)
there = tempfile.TemporaryDirectory()
run = Path(there.name) / "run"
with ThreadPoolExecutor(1) as pool:
    at.AutoTransfer(
        procedure="paper",
        out=run,
        classifier=at.CensoredClassifier(
            encoder_options={"F1": 4, "kernel_length": 16}, max_epochs=3, device="cpu"
        ),
        space=Space(["mmd", "adversary"], ["marginal"], {"mmd": [1, 10], "adversary": [0.1, 1]}),
        keep=1,
        engine=pool,
        portraits=False,
        verbose=False,
    ).fit(data.X, data.y, subject=data.subject)

# %%
# Each stage of the run becomes a study; its name begins with the hash of the run. Exporting again
# adds the trials that are new. In a terminal: ``autotransfer export run --optuna sqlite:///run.db``

url = f"sqlite:///{there.name}/run.db"
print(export_optuna(run, url), "trials exported")
storage = optuna.storages.RDBStorage(url)
for name in optuna.get_all_study_names(storage):
    study = optuna.load_study(study_name=name, storage=storage)
    print(name.partition("/")[2], len(study.trials), "trials")
search = next(n for n in optuna.get_all_study_names(storage) if n.endswith("/search"))
study = optuna.load_study(study_name=search, storage=storage)
print(study.trials_dataframe(attrs=("value", "params")).to_string(index=False))

# %%
# What mattered: the value of a trial is its validation balanced accuracy.

censored = [trial for trial in study.trials if "strength" in trial.params]
fig, axes = plt.subplots(figsize=(5, 3), layout="constrained")
for measure in ("mmd", "adversary"):
    mine = [t for t in censored if t.params["measure"] == measure]
    axes.semilogx(
        [t.params["strength"] for t in mine], [t.value for t in mine], "o-", label=measure
    )
axes.set(xlabel="strength", ylabel="validation balanced accuracy")
axes.legend()
plt.show()

# %%
# The dashboard
# -------------
# In a terminal::
#
#     pip install optuna-dashboard
#     optuna-dashboard sqlite:///run.db
#
# Here its web application is asked without a browser what studies it sees.

answer: dict[str, str] = {}
request = {
    "REQUEST_METHOD": "GET",
    "PATH_INFO": "/api/studies",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "8080",
    "wsgi.input": BytesIO(),
    "wsgi.errors": BytesIO(),
    "wsgi.url_scheme": "http",
}
body = b"".join(wsgi(storage)(request, lambda status, headers, *_: answer.update(status=status)))
seen = json.loads(body)["study_summaries"]
print(answer["status"], [found["study_name"].partition("/")[2] for found in seen])
there.cleanup()
