"""What the entries say of a table's columns: counts, nulls and bounds, by partition.

Others may import:
    `sums`      one column in one partition, from the files that are live
    `values`    a data file's values as the bytes that sketches count
    `history`   the same at every snapshot that changed a partition, as rows
    `theta`     sketches in the form that every reader takes
"""
