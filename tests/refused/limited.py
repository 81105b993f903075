"""Acts in a process of their own, within limits of memory and time: ``limited.run(...)``.

The process does one act after the other and reports each. If it dies, or is silent for too long,
the act that it was doing is to blame, and a new process does the rest.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

MEMORY = 2 * 2**30
SECONDS = 10.0
STARTING = 120.0  # importing torch on a busy machine


def run(
    module: str, *args: object, seconds: float = SECONDS, limit: str = "RLIMIT_AS"
) -> dict[str, dict]:
    """Do what ``module.acts(*args)`` gives, a dict of names to functions of an empty folder.

    Parameters
    ----------
    module, args
        Whose acts.
    seconds : float
        Time of each.
    limit : str
        Of what there are 2 GB: addresses, or memory to write to (RLIMIT_DATA), with which a file of
        any length can be mapped.

    Returns
    -------
    dict
        Name -> ``outcome`` ("loaded", the name of a class of error, "died" or "hangs"), ``named``
        (whether it is an error of ours), ``message``, ``seconds``, ``memory`` (bytes that were in
        use at most, beyond what was in use at most before).
    """
    reports: dict[str, dict] = {}
    while True:
        process = subprocess.Popen(
            [sys.executable, __file__, limit, module, json.dumps(list(reports)), *map(str, args)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        current, said = None, b""
        with process:
            for line in lines(process, seconds):
                said = line
                if line.startswith(b"begin "):
                    current = line[6:].decode()
                elif line.startswith(b"end "):
                    reports[current] = json.loads(line[4:])
            process.kill()
        if said == b"all":
            return reports
        assert current is not None, "the process could not be started"
        if current in reports:  # it died between two acts
            current = f"after {current}"
        what = f"hangs (over {seconds:g} s)" if process.returncode == -9 else "died"
        reports[current] = {
            "outcome": what,
            "named": False,
            "message": f"code {process.returncode}",
            "seconds": seconds,
            "memory": 0,
        }


def lines(process, seconds: float) -> Iterator[bytes]:
    """Yield lines until the process ends or is silent for too long."""
    number, rest, patience = process.stdout.fileno(), b"", STARTING
    while select.select([number], [], [], patience)[0]:
        part, patience = os.read(number, 1 << 16), seconds
        if not part:
            return
        *whole, rest = (rest + part).split(b"\n")
        yield from whole


def main() -> None:
    import resource

    limit, module, done, *args = sys.argv[1:]
    acts = importlib.import_module(module).acts(*args)
    resource.setrlimit(getattr(resource, limit), (MEMORY, MEMORY))
    out = os.dup(1)
    os.dup2(2, 1)  # what an act prints is no report
    for name, act in acts.items():
        if name in json.loads(done):
            continue
        os.write(out, f"begin {name}\n".encode())
        with tempfile.TemporaryDirectory() as folder:
            report = report_of(act, Path(folder))
        os.write(out, b"end " + json.dumps(report).encode() + b"\n")
    os.write(out, b"all\n")


def report_of(act, folder: Path) -> dict:
    from autotransfer.errors import AutoTransferError

    start, before = time.perf_counter(), most_memory()
    outcome, named, message = "loaded", True, ""
    try:
        act(folder)
    except BaseException as error:
        outcome, named = type(error).__name__, isinstance(error, AutoTransferError)
        message = str(error) if named else "".join(traceback.format_exception(error)[-6:])
    return {
        "outcome": outcome,
        "named": named,
        "message": message,
        "seconds": time.perf_counter() - start,
        "memory": most_memory() - before,
    }


def most_memory() -> int:
    # Linux: getrusage tells at least what the process had that started this one, and growth below
    # that would not be seen.
    if sys.platform == "linux":
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


if __name__ == "__main__":
    main()
