"""Options: which there are, what they say, and which columns they name.

Others may import:
    `naming`       the one table of options that name columns, and what renames do to them
    `reading`      typed values of options
    `deciding`     changes of options and keys, and which of them snapshots fix
    `operations`   the rows of what can be asked of options, the comment and the keys
"""
