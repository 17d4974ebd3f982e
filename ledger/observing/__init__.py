"""What programs that listen are told: lines through structlog, spans and metrics.

- `notices`: every line's name and keys, and how lines are told.
- `tracing`: every span and metric, through OpenTelemetry's API.
- `told`: what is told of a commit, and of a run that brings a format's files on.

Who does not listen pays for none of it.
"""
