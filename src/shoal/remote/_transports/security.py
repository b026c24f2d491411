"""TLS contexts for servers and clients, with or without client certificates."""

from __future__ import annotations

import ssl
from pathlib import Path

__all__ = ["TLS", "client_context", "server_context"]

TLS = ssl.SSLContext | tuple[str | Path, ...]
"""An SSL context, or files: (certificate, key) or (certificate, key, authority)."""


def server_context(tls: TLS) -> ssl.SSLContext:
    """Return the context of a server; with an authority, clients must present a certificate."""
    if isinstance(tls, ssl.SSLContext):
        return tls
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate, key, authority = _files(tls)
    context.load_cert_chain(certificate, key)
    if authority is not None:
        context.load_verify_locations(authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(tls: TLS | str | Path | None) -> ssl.SSLContext:
    """Return the context of a client; by default it trusts the authorities of the system.

    Args:
        tls: A context; the certificate file of an authority to trust instead; or the files
            (certificate, key, authority) of a client that must authenticate.
    """
    if isinstance(tls, ssl.SSLContext):
        return tls
    if tls is None:
        return ssl.create_default_context()
    if isinstance(tls, str | Path):
        if not Path(tls).is_file():
            raise FileNotFoundError(f"tls: there is no file {tls}")
        return ssl.create_default_context(cafile=str(tls))
    certificate, key, authority = _files(tls)
    context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    context.load_cert_chain(certificate, key)
    return context


def _files(tls: tuple[str | Path, ...]) -> tuple[str | Path, str | Path, str | Path | None]:
    for file in tls:
        if not Path(file).is_file():
            raise FileNotFoundError(f"tls: there is no file {file}")
    if len(tls) == 2:
        return tls[0], tls[1], None
    if len(tls) == 3:
        return tls[0], tls[1], tls[2]
    raise ValueError(
        f"tls must be (certificate, key) or (certificate, key, authority), got {tls!r}"
    )
