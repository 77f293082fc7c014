"""A count with its noun."""

import pytest

from trainwatch.core.model.text import plural


@pytest.mark.parametrize(("number", "said"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps")])
def test_one_is_no_plural(number: int, said: str) -> None:
    assert plural(number, "step") == said
    assert plural(1, "process", "processes") == "1 process"
    assert plural(2, "process", "processes") == "2 processes"
