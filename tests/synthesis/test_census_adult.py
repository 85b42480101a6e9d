"""The real table of a census's shape is read from its wheel into bins that do not depend on the records."""

import zipfile
from pathlib import Path

import numpy as np

from benchmarks.census import SIZES
from benchmarks.census_adult import read_adult

_HEAD = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,capital-gain,"
    "capital-loss,hours-per-week,native-country,income-per-year"
)
_YOUNG = "17,Private,0,Bachelors,1,Divorced,Sales,Wife,White,Female,0,0,1,Cuba,<=50K"
_OLD = "90,Never-worked,1484705,Masters,16,Widowed,Tech-support,Husband,Other,Male,99999,4356,99,Peru,>50K"
_OLDER = "120,Private,9999999,Masters,16,Widowed,Tech-support,Husband,Other,Male,100000,9999,120,Peru,>50K"


def _wheel(folder: Path, *rows: str) -> Path:
    path = folder / "fairness-0.1.8-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as held:
        held.writestr("fairness/data/raw/adult.csv", "\n".join([_HEAD, *rows]) + "\n")
    return path


def test_numbers_have_fixed_bins_and_words_their_order(tmp_path: Path) -> None:
    codes = read_adult(_wheel(tmp_path, _YOUNG, _OLD))
    assert codes.shape == (len(SIZES), 2)
    # Relationships in their order are Husband and Wife, races Other and White.
    assert codes[:, 0].tolist() == [0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    assert codes[:, 1].tolist() == [73, 0, 98, 15, 1, 1, 0, 0, 1, 99, 87, 98, 1, 1]


def test_numbers_beyond_the_bins_are_in_the_outer_ones(tmp_path: Path) -> None:
    codes = read_adult(_wheel(tmp_path, _YOUNG, _OLDER))
    assert all(int(column.max()) < size for column, size in zip(codes, SIZES, strict=True))
    numbers = np.array([0, 2, 3, 9, 10, 11])
    assert codes[numbers, 1].tolist() == [84, 99, 15, 99, 99, 98]
