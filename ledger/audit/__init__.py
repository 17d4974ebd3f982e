"""Who changed what, when and why: a table's history asked, compared and taken back.

Others may import:
    `difference`   what differs between two states of a table, and the changes that lead across
    `migrating`    those changes alone, what they would make of a state, and one taken back
    `lives`        every column that a table ever had, by id, through all its names
    `blame`        of each thing, the facts that made it what it is
    `entries`      a log's entries, newest first, filtered
    `views`        all of that as rows and Arrow tables
    `snapshots`    a table's snapshots, as rows
    `tables`       the log of a whole ledger, dropped tables' too, and where an id stands in it
    `partitions`   rows, files and bytes of each partition
    `report`       one page for an auditor
"""
