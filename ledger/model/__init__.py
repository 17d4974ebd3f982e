"""Values: types, schemas, partition specs, snapshots, file changes, errors."""
