"""What people ask of the statistics, and how they see it.

Others may import:
    `query`      partitions at an instant, totals over time, growth
    `rendering`  how partitions are told
    `questions`  small files, growth by day, partitions that nobody touches
    `report`     a table's statistics as text and JSON
    `views`      in the shapes of other APIs
    `plot`       as a picture

Inside, three more questions: `filter_cost`, what a filter costs under each partition spec;
`lateness`, rows that came late; `retention`, what it would free.
"""
