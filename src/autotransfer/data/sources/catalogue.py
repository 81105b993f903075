"""What can be had by name: `catalogue` lists it, `autotransfer.data.sources.load` loads it.

The figures of MOABB's data sets are MOABB's own (its ``METADATA``, and its list of subjects); a
test compares them with the installed MOABB. They are written down here because the list must be
there without MOABB, and at once: importing MOABB takes seconds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SEE_PAGE = "see its page"
"""The licence of a data set about which we found nothing that can be relied on."""


@dataclass(frozen=True)
class Listed:
    """A data set that can be had by name.

    Parameters
    ----------
    name : str
        What to hand to `autotransfer.load`; where it holds FOLDER, put the folder of the files.
    task : str
        What people did, in a few words.
    subjects, classes : int
        How many.
    channels : int or None
        How many; None where they differ between subjects.
    sfreq : float
        Sampling rate of the recordings in Hz.
    licence : str
        As the source says, or "see its page".
    source : str
        Where it comes from.
    how : str
        "download" where loading fetches it, "files" where you fetch the files yourself.
    """

    name: str
    task: str
    subjects: int
    classes: int
    channels: int | None
    sfreq: float
    licence: str
    source: str
    how: str = "download"

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        return asdict(self)


def _moabb(
    name: str, task: str, subjects: int, classes: int, channels: int, sfreq: float, licence: str
) -> Listed:
    source = f"https://moabb.neurotechx.com/docs/generated/moabb.datasets.{name}.html"
    return Listed(f"moabb:{name}", task, subjects, classes, channels, sfreq, licence, source)


def _files(
    name: str, task: str, subjects: int, channels: int | None, sfreq: float, source: str
) -> Listed:
    """List a data set of two classes whose files a person fetches."""
    folder = f"{name}:FOLDER"
    return Listed(folder, task, subjects, 2, channels, sfreq, SEE_PAGE, source, "files")


_KAGGLE = "https://www.kaggle.com/c/inria-bci-challenge/data"
_STANFORD = "https://purl.stanford.edu/zk881ps0522"
_CATALOGUE = (
    _moabb("Kalunga2016", "SSVEP, exoskeleton", 12, 4, 8, 256.0, "CC-BY-4.0"),
    _moabb("Nakanishi2015", "SSVEP, 12 targets", 9, 12, 8, 256.0, SEE_PAGE),
    _moabb("Wang2016", "SSVEP, 40 targets", 34, 40, 64, 250.0, "CC-BY-4.0"),
    _moabb("Lee2019_SSVEP", "SSVEP, 4 targets", 54, 4, 62, 1000.0, "GPL-3.0"),
    _moabb("BNCI2014_001", "motor imagery", 9, 4, 22, 250.0, "CC-BY-ND-4.0"),
    _moabb("BNCI2014_004", "motor imagery", 9, 2, 3, 250.0, "CC-BY-ND-4.0"),
    _moabb("BNCI2015_001", "motor imagery", 12, 2, 13, 512.0, "CC-BY-NC-ND-4.0"),
    _moabb("Cho2017", "motor imagery", 52, 2, 64, 512.0, "CC-BY-4.0"),
    _moabb("PhysionetMI", "motor imagery", 109, 5, 64, 160.0, "ODC-By-1.0"),
    _moabb("Schirrmeister2017", "motor execution", 14, 4, 128, 500.0, "CC-BY-4.0"),
    _moabb("Weibo2014", "motor imagery", 10, 7, 60, 200.0, "CC0-1.0"),
    _moabb("Dreyer2023", "motor imagery", 87, 2, 27, 512.0, "CC-BY-4.0"),
    _moabb("BNCI2014_009", "P300 speller", 10, 2, 16, 256.0, "CC-BY-NC-ND-4.0"),
    _moabb("BI2014a", "P300, Brain Invaders", 64, 2, 16, 512.0, "CC-BY-4.0"),
    _moabb("Huebner2017", "P300 speller", 13, 2, 31, 1000.0, "CC-BY-4.0"),
    _files("inria-ern", "error potential, P300 speller", 16, 56, 200.0, _KAGGLE),
    _files("faces-basic", "ECoG, faces or houses", 14, None, 1000.0, _STANFORD),
)


def catalogue() -> list[Listed]:
    """List the data sets that can be had by name.

    Returns
    -------
    list of Listed
        A selection of MOABB's data sets (all others of its motor imagery, SSVEP and P300 sets can
        be had by name too: ``moabb:<class name>``), and the two sets of the AutoTransfer paper
        whose files can be downloaded by anybody.

    Examples
    --------
    >>> row = catalogue()[0]
    >>> row.name, row.subjects, row.channels, row.licence
    ('moabb:Kalunga2016', 12, 8, 'CC-BY-4.0')
    """
    return list(_CATALOGUE)
