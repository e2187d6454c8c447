"""The measurement of TPC-C reads what go-tpc prints, and compares modes of one round."""

import pytest

from backstory_bench.stats import paired
from backstory_bench.tpcc import MODES, TRANSACTIONS, parsed, summary

PRINTED = """Finished
[Summary] DELIVERY - Takes(s): 6.0, Count: 11, TPM: 110.5, Sum(ms): 427.1, Avg(ms): 38.8, 50th(ms): 37.7, Max(ms): 52.4
[Summary] NEW_ORDER - Takes(s): 6.0, Count: 185, TPM: 1854.5, Sum(ms): 2481.0, Avg(ms): 13.4, 50th(ms): 12.6
[Summary] ORDER_STATUS - Takes(s): 5.9, Count: 17, TPM: 171.7, Sum(ms): 182.2, Avg(ms): 10.7, 50th(ms): 9.4
[Summary] PAYMENT - Takes(s): 6.0, Count: 176, TPM: 1766.5, Sum(ms): 2370.3, Avg(ms): 13.5, 50th(ms): 12.6
[Summary] STOCK_LEVEL - Takes(s): 5.9, Count: 19, TPM: 192.1, Sum(ms): 153.2, Avg(ms): 8.1, 50th(ms): 7.9
tpmC: 1854.5, tpmTotal: 4095.3, efficiency: 14420.7%
"""


def test_throughput_and_mean_response_times_are_read() -> None:
    found = parsed(PRINTED)
    assert found["tpmc"] == 1854.5
    assert [found[name] for name in TRANSACTIONS] == [13.4, 13.5, 10.7, 38.8, 8.1]


def test_a_run_with_failed_transactions_is_refused() -> None:
    failed = "[Summary] PAYMENT_ERR - Takes(s): 6.0, Count: 1, TPM: 10.0, Sum(ms): 1.0, Avg(ms): 1.0\n"
    with pytest.raises(SystemExit):
        parsed(PRINTED + failed)
    with pytest.raises(SystemExit):
        parsed(PRINTED.replace("tpmC", "none"))


def _row(number: int, mode: str, tpmc: float) -> dict[str, object]:
    return {"round": number, "mode": mode, "tpmc": tpmc, "complete": "yes"} | dict.fromkeys(TRANSACTIONS, 2.0)


def test_a_ratio_compares_two_modes_of_one_round() -> None:
    rows = [_row(0, "watched", 90), _row(0, "native", 100), _row(1, "native", 200), _row(1, "watched", 198)]
    assert paired(rows, "tpmc", "watched", "native") == [0.9, 0.99]


def test_the_table_has_medians_ratios_and_the_complete_records() -> None:
    rows = [_row(number, mode, 100 - index) for number in range(3) for index, mode in enumerate(MODES)]
    lines = summary(rows)
    assert lines[2] == "| tpmC | 100.0 | 99.0 | 98.0 | 0.990 (0.990 to 0.990) | 0.980 (0.980 to 0.980) |"
    assert lines[-1].endswith("Complete records: 3 of 3.")
