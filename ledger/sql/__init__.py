"""Parser of `ALTER TABLE` in Spark's and Iceberg's dialect."""
