"""`autotransfer datasets`: what can be had by name."""

from __future__ import annotations

from dataclasses import asdict

from autotransfer.cli.options import Json
from autotransfer.cli.output import print_json, print_table


def datasets(as_json: Json = False) -> None:
    """List the data sets that can be given by name, with subjects, classes and licence.

    [bold]Examples[/bold]

      autotransfer datasets
      autotransfer inspect moabb:Kalunga2016
    """
    from autotransfer.data.sources.catalogue import catalogue

    rows = [asdict(row) for row in catalogue()]
    if as_json:
        print_json(rows)
    else:
        print_table(rows)
