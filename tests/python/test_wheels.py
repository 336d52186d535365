"""What .ci makes of the sources for an index, and what it refuses in a wheel."""

import base64
import csv
import hashlib
import json
import random
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

import bill  # noqa: E402
import licences  # noqa: E402
import source  # noqa: E402
import try_wheels  # noqa: E402

PAGE = "https://git.example/plant/siteline"
README = (ROOT / "README.md").read_text(encoding="utf-8")
INFO = "siteline-1.0.0.dist-info"
LIBRARY = "siteline/_siteline.abi3.so"
MOMENT = (2026, 11, 24, 12, 0, 0)
BILL = {
    "serialNumber": "urn:uuid:5ac4",
    "metadata": {
        "timestamp": "2026-11-24T22:44:36.5Z",
        "component": {"bom-ref": f"path+file://{ROOT}#siteline@1.0.0"},
    },
}


@pytest.fixture
def wheel(tmp_path):
    """Makes a wheel of a library and a description, with what else is given."""

    def make(name="siteline-1.0.0-cp311-abi3-win_amd64.whl", **more):
        entries = {
            "siteline/_siteline.abi3.so": b"library",
            f"{INFO}/METADATA": b"Name: siteline\n\n[docs](https://git.example/docs)\n",
            f"{INFO}/RECORD": b"",
            f"{INFO}/sboms/siteline.cyclonedx.json": json.dumps(BILL).encode(),
            **{f"{INFO}/licenses/{name}": b"text" for name in ("LICENSE-MIT", "LICENSE-APACHE")},
            f"{INFO}/licenses/{source.THIRD_PARTIES}": b"text",
            **{name: data for name, data in more.items() if data is not None},
        }
        for gone in (name for name, data in more.items() if data is None):
            entries.pop(gone)
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as archive:
            for entry, data in entries.items():
                archive.writestr(entry, data)
        return path

    return make


def test_the_description_on_an_index_page_has_links_of_this_version_alone():
    text = source.for_an_index_page(README, PAGE, "v1.0.0")
    assert not try_wheels.RELATIVE.search(text)
    assert f"]({PAGE}/blob/v1.0.0/docs/sync.md)" in text
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert pictures == [f"{PAGE}/raw/v1.0.0/examples/coverage.svg"]
    assert (ROOT / "examples/coverage.svg").exists()
    assert text.count("](") == README.count("](")


def test_without_an_address_a_link_is_its_text_and_a_picture_is_left_out():
    text = source.for_an_index_page(README, "", "v1.0.0")
    assert not try_wheels.RELATIVE.search(text)
    assert "![" not in text
    assert "More: sync." in text
    assert try_wheels.BLOCK.search(text)[1] == try_wheels.BLOCK.search(README)[1]


def test_the_addresses_of_the_project_come_from_the_repository():
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    with_page = source.with_addresses(pyproject, f"{PAGE}/", "v1.0.0")
    assert f'Changelog = "{PAGE}/blob/v1.0.0/CHANGELOG.md"' in with_page
    for text in (with_page, source.with_addresses(pyproject, "", "v1.0.0")):
        assert source.THIRD_PARTIES in text
    with pytest.raises(ValueError, match="license-files"):
        source.with_addresses("[project]\n", PAGE, "v1.0.0")


def test_a_rewritten_wheel_names_no_folder_and_has_the_right_record(wheel):
    path = wheel()
    bill.rewrite(path, MOMENT)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
        assert {entry.date_time for entry in archive.infolist()} == {MOMENT}
        library = archive.getinfo("siteline/_siteline.abi3.so")
        assert library.external_attr >> 16 == 0o100755
    read = json.loads(entries[f"{INFO}/sboms/siteline.cyclonedx.json"])
    assert read == {
        "metadata": {
            "timestamp": "2026-11-24T12:00:00Z",
            "component": {"bom-ref": "path+file:///siteline#siteline@1.0.0"},
        }
    }
    record = f"{INFO}/RECORD"
    assert list(entries)[-1] == record
    rows = {row[0]: row[1:] for row in csv.reader(entries[record].decode().splitlines())}
    assert rows.pop(record) == ["", ""]
    assert rows.keys() == entries.keys() - {record}
    for name, (digest, size) in rows.items():
        code = base64.urlsafe_b64encode(hashlib.sha256(entries[name]).digest()).decode()
        assert (digest, size) == (f"sha256={code.rstrip('=')}", str(len(entries[name])))


def test_two_wheels_of_the_same_entries_are_the_same_bytes(wheel):
    library = {"siteline/_siteline.abi3.so": b"library"}
    paths = [wheel("a.whl"), wheel("b.whl", **dict(reversed(library.items())))]
    for path in paths:
        bill.rewrite(path, MOMENT)
    assert bill.differences(*paths) == []
    other = wheel("c.whl", **{"siteline/_siteline.abi3.so": b"another"})
    bill.rewrite(other, MOMENT)
    changed = {f"{INFO}/RECORD", "siteline/_siteline.abi3.so"}
    assert set(bill.differences(paths[0], other)) == changed


