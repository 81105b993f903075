#!/usr/bin/env bash
# Show that our EEGNet and braindecode's exchange weights, that braindecode as a competitor learns
# nothing of the new person, and run the example with braindecode's models, in an environment made
# for it.
#
#   bash tests/exchange/run.sh            in a temporary folder, removed afterwards
#   bash tests/exchange/run.sh FOLDER     in FOLDER, kept and used again the next time
#
# PYTHON=python3.12 chooses the interpreter; pip's own configuration is obeyed. SITE=FOLDER names the
# site-packages of another environment, from which torch and the like are taken instead of being
# installed again.
#
# braindecode depends on torchaudio, whose compiled library does not load beside a CPU build of
# torch. Without that library torchaudio imports, and nothing here needs it: so it is removed.
# That is why this is an environment of its own and not an extra of the main one.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
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
site="$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')"
if [ -n "${SITE:-}" ]; then
  echo "$SITE" >"$site/base.pth"
fi
# torch first and by its version, so that braindecode's dependencies fit it and not the reverse.
"$python" -m pip install --quiet "torch==2.13.0"
"$python" -m pip install --quiet "torch==2.13.0" "braindecode>=1.8,<1.9" pytest hypothesis
find "$site/torchaudio" -name '*.so' -delete
"$python" -m pip install --quiet --force-reinstall --no-deps "$root"
"$python" -m pip install --quiet "torch==2.13.0" "$root"

# -rs shows a skip; a run in which braindecode is missing must fail, not pass by skipping.
"$python" -c "import braindecode.models"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
cd "$root"
"$python" -m pytest -v -rs --strict-markers -p no:cacheprovider "$here"
AUTOTRANSFER_NEED_BRAINDECODE=1 "$python" -m pytest -q -rs --strict-markers -p no:cacheprovider \
  -k braindecode "$root/tests/benchmarks/test_peers_leakage.py"
MPLBACKEND=Agg "$python" "$root/examples/plot_braindecode.py"
