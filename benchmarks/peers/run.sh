#!/usr/bin/env bash
# Run the competitors in an environment made for them, after a test of their implementations.
#
#   bash benchmarks/peers/run.sh FOLDER [options of peers.py]
#   bash benchmarks/peers/run.sh FOLDER --test             only the tests
#
# The environment is kept in FOLDER and used again the next time. PYTHON=python3.12 chooses the
# interpreter; pip's own configuration is obeyed.
set -euo pipefail

if [ $# -lt 1 ]; then
  echo "usage: bash benchmarks/peers/run.sh FOLDER [options of peers.py | --test]" >&2
  exit 2
fi
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
folder="$1"
shift
python="$folder/bin/python"
wanted="$(cat "$here/requirements.txt")"
if [ ! -x "$python" ]; then
  "${PYTHON:-python3}" -m venv "$folder"
fi
if [ "$(cat "$folder/installed.txt" 2>/dev/null)" != "$wanted" ]; then
  # torch first and by its version, so that the others fit it and not the reverse.
  "$python" -m pip install --quiet "$(grep '^torch==' "$here/requirements.txt")"
  "$python" -m pip install --quiet -r "$here/requirements.txt" --editable "$root"
  printf '%s\n' "$wanted" >"$folder/installed.txt"
fi
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-PASSIVE}"
# The package and the benchmarks of this checkout, whichever the environment was made for.
export PYTHONPATH="$root/src:$root"
# Without this, tests of a peer that is missing would be skipped.
export AUTOTRANSFER_NEED_PEERS=1
"$python" -m pytest -q -rs --strict-markers -p no:cacheprovider \
  --rootdir "$root" -c "$root/pyproject.toml" "$root/tests/benchmarks"
if [ "${1:-}" != "--test" ]; then
  exec "$python" -m benchmarks.peers.peers "$@"
fi
