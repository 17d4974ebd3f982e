"""Stores in the buckets of S3 and compatibles, Google Cloud Storage, Azure.

Others may import:

- `object_store`: `ObjectStore`, and the test that it makes of a bucket before it writes.
- `services`: which object stores and clients there are, and where a URL's root is.
- `storage_options`: one dictionary of options for every library.
- `answers`: what a client's exception means.
- `first_answer`: how soon a person learns that nobody answers.

Inside are `bucket`, the requests through fsspec, and `obstore_bucket`, the same through obstore.
"""
