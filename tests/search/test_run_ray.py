"""Whole runs on Ray that loses workers, itself and a machine: the same table comes out."""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from test_ray import cluster  # noqa: F401 -- a fixture
from test_run_faults import (
    begin,
    check,
    recorded,
    undisturbed,  # noqa: F401 -- a fixture
    wait_for,
)

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        find_spec("ray") is None and os.environ.get("AUTOTRANSFER_NEED_RAY") != "1",
        reason="ray is not installed",
    ),
]


def family(process, name):
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if child.name().startswith(name)]


def end_of(process, out, undisturbed):  # noqa: F811
    said, errors = process.communicate(timeout=600)
    assert "done" in said, errors
    check(out, undisturbed)


def test_kill_of_a_ray_worker_and_then_of_the_raylet(tmp_path, undisturbed):  # noqa: F811
    out = tmp_path / "run"
    process = begin(out, engine="ray")
    killed = []
    for n, name in ((2, "ray::_call"), (7, "raylet")):
        wait_for(lambda n=n: recorded(out) >= n or process.poll() is not None)
        wait_for(lambda name=name: family(process, name) or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        victim = family(process, name)[0]
        victim.kill()
        killed.append(victim)
    end_of(process, out, undisturbed)
    assert len(killed) == 2


def test_a_machine_of_the_cluster_dies_in_mid_run(tmp_path, undisturbed, cluster):  # noqa: F811
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    out = tmp_path / "run"
    process = begin(out, engine="ray", engine_options={"address": cluster.address})
    wait_for(lambda: recorded(out) >= 4 or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    os.kill(second.all_processes["raylet"][0].process.pid, signal.SIGKILL)
    end_of(process, out, undisturbed)
