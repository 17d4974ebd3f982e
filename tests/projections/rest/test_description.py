"""Requests drawn from Iceberg's published description of the protocol have the answers it lists.

The description is that of Iceberg 1.11.0, in tests/data/openapi, unchanged and under its licence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from projections.rest.iceberg.routes import ENDPOINTS
from tests.projections.rest.application import SCHEMA, Application, application

DESCRIPTION: Final = Path(__file__).parents[2] / "data/openapi/iceberg-rest-catalog-1.11.0.yaml"
EXAMPLES: Final = 8
PREFIX: Final = "/{prefix}"
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
_LATER: Final = {"/v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister"}
"""Endpoints that the description has only in a later version."""


def described() -> dict[str, Any]:
    """Return the description of a server without prefixes."""
    document: dict[str, Any] = msgspec.yaml.decode(DESCRIPTION.read_bytes())
    paths: dict[str, Any] = {}
    for path, item in document["paths"].items():
        kept = [each for each in item.get("parameters", []) if each != {"$ref": _PREFIX_PARAMETER}]
        paths[path.replace(PREFIX, "")] = {**item, "parameters": kept}
    # Its schema of some bodies contradicts their examples, and what its clients read.
    for item in (*paths.values(), {"every": document["components"]}):
        for operation in item.values():
            if isinstance(operation, dict):
                for response in operation.get("responses", {}).values():
                    _wrap_error(response)
    return {**document, "paths": paths, "servers": [{"url": "/"}]}


def _wrap_error(response: dict[str, Any]) -> None:
    for content in response.get("content", {}).values():
        if content.get("schema") == {"$ref": "#/components/schemas/ErrorModel"}:
            content["schema"] = {"$ref": "#/components/schemas/IcebergErrorResponse"}


_PREFIX_PARAMETER: Final = "#/components/parameters/prefix"
API: Final = schemathesis.openapi.from_dict(described())
ADVERTISED: Final = [
    (each.method, each.path.replace(PREFIX, "")) for each in ENDPOINTS if each.path not in _LATER
]
NAMES: Final = st.sampled_from(
    [{"namespace": "shop", "table": "orders"}, {"namespace": "shop"}, {}]
)
"""Names in a path: those of what exists, or none, so that drawn ones stay."""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    with application(tmp_path_factory.mktemp("described") / "lake") as served:
        yield served


def ensure_table(catalog: Application) -> None:
    """Create shop.orders where a request dropped or renamed it."""
    if catalog.head("namespaces/shop/tables/orders").status_code != 204:
        catalog.post("namespaces", {"namespace": ["shop"]})
        catalog.post("namespaces/shop/tables", {"name": "orders", "schema": SCHEMA})


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize(("method", "path"), ADVERTISED)
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
        ensure_table(catalog)
        case.path_parameters = {
            name: names.get(name, value) for name, value in case.path_parameters.items()
        }
        case.call_and_validate(base_url=str(catalog.http.base_url), checks=CHECKS)

    check()


@pytest.mark.parametrize("path", sorted({path for _, path in ADVERTISED}))
def test_other_methods_are_rejected_with_those_that_exist(catalog: Application, path: str) -> None:
    answer = catalog.http.request("PATCH", path)

    assert answer.status_code == 405
    assert {each for each, other in ADVERTISED if other == path} <= {
        each.strip() for each in answer.headers["allow"].split(",")
    }
