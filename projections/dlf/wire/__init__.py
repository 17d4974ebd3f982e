"""The objects as JSON, in the DLF page's spelling and in Paimon's REST spelling.

Others may import:
    `reading`    JSON to objects, both spellings at once
    `rendering`  objects to JSON
    `keys`       the two spellings, and their keys
    `kinds`      every object that they know

Inside: `document` finds what is wrong with JSON, `strict` casts nothing, `wrappers` unwraps.
"""
