"""Engines by name: `make_engine`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from autotransfer.errors import SettingError, join_some
from autotransfer.registry import check_options, lookup
from autotransfer.search.engines.base import Engine
from autotransfer.search.engines.executor import ExecutorEngine
from autotransfer.search.engines.local import LocalEngine
from autotransfer.search.engines.ray import RayEngine


def make_engine(
    engine: str | Executor,
    n_workers: int = 1,
    *,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    **options: Any,
) -> Engine:
    """Make an engine from its name, or from an executor of your own.

    Parameters
    ----------
    engine : str or concurrent.futures.Executor
        A name in `ENGINES`, or an executor (of Dask, of loky, ...), which is never shut down.
    n_workers : int
        How many trials run at once. An executor that knows its own number keeps it.
    time_limit : float, optional
        Seconds a trial may run before its worker is killed.
    memory_limit : int, optional
        Bytes of memory per worker; a trial that asks for more gets `MemoryError`, or
        `RuntimeError` from torch.
    **options : dict
        For ``"ray"`` and for an executor: see `RayEngine` and `ExecutorEngine`.

    Returns
    -------
    Engine
        To be used in a ``with`` statement.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as mine, make_engine(mine) as engine:
    ...     engine.n_workers, engine.submit(divmod, 7, 2).result()
    (2, (3, 1))
    """
    if isinstance(n_workers, bool) or not isinstance(n_workers, int) or n_workers < 1:
        raise SettingError(f"n_workers must be a whole number, at least 1; not {n_workers!r}.")
    for name, limit in (("time_limit", time_limit), ("memory_limit", memory_limit)):
        if limit is not None and not limit > 0:
            raise SettingError(f"{name} must be more than 0; not {limit!r}.")
    make: Callable[..., Engine] = ExecutorEngine
    first: tuple[Executor, ...] = ()
    if isinstance(engine, Executor):
        who, first = "An executor handed over", (engine,)
    elif not isinstance(engine, str):
        raise SettingError(
            f"An engine is a name ({join_some(sorted(ENGINES))}) or a concurrent.futures.Executor; "
            f"not a {type(engine).__name__}."
        )
    else:
        own = "hand over a concurrent.futures.Executor of your own"
        make, who = lookup("engine", engine, ENGINES, own), f"The engine {engine!r}"
    limits: dict[str, Any] = {"time_limit": time_limit, "memory_limit": memory_limit}
    known = set(inspect.signature(make).parameters) - {"n_workers", "executor", *limits}
    check_options(options, known, who)
    return make(*first, n_workers=n_workers, **limits, **options)


# Ray is imported when its engine is made, so that both can be named here.
ENGINES: dict[str, Callable[..., Engine]] = {"local": LocalEngine, "ray": RayEngine}
"""Engines by name."""
