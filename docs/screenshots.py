"""Take the pictures of README and docs anew: ``python docs/screenshots.py RUN``.

RUN is the folder of a run; the README shows one of ``autotransfer run emg.npz --budget 30m
--n-jobs 2`` (a run that a benchmark began goes on by that command, and then shows commands).
Its report is written by this version of the code and photographed by Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from autotransfer.report import write_report

PICTURES = Path(__file__).parent / "_static"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTH, HEIGHT = 1280, 900


def photograph(page: Path, picture: Path) -> None:
    """Write the first screen of a page to a file."""
    browser = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if browser is None:
        sys.exit("No Chromium is installed, which takes the pictures.")
    with tempfile.TemporaryDirectory(prefix="autotransfer-browser-") as profile:
        subprocess.run(
            [
                *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *("--force-device-scale-factor=1", f"--user-data-dir={profile}"),
                *(f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}", page.as_uri()),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a run")
    run = parser.parse_args().run
    with tempfile.TemporaryDirectory(prefix="autotransfer-report-") as folder:
        page = write_report(run, Path(folder) / "report.html")
        photograph(page.absolute(), PICTURES / "report.png")
    print(PICTURES / "report.png")


if __name__ == "__main__":
    main()
