"""The measurement of prompts compares a bare and a recorded shell of one round."""

import os
import shutil
from pathlib import Path

import pytest

from backstory_bench.prompt import STARTUP, Terminal, percentile, summary


def test_the_table_has_medians_and_what_recording_adds() -> None:
    rows = [{"shell": "bash", "round": n, "bare_ms": 1.0 + n, "recorded_ms": 1.5 + 2 * n} for n in range(3)]
    assert summary(rows)[-1] == "| bash | 2.00 | 3.50 | 1.50 | 2.50 |"


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
