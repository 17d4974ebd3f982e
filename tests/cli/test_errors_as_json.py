"""With `--output json` whatever ends a command is one JSON object, too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ledger import SetOption
from ledger.cli import exits
from ledger.model import errors
from tests.cli.test_mistakes import MISTAKES

if TYPE_CHECKING:
    from tests.cli.conftest import Ran, Run


def error_object(ran: Ran) -> Any:
    assert ran.err.count("\n") == 1
    return json.loads(ran.err)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    # What says the time says another each time that it is asked.
    [each for each in MISTAKES if not {"--output", "yesterday"} & {*each[0]}],
    ids=lambda each: str(each)[:60],
)
def test_a_mistake_is_one_json_object_with_the_same_exit_code(
    shop: Run, line: list[str], code: int, said: str
) -> None:
    ran = shop(*line, "--output", "json")
    text = shop(*line)

    document = error_object(ran)
    assert (ran.code, ran.out) == (code, "")
    assert document["exitCode"] == code == text.code
    assert said in document["message"]
    assert text.err == f"lakeledger: {document['message']}\n"
    assert document["kind"]
    assert document["error"].endswith("Error")


@pytest.mark.parametrize("line", [["--output", "json", "show", "x.y"], ["show", "--output=json"]])
def test_the_option_is_found_at_any_position(run: Run, line: list[str]) -> None:
    assert error_object(run(*line))["exitCode"] == 2


def test_a_usage_error_says_so(run: Run) -> None:
    assert error_object(run("show", "--outptu", "x", "--output", "json"))["kind"] == "USAGE"


def test_an_option_behind_the_end_of_options_is_none(run: Run) -> None:
    assert run("lgo", "--", "--output=json").err.startswith("lakeledger: ")


def test_a_refusal_says_which_format_and_rule(shop: Run) -> None:
    document = error_object(shop("alter", "shop.orders", "--type", "id STRING", "--output", "json"))

    assert (document["error"], document["format"]) == ("FormatError", "iceberg")
    assert document["rule"]
    assert document["alternative"]


SAMPLES: list[tuple[Exception, dict[str, Any]]] = [
    (
        errors.CommitUnknownError("x", "key-1", 3),
        {"kind": "UNKNOWN", "exitCode": 5, "commitId": "key-1", "version": 3},
    ),
    (
        errors.CommitConflictError("x", "option a", 3, "bob", SetOption("a", "b")),
        {
            "kind": "CONFLICT",
            "exitCode": 4,
            "cell": "option a",
            "version": 3,
            "author": "bob",
            "winner": {"type": "setOption", "key": "a", "value": "b"},
        },
    ),
    (errors.DamagedLogError("x", "a.json"), {"kind": "DAMAGED", "exitCode": 6, "file": "a.json"}),
    (errors.ColumnNotFoundError("x"), {"kind": "COLUMN_NOT_EXIST", "exitCode": 1}),
    (errors.InvalidChangeError("x", "RUNTIME"), {"kind": "RUNTIME", "exitCode": 1}),
    (OSError("disk"), {"kind": "STORE", "exitCode": 8, "message": "the store failed: disk"}),
    (exits.UsageError("x"), {"kind": "USAGE", "exitCode": 2}),
]


@pytest.mark.parametrize(("error", "facts"), SAMPLES, ids=lambda each: type(each).__name__)
def test_an_error_object_holds_the_attributes_of_the_error(
    capsys: pytest.CaptureFixture[str], error: Exception, facts: dict[str, Any]
) -> None:
    code = exits.report_error(error, ["show", "--output", "json"])

    document = json.loads(capsys.readouterr().err)
    assert document == {"error": type(error).__name__, "message": "x", **facts}
    assert document["exitCode"] == code


def test_an_interruption_is_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert exits.interrupted(["log", "--output", "json"]) == 130
    assert json.loads(capsys.readouterr().err)["kind"] == "INTERRUPTED"
