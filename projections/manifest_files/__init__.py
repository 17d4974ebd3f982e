"""What the manifests of all formats share: Avro containers, and where a snapshot says what it did.

Others may import:
    `container`  Avro containers written and read
    `lists`      whether a snapshot's files stand in the ledger or in its engine's manifest lists

Inside: `codecs` unpack blocks, never further than allowed; `schema` knows which schemas are safe.
"""
