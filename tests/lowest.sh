#!/usr/bin/env bash
# Run part of the tests with the lowest versions that pyproject.toml promises, in an environment made
# for it.
#
#   bash tests/lowest.sh            in a temporary folder, removed afterwards
#   bash tests/lowest.sh FOLDER     in FOLDER, kept and used again the next time
#
# PYTHON=python3.12 chooses the interpreter. Torch is that of CI: older CPU builds are not on PyPI.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
torch="torch==2.13.0"
if [ $# -ge 1 ]; then
  folder="$1"
  mkdir -p "$folder"
else
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' EXIT
fi
python="$folder/bin/python"
if [ ! -x "$python" ]; then
  "${PYTHON:-python3}" -m venv "$folder"
fi
"$python" -m pip install --quiet "$torch" uv
echo "$torch" >"$folder/torch.txt"
"$python" -m uv pip compile "$root/pyproject.toml" --resolution lowest-direct --quiet \
  --python "$python" --no-emit-package torch --constraint "$folder/torch.txt" >"$folder/lowest.txt"
grep -E '^[a-z]' "$folder/lowest.txt"
# Pip and not uv: it keeps the torch that is there and obeys its own configuration.
"$python" -m pip install --quiet "$torch" --requirement "$folder/lowest.txt"
"$python" -m pip install --quiet "$torch" --requirement "$folder/lowest.txt" \
  pytest hypothesis psutil pyte
"$python" -m pip install --quiet --force-reinstall --no-deps "$root"

export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
cd "$root"
# What touches each of the dependencies: tables, statistics, pictures, commands, samplers, folders.
"$python" -m pytest -q -rs --strict-markers -p no:cacheprovider -m "not nightly" \
  tests/data/test_combine.py tests/data/test_splits.py tests/data/sources/test_npz.py \
  tests/data/checks tests/training/test_model_folder.py tests/training/test_signals.py \
  tests/training/test_sklearn.py tests/leakage/test_probes.py tests/search/settings \
  tests/search/test_budget.py tests/report/test_statistics.py tests/report/test_page.py \
  tests/cli/test_errors.py tests/cli/test_help.py tests/cli/test_model_commands.py
