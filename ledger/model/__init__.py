"""Values: data types, schema, identifiers, instants, partition specs, snapshots, files, errors.

Everything here is immutable and knows neither events, files on a store, nor any dialect.

- `types`, `transforms`: rooms of their own, whose front doors hold what most others need.
- `iceberg`: Iceberg's own objects, for events, states, metadata files and updates.
- `schema`: what a table's and a view's columns are.
- `snapshot`, `file_change`: what a table holds; `tiles`: how a growing row of things is covered.
- `identifier`: a table's name; `path_text`: a column's path as text.
- `instant`: points to read at, and what a wrong clock left.
- `errors`: the whole tree, by what the caller should do; `messages`: what they and notebooks show.
- `arguments`: what a caller may pass in; `installed`: what other packages bring.
- `bounded`: files of foreign writers, read within limits.
- `arrow_arrays`: lists of values as Arrow arrays; `late`: what is worked out when it is asked for.
"""
