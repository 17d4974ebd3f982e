"""Statistics as tiles of Parquet beside the log, and a position that is written last.

Others may import:
    `materialise`    bringing them up to date, by whatever engine; checking and restoring them
    `kept`           the rows of a history, from tiles or from the log
    `engine_listed`  the same of a table whose engine lists its files, of which nothing is kept
    `tiling`         which tiles there are
    `tile_file`      a tile as a file
    `position`       how far they reach

Inside: `again` computes what the tiles should hold; `balance` brings what is kept and what an
opening says together; `moments` are when what is counted took effect.
"""
