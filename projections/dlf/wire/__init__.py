"""The objects as JSON, in the DLF page's spelling and in Paimon's REST spelling.

Others may import:
    `reading`    JSON to objects, both spellings at once
    `rendering`  objects to JSON
    `keys`       the two spellings, every object that they know, and its keys in them

Inside: `document` finds what is wrong with JSON, `strict` casts nothing, `wrappers` unwraps.
"""
