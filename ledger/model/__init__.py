"""Values: data types, schema, identifiers, instants, partition specs, snapshots, files, errors.

Everything here is immutable and knows neither events, files on a store, nor any dialect.
`types` and `transforms` are rooms of their own, whose front doors hold what most others need.
"""
