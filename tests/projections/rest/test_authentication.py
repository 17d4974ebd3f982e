"""Bearer tokens: stored as salted hashes; without them, programs of this machine alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.model.errors import InvalidInputError
from projections.rest.authentication import (
    RequestHead,
    TokenHash,
    add_token,
    authenticate_local_program,
    bearer_authentication,
    read_token_file,
)
from projections.rest.requests import RequestError
from tests.projections.rest.application import application, error_of


def head(**headers: str) -> RequestHead:
    return RequestHead(headers=headers)


def test_a_token_is_accepted_by_its_file_which_does_not_contain_it(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    ann, bob = add_token(path, "ann"), add_token(path, "bob")
    authenticate = bearer_authentication(read_token_file(path))

    assert authenticate(head(authorization=f"Bearer {ann}")).principal == "ann"
    assert authenticate(head(authorization=f"bearer {bob}")).principal == "bob"
    assert ann not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    # Equal tokens have different lines.
    assert TokenHash.of("ann", "x").line != TokenHash.of("ann", "x").line


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic x", "Bearer \udce9"]
)
def test_another_token_is_rejected(tmp_path: Path, header: str | None) -> None:
    add_token(tmp_path / "tokens", "ann")
    authenticate = bearer_authentication(read_token_file(tmp_path / "tokens"))

    with pytest.raises(RequestError) as error:
        authenticate(head() if header is None else head(authorization=header))
    assert error.value.status == 401


@pytest.mark.parametrize("text", ["", "# none\n", "ann zz zz\n", "ann aa\n", "ann aa bb cc\n"])
def test_a_file_without_tokens_is_rejected_without_its_lines(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokens").write_text(text)

    with pytest.raises(InvalidInputError, match="serve-token NAME") as error:
        read_token_file(tmp_path / "tokens")
    assert "zz" not in str(error.value)


@pytest.mark.parametrize("name", ["", "two words", "a\nb", "#a"])
def test_a_principal_has_a_name_of_one_word(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="one word"):
        add_token(tmp_path / "tokens", name)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8181",
        "localhost:8181",
        "localhost",
        "LOCALHOST",
        "Localhost.:8181",
        "127.0.0.1.:8181",
        "[::1]:8181",
        "[0:0:0:0:0:0:0:1]",
    ],
)
def test_programs_of_this_machine_need_no_token(host: str) -> None:
    assert authenticate_local_program(head(host=host)).principal is None


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8181"},
        {"host": "localhost.evil.example"},
        {"host": "localhost.."},
        {"host": "127.0.0.1:8181", "origin": "https://evil.example"},
        {"host": "127.0.0.1:8181", "origin": "null"},
        {},
    ],
)
def test_web_pages_cannot_use_a_server_without_tokens(headers: dict[str, str]) -> None:
    with pytest.raises(RequestError) as error:
        authenticate_local_program(head(**headers))
    assert error.value.status == 403


def test_requests_without_a_token_reach_health_alone(tmp_path: Path) -> None:
    authenticate = bearer_authentication((TokenHash.of("ann", "secret"),))
    with application(tmp_path / "lake", authenticate=authenticate) as app:
        answer = app.get("config")
        made = app.post("namespaces", {"namespace": ["shop"]})
        healths = [app.http.get(f"/{path}").status_code for path in ("health", "ready")]
        allowed = app.get("config", authorization="Bearer secret")

    assert error_of(answer)[:2] == error_of(made)[:2] == (401, "NotAuthorizedException")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert app.lake.databases() == []
    assert healths == [200, 200]
    assert allowed.status_code == 200
