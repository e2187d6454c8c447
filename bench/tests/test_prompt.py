"""The measurement of prompts compares bare shells and a recorded one of one round."""

import itertools
import os
import shutil
from pathlib import Path

import pytest

from backstory_bench.prompt import STARTUP, Terminal, percentile, summary, turns


def test_the_table_has_medians_what_recording_adds_and_the_control() -> None:
    rows = [
        {"shell": "bash", "round": n, "bare_ms": 1.0 + n, "control_ms": 1.25 + n, "recorded_ms": 1.5 + 2 * n}
        for n in range(3)
    ]
    assert summary(rows)[-1] == "| bash | 2.00 | 3.50 | 1.50 | 2.50 | 0.25 |"


def test_each_shell_is_as_often_first_and_as_often_after_each_other() -> None:
    rounds = [turns(number, 3) for number in range(6)]
    assert sorted(order[0] for order in rounds) == [0, 0, 1, 1, 2, 2]
    after = [pair for order in rounds for pair in itertools.pairwise(order)]
    assert {after.count(pair) for pair in itertools.permutations(range(3), 2)} == {2}


def test_one_slow_round_in_a_hundred_is_the_99th_percentile() -> None:
    assert percentile([1.0] * 99 + [9.0], 0.99) == 9.0
    assert percentile([1.0] * 200 + [9.0], 0.99) == 1.0


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_line_is_timed_until_the_next_prompt(tmp_path: Path) -> None:
    name, text = STARTUP["bash"]
    (tmp_path / name).write_text(text)
    terminal = Terminal([shutil.which("bash") or "bash"], tmp_path)
    assert terminal.type("sleep 0.2; touch done") >= 200
    assert os.path.exists(tmp_path / "done")
    terminal.close()
    with pytest.raises(ProcessLookupError):
        os.kill(terminal.process, 0)
