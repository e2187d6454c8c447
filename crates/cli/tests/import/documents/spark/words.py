"""Two jobs of Spark: the second reads what the first wrote.

usage: words.py JAR EVENTS
"""

import sys

from pyspark.sql import SparkSession

jar, events = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]")
    .appName("words")
    .config("spark.jars", jar)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.extraListeners", "io.openlineage.spark.agent.OpenLineageSparkListener")
    .config("spark.openlineage.transport.type", "file")
    .config("spark.openlineage.transport.location", events)
    .config("spark.openlineage.namespace", "words")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
text = spark.read.option("header", True).csv("/tmp/words/in.csv")
text.selectExpr("upper(word) as word").write.mode("overwrite").parquet("/tmp/words/loud")
loud = spark.read.parquet("/tmp/words/loud")
other = spark.read.option("header", True).csv("/tmp/words/other.csv")
joined = loud.join(other, "word").groupBy("word").count()
joined.write.mode("overwrite").csv("/tmp/words/counts")
spark.stop()
