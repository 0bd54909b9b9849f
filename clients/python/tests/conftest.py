"""What several tests need."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def seed() -> int:
    """A random seed, which a test prints; EVERTURN_SEED runs one again."""
    return int(os.environ.get("EVERTURN_SEED") or random.randrange(2**32))


@pytest.fixture
def rng(seed: int) -> Iterator[random.Random]:
    """Random numbers of the seed."""
    print(f"EVERTURN_SEED={seed}")  # pytest shows it when the test fails
    yield random.Random(seed)


def pytest_report_header() -> str:
    """Says which seed runs."""
    os.environ.setdefault("EVERTURN_SEED", str(random.randrange(2**32)))
    return f"EVERTURN_SEED={os.environ['EVERTURN_SEED']}"
