"""What lines do not hold, so that it can be erased: they name files beside the log that say it.

Others may import:

- `commit_texts`: authors, messages and properties.
- `column_values`: values of personal columns.
- `erasable`: files that something can be taken out of for ever.
"""
