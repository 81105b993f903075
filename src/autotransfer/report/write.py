"""Write the report of a run: the page, and its pictures and tables as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from autotransfer import atomic
from autotransfer.errors import SourceError
from autotransfer.text import csv_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from autotransfer.report.pictures import Drawing
    from autotransfer.report.record import Record

PathLike = str | os.PathLike[str]


def write_report(
    run: PathLike,
    out: PathLike | None = None,
    *,
    storage: str | None = None,
    assets: PathLike | bool | None = None,
) -> Path:
    """Write the report of a run, whole or not.

    One HTML file without outside parts, to be read in a browser, sent by mail, printed. Nothing
    but the folder of the run is read: no data are needed, and a run that goes on is not disturbed.
    A run that is not complete gives a page that says so on its first screen and on every picture.

    Parameters
    ----------
    run : path
        Folder of the run.
    out : path, optional
        File to write; ``report.html`` in the folder of the run by default.
    storage : str, optional
        Address of the ledger, if it is in a database.
    assets : path or False, optional
        Folder for the pictures as SVG and PNG and the tables as CSV; by default one beside the page
        named ``<name of the page>-files``. False writes none.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    SourceError
        If there is no run in the folder, or there is no folder to write in.
    """
    # Not at the top: who asks for leakage need not wait for matplotlib and Optuna.
    from autotransfer.report.gather import gather
    from autotransfer.report.page import page
    from autotransfer.report.pictures import draw, pictures

    folder = Path(run).expanduser()
    target = folder / "report.html" if out is None else Path(out).expanduser()
    if target.is_dir():
        raise SourceError(f"{target} is a folder. Give the name of an HTML file to write.")
    record = gather(folder, storage)
    if not target.resolve().parent.is_dir():
        raise SourceError(f"There is no folder {target.resolve().parent} to write in. Make it.")
    files: Path | None = None
    if assets is None or assets is True:
        files = target.with_name(f"{target.stem}-files")
    elif assets is not False:
        files = Path(assets).expanduser()
    png = files is not None
    drawings = {name: draw(picture, png) for name, picture in pictures(record).items()}
    text = page(record, drawings, None if files is None else files.name)
    if files is not None:
        _write_assets(files, record, drawings)
    atomic.write_bytes(target, text.encode())
    return target


def _write_assets(folder: Path, record: Record, drawings: Mapping[str, Drawing]) -> None:
    """Write pictures and tables; what an earlier report left there and this one lacks goes."""
    from autotransfer.report.pictures import MAKERS
    from autotransfer.report.tables import TABLES

    folder.mkdir(parents=True, exist_ok=True)
    contents: dict[str, bytes] = {}
    for name, drawing in drawings.items():
        contents[f"{name}.svg"], contents[f"{name}.png"] = drawing.light, drawing.png or b""
    for name, table in TABLES.items():
        rows = table(record)
        if not rows.empty:
            contents[f"{name}.csv"] = csv_table(rows)
    names = [f"{n}.{kind}" for n in MAKERS for kind in ("svg", "png")] + [
        f"{n}.csv" for n in TABLES
    ]
    for name in names:
        if name in contents:
            atomic.write_bytes(folder / name, contents[name])
        else:
            (folder / name).unlink(missing_ok=True)
