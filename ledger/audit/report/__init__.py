"""One page for an auditor: a self-contained file that needs no network and runs no script.

- `facts`: what is on the page, from one pass over a log.
- `page`: the facts as HTML, by a template that escapes every text.
"""
