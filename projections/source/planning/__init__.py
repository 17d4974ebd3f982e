"""What is asked, and the spans of tables' logs that tasks read for it; done where Spark plans.

Others may import:
    `asked`   the options of a reader, checked
    `bounds`  what filters say of versions, times and tables
    `spans`   what a query reads, once
    `feed`    what a stream reads, and how far it is
"""
