"""Brings the packages of sources.tsv through their registries' ordinary clients and cuts them into pairs.

    python collect.py FOLDER [DEBIAN_SOURCES_LIST]

Writes FOLDER/train.jsonl and FOLDER/dev.jsonl. Needs pip, npm, apt-get and dpkg-deb; DEBIAN_SOURCES_LIST is a
file with a `deb-src` line for Debian 12. Nothing of a package is run; one that can't be had is named and left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import asdict
from pathlib import Path

from pairs import pairs_of

SOURCES = Path(__file__).with_name("sources.tsv")


def main(folder: str, sources_list: str = "/etc/apt/sources.list") -> None:
    root = Path(folder).resolve()
    root.mkdir(parents=True, exist_ok=True)
    files = {use: (root / f"{use}.jsonl").open("w", encoding="utf-8") for use in ("train", "dev")}
    seen: set[str] = set()
    for line in SOURCES.read_text(encoding="utf-8").split("\n")[1:-1]:
        registry, package, version, _, use, inside = [*line.split("\t"), ""][:6]
        target = root / registry / package.replace("/", "-")
        count = 0
        try:
            if not target.exists():
                bring(registry, package, version, target, sources_list)
            for pair in pairs_of(package, target / inside):
                if pair.query not in seen and pair.code not in seen:
                    seen.update((pair.query, pair.code))
                    files[use].write(json.dumps(asdict(pair)) + "\n")
                    count += 1
        except (subprocess.CalledProcessError, OSError) as error:
            print("missing", package, error, flush=True)
        print(package, count, flush=True)
    for file in files.values():
        file.close()


def bring(registry: str, package: str, version: str, target: Path, sources_list: str) -> None:
    """Downloads and unpacks one package below `target`."""
    work = target.with_name(target.name + ".part")
    work.mkdir(parents=True, exist_ok=True)
    match registry:
        case "pypi":
            _run(
                work,
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--only-binary",
                ":all:",
                f"{package}=={version}",
            )
            for wheel in work.glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(work / "x", [name for name in archive.namelist() if name.endswith(".py")])
        case "npm":
            _run(work, "npm", "pack", "--silent", "--ignore-scripts", f"{package}@{version}")
            _untar(work, "*.tgz")
        case "deb":
            _run(work, "apt-get", "download", "-q", f"{package}={version}")
            for file in work.glob("*.deb"):
                _run(work, "dpkg-deb", "-x", file.name, "x")
        case "deb-src":
            state = target.parent / ".lists"
            options = [f"Dir::Etc::sourcelist={sources_list}", "Dir::Etc::sourceparts=-", f"Dir::State::lists={state}"]
            flags = [part for option in options for part in ("-o", option)]
            if not state.exists():
                (state / "partial").mkdir(parents=True)
                _run(work, "apt-get", *flags, "update", "-q")
            _run(work, "apt-get", *flags, "source", "--download-only", "-q", f"{package}={version}")
            _untar(work, "*.orig.tar.*")
        case _:
            raise ValueError(f"unknown registry {registry!r}")
    (work / "x").rename(target)


def _untar(work: Path, pattern: str) -> None:
    for file in work.glob(pattern):
        if file.suffix != ".asc":
            with tarfile.open(file) as archive:
                archive.extractall(work / "x", filter="data")


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main(*sys.argv[1:])