@pytest.mark.parametrize(
    ("entries", "trouble"),
    [
        ({"siteline/_siteline.abi3.so": f"in {ROOT}/src/lib.rs".encode()}, "names"),
        ({LIBRARY: b"None/home/ci/.cargo/registry/src/index-1949/rustls-0.23/src/x.rs"}, "rustls"),
        ({LIBRARY: b"/home/builder/siteline/src/lib.rs"}, "names /home/builder/siteline"),
        ({LIBRARY: b"/__w/siteline/aws-lc/crypto/mem.c"}, "names /__w/siteline/aws-lc"),
        ({LIBRARY: b"C:\\Users\\ada\\siteline\\src\\lib.rs"}, "names C:"),
        ({f"{INFO}/licenses/{source.THIRD_PARTIES}": None}, "is missing"),
        ({f"{INFO}/sboms/siteline.cyclonedx.json": None}, "bill of materials is missing"),
        ({f"{INFO}/METADATA": b"[docs](docs/sync.md)"}, "a relative link"),
        ({"siteline/big": random.Random(7).randbytes(8_000_000)}, "are more than 8"),
    ],
)
def test_a_wheel_with_something_wrong_is_refused(wheel, entries, trouble):
    bill.rewrite(right := wheel(), MOMENT)
    assert try_wheels.contents_of(right) == []
    bill.rewrite(wrong := wheel(**entries), MOMENT)
    (found,) = try_wheels.contents_of(wrong)
    assert trouble in found


def test_licences_are_taken_as_a_crate_brings_them(tmp_path):
    for name, text in {
        "LICENSE-MIT": "MIT, by Ada",
        "LICENSE-APACHE": "Apache",
        "src/license.rs": "no licence",
        "sqlite/COPYING": "of the C sources  \nin it",
        "sqlite/tests/LICENSE": "of what is not linked",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    assert licences.texts(tmp_path) == {
        "LICENSE-MIT": "MIT, by Ada",
        "sqlite/COPYING": "of the C sources\nin it",
    }
    (tmp_path / "LICENSE-MIT").unlink()
    assert licences.texts(tmp_path)["LICENSE-APACHE"] == "Apache"


def test_the_crates_in_the_library_are_listed_with_their_licences():
    text = licences.third_parties(ROOT)
    for line in ("- tokio 1", "- libsqlite3-sys 0", "- pyo3 0", "- windows-sys 0"):
        assert f"\n{line}" in text
    for unlinked in ("syn ", "proptest ", "cc ", "serde_derive "):
        assert f"\n- {unlinked}" not in text
    assert "OpenSSL" in text


def test_the_source_distribution_is_a_package_of_cargo_without_the_tests(tmp_path):
    staged = tmp_path / "source"
    source.stage(staged, PAGE)
    command = ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version=1"]
    done = subprocess.run(command, cwd=staged, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    packages = {one["name"]: one["targets"] for one in json.loads(done.stdout)["packages"]}
    assert [target["name"] for target in packages["siteline"]] == ["siteline"]
    assert {"siteline-base", "siteline-core", "siteline-sandbox"} < packages.keys()
    assert not {"tests", "benches", "docs"} & {path.name for path in staged.iterdir()}


def test_the_folders_that_replace_those_of_a_builder_are_none():
    for path in (
        "/crates/rustls-0.23.46/src/lib.rs",
        "/siteline/src/lib.rs",
        "/build/target/release/build/aws-lc-sys/out/x.c",
        "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/fmt/mod.rs",
        "src/http/trust.rs",
        "serde_core/src/private/mod.rs",
        "https://docs.rs and THTTPS://docs.rs",
    ):
        assert not try_wheels.SOURCE.findall(path.encode()), path


def test_the_licences_in_the_repository_are_those_of_the_lock():
    assert licences.outdated(ROOT) == ""
    text = (ROOT / licences.FILE).read_text(encoding="utf-8")
    for words in (
        "Redistribution and use in source and binary forms",  # BSD
        "Permission to use, copy, modify, and/or distribute this software for any",  # ISC
        "UNICODE LICENSE V3",
        "This software is provided 'as-is', without any express or implied",  # Zlib
        "Apache License",
        "Permission is hereby granted, free of charge",  # MIT
    ):
        assert words in text, words
    assert len(text) < 1_000_000


def test_a_build_from_the_sources_takes_the_licences_too():
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert licences.FILE in tomllib.load(file)["project"]["license-files"]


def test_a_wheel_that_is_missing_for_a_processor_is_said():
    names = ["siteline-1.0.0-cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"]
    wheels = [Path(name) for name in (*names, names[0].replace("cp311-abi3", "cp314-cp314t"))]
    assert try_wheels.of_processor(wheels, "x86_64") == wheels[0]
    with pytest.raises(ValueError, match="0 wheels for aarch64 in place of one: make wheels"):
        try_wheels.of_processor(wheels, "aarch64")
