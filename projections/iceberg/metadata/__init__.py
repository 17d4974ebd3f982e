"""What one Iceberg metadata file says, of a table: values, JSON, what must hold.

Pure.

Others may import:
    `types`        data types, and primitive ones as text
    `schema`       schemas, and what a schema must keep
    `schema_json`  schemas, types and default values as JSON
    `table`        a table's metadata, and what it must keep
    `properties`   the properties of it that somebody goes by
    `table_json`   a table's metadata files
    `unknown_keys` the keys of a metadata file that nobody here reads
    `wire`         reading JSON and the texts of properties

Source: the Iceberg table specification.
"""
