"""Requests drawn from Paimon's published description of the API have the answers it lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from projections.rest.paimon.routes import ENDPOINTS
from tests.projections.rest.application import Application, application
from tests.projections.rest.paimon.described_api import (
    API,
    MOUNT,
    OPERATIONS,
    ensure_objects,
    validated,
)

EXAMPLES: Final = 8


def _can_be_malformed(operation: Mapping[str, Any]) -> bool:
    """Return whether a request can contradict its description: every text is a name or a filter."""
    parameters = operation.get("parameters", [])
    return "requestBody" in operation or any(
        each["schema"]["type"] != "string" for each in parameters
    )


CASES: Final = [
    (*each, mode)
    for each in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or _can_be_malformed(API[each[1]][each[0]].definition.raw)
]
NAMES: Final = st.sampled_from(
    [
        {
            "database": "shop",
            "table": "orders",
            "view": "newest",
            "function": "area",
            "tag": "first",
            "branch": "dev",
            "version": "LATEST",
        },
        {"database": "shop", "table": "orders$branch_dev", "version": "1"},
        {"database": "shop", "table": "orders"},
        {"database": "shop", "table": "native", "version": "LATEST"},
        {"database": "shop", "table": "iceberg", "version": "LATEST"},
        {"database": "shop"},
        {},
    ]
)
"""Names in a path: those of what exists, or none, so that drawn ones stay."""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    folder = tmp_path_factory.mktemp("described")
    storage = {f"file://{folder}": {"s3.endpoint": "http://127.0.0.1:1"}}
    with application(folder / "lake", storage=storage) as served:
        yield served


def test_the_endpoints_are_those_of_the_description() -> None:
    listed = {
        (method.upper(), path) for path, item in API.raw_schema["paths"].items() for method in item
    }

    assert {*OPERATIONS} == listed


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_answers_to_drawn_requests_are_those_of_the_description(
    catalog: Application, method: str, path: str, mode: GenerationMode
) -> None:
    @settings(
        max_examples=max(EXAMPLES, settings().max_examples // 10),
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=API[path][method].as_strategy(generation_mode=mode), names=NAMES)
    def check(case: schemathesis.Case[Any], names: Mapping[str, str]) -> None:
        ensure_objects(catalog)
        case.path_parameters = {
            name: names.get(name, value) for name, value in case.path_parameters.items()
        }
        validated(case, catalog)

    check()


@pytest.mark.parametrize("path", sorted({each.path for each in ENDPOINTS}))
def test_other_methods_are_rejected_with_those_that_exist(catalog: Application, path: str) -> None:
    answer = catalog.http.request("PATCH", f"{MOUNT}{path}")

    assert answer.status_code == 405
    assert {each.method for each in ENDPOINTS if each.path == path} <= {
        each.strip() for each in answer.headers["allow"].split(",")
    }
