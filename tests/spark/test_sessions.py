"""A session that the user has is used as it is: never altered, replaced or stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from thalweg.errors import ConfigError

pytestmark = pytest.mark.spark


def settings(spark: Any) -> dict[str, str]:
    return {row.key: row.value for row in spark.sql("SET").collect()}


def test_the_active_session_is_used_and_left_alone(spark: Any, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    before = settings(spark)
    try:
        with tw.Engine(path=tmp_path / "path") as engine:
            assert engine.spark is spark
            assert settings(spark) == before
        assert settings(spark) == before
        assert spark.range(3).count() == 3
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.set("spark.sql.shuffle.partitions", "4")


def test_another_master_than_that_of_the_session_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has a Spark session with master local\[2,4\]") as found:
        tw.Engine("local[7]", path=tmp_path / "path")
    assert "Engine(spark)" in (found.value.remedy or "")
    assert not (tmp_path / "path" / "lock").exists()
    with tw.Engine("local[2,4]", path=tmp_path / "path") as engine:
        assert engine.spark is spark
    assert spark.range(3).count() == 3


def test_the_master_of_spark_submit_is_kept(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import thalweg as tw\n"
        "with tw.Engine() as engine:\n"
        "    print('master', engine.spark.sparkContext.master, flush=True)\n"
    )
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    found = subprocess.run(
        [str(submit), "--master", "local[3]", str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert "master local[3]" in found.stdout, found.stderr[-2000:]
