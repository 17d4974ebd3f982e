"""Statistics where the readers of a format look for them.

Others may import:
    `publish_iceberg`   a file of partition statistics that Iceberg's metadata names
    `iceberg_file`      such a file
    `publish_distinct`  a Puffin file of columns' sketches that Iceberg's metadata names
    `publish_paimon`    an ANALYZE snapshot, with statistics of columns
    `published`         what a publication came to

Inside: `puffin`, the bytes of a Puffin file.
"""
