"""Options: which there are, what they say, and which columns they name.

Others may import:
    `naming`       the one table of options that name columns
    `reading`      typed values of options
    `keys`         the rules of primary key and partition keys
    `guards`       options that snapshots fix
    `renames`      what renames do to options and keys
    `deciding`     changes of options
    `operations`   the rows of what can be asked of options, the comment and the keys
"""
