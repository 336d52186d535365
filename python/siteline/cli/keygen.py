"""``siteline keygen``: makes a private key for an enrollment."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING

from siteline._escape import escaped
from siteline.cli.arguments import Commands, Options, add_command, add_options
from siteline.cli.output import Outcome, hint
from siteline.cli.passphrases import add_passphrase, passphrase_of
from siteline.errors import CredentialError

if TYPE_CHECKING:
    from siteline import PrivateKey


def add(commands: Commands) -> None:
    """Adds the command."""
    lost = "replace an existing file; an enrolled key that is lost cannot be recovered"
    made = add_command(
        commands,
        "keygen",
        _run,
        "Only you can read the file (mode 0600). An administrator enrolls the public half, which "
        "contains nothing secret, and returns a subject.",
        example="siteline keygen plant-a.pem --encrypt",
        options={"--overwrite": lost},
    )
    file = {"file FILE": "the file to create (%(default)s)"}
    add_options(made, file, nargs="?", default="siteline-key.pem")
    bits = {"--bits N": "the size of the RSA key: 2048, 3072 or 4096 (%(default)s)"}
    add_options(made, bits, choices=(2048, 3072, 4096), default=3072)
    add_passphrase(made)


def _run(options: Options) -> Outcome:
    from siteline import PrivateKey

    # save() checks it too, but only after the passphrase and the key, which takes seconds.
    if not options.overwrite and os.path.lexists(options.file):
        raise CredentialError(
            f'"{options.file}" exists already, and a lost enrolled key cannot be recovered.',
            hint="Choose another name, or pass --overwrite.",
        )
    passphrase = passphrase_of(options)
    key = PrivateKey.generate(options.bits)
    key.save(options.file, passphrase=passphrase, overwrite=options.overwrite)
    hint(
        "Next: have an administrator enroll the JWK. With the subject that this returns, type:\n"
        "  siteline profile init plant-a --base-url URL --subject SUBJECT --private-key-file "
        f"{shlex.quote(options.file)}"
    )
    return _outcome(options.file, key, passphrase is not None)


def _outcome(path: str, key: PrivateKey, encrypted: bool) -> Outcome:
    jwk = key.public_jwk
    members = {
        "path": path,
        "kid": key.thumbprint,
        "public_jwk": jwk,
        "encrypted": encrypted,
        "bits": key.bits,
    }
    states = ["encrypted" if encrypted else "not encrypted"]
    if os.name == "posix":  # elsewhere the access control list of the folder decides
        states.append("only you can read it")
    text = (
        f"{escaped(path)}: RSA, {key.bits} bits, {', '.join(states)}\n"
        f"kid (thumbprint): {key.thumbprint}\n"
        f"The public JWK to enroll:\n{json.dumps(jwk, indent=2)}"
    )
    return Outcome(members, text)
