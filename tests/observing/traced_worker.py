"""The spans and metrics of commits and projections in OpenTelemetry's memory exporters, as JSON.

In a process of its own, since providers are set once in each.
"""

from __future__ import annotations

import json
import sys

from opentelemetry import trace
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.observing.happenings import race, unknown

spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
tracing = TracerProvider()
tracing.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(tracing)
set_meter_provider(MeterProvider([reader]))

with trace.get_tracer("job").start_as_current_span("nightly"):
    table = race()
    unknown()
    table.project("iceberg")

data = reader.get_metrics_data()
assert data is not None
metrics = [
    metric
    for resource in data.resource_metrics
    for scope in resource.scope_metrics
    for metric in scope.metrics
]
sys.stdout.write(
    json.dumps(
        {
            "spans": [json.loads(each.to_json()) for each in spans.get_finished_spans()],
            "metrics": [json.loads(each.to_json()) for each in metrics],
        }
    )
)
