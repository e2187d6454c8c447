"""One question to Spark, which has the links of DuckDB edge by edge. `test_spark` has more of them.

The test needs pyspark, Java 17 and Iceberg's library (`BACKSTORY_ICEBERG_JAR`).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from invented import coincidences
from reference import Reference
from test_hubs import ComparedRounds, duck, some_files
from test_lineage import assert_same
from test_spark import JAR, engine_of, spark

from backstory_lake import rounds

pytestmark = pytest.mark.skipif(not JAR, reason="BACKSTORY_ICEBERG_JAR names no library")


def test_spark_has_the_links_of_duckdb_edge_by_edge(lake: Path) -> None:
    coincidences(309).written(lake)
    roots, way = some_files(Reference(lake), 4), rounds.Way("forth", hubs=2)
    expected = ComparedRounds(lake, duck(lake))
    with spark() as session:
        found = ComparedRounds(lake, engine_of(lake, session))
        assert_same(f"{roots}", found.answer(roots, way), expected.answer(roots, way))
        assert found.reported() == expected.reported() != []
        # The driver forgets earlier rounds.
        store = session._jsparkSession.sharedState().statusStore()
        assert store.executionsCount() <= 5
    assert len(expected.answer(roots, way)) > 20
