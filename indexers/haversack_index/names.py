"""What a file's or folder's name alone says about it, as data: each list has the reason for its entries above it.

All names are compared in lower case. A tool rule (`.haversackignore`) may bring back everything here but secrets and
`.git`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from haversack_index.types import SkipReason

# Folders that are installed or made by a tool whatever project they stand in; nobody writes code in them.
# Version control keeps its own copy of everything; node_modules and its kin hold other people's packages;
# the rest are caches that tools delete and make again.
ALWAYS_VENDORED = frozenset(
    {
        *(".git", ".hg", ".svn", ".bzr", ".jj", "cvs", "_darcs"),
        *("node_modules", "bower_components", "jspm_packages", "site-packages", "pods", "carthage"),
        *("__pycache__", "__pypackages__", ".venv", ".tox", ".nox", ".eggs"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints"),
        *(".gradle", ".terraform", ".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".turbo", ".dart_tool"),
        *(".yarn", ".pnpm-store", ".cargo", ".bundle", ".cache", ".idea", ".vs"),
    }
)

# The version control folder that must never be read: it holds every deleted secret.
NEVER = ".git"

# Folders whose names also stand for hand-written code (a build script folder, a compiler's target folder). They are
# taken for outputs only when one of these is there: a sibling that belongs to the tool, or a mark inside the folder.
# Git-ignored ones are skipped by git's rules before this is asked.
SIBLING_MARKS: dict[str, tuple[str, ...]] = {
    "target": ("Cargo.toml", "pom.xml", "build.sbt"),  # Rust, Maven and sbt build into it and keep no sources there
    "dist": ("package.json", "pyproject.toml", "setup.py"),  # what a bundler or a wheel builder packs
    "vendor": ("go.mod", "composer.json"),  # copies of dependencies, committed by custom
    "deps": ("mix.exs",),
    "_build": ("mix.exs", "dune-project", "conf.py"),
    "bin": (),  # often scripts: only a mark inside counts
    "obj": (),
    "out": (),
    "env": (),
    "venv": (),
    "build": ("build.gradle", "build.gradle.kts", "settings.gradle"),  # not package.json: many keep build scripts there
}
INNER_MARKS: dict[str, tuple[str, ...]] = {
    "target": ("CACHEDIR.TAG", ".rustc_info.json", "maven-status"),
    "dist": (),
    "vendor": ("modules.txt", "autoload.php", "bundle", "cache"),
    "deps": (),
    "_build": (),
    "bin": ("Debug", "Release"),
    "obj": ("project.assets.json", "Debug", "Release"),
    "out": ("CMakeCache.txt", "build.ninja", "_next"),
    "env": ("pyvenv.cfg", "conda-meta"),
    "venv": ("pyvenv.cfg", "conda-meta"),
    "build": ("CMakeCache.txt", "build.ninja", "CACHEDIR.TAG", "bdist.linux-x86_64", "intermediates"),
}

# Names under which people keep passwords, tokens and private keys. The text never leaves the disk by way of the index.
SECRET_NAMES = frozenset(
    {
        *(".env", ".envrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".netrc", "_netrc", ".pgpass", ".my.cnf"),
        *(".htpasswd", ".git-credentials", ".dockercfg", ".boto", ".s3cfg", ".vault-token", ".terraformrc"),
        *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
        *("credentials", "credentials.json", "client_secret.json", "service-account.json", "secrets.json"),
        *("secret.yml", "secret.yaml", "secret.json", "secret.toml", "secrets.yml", "secrets.yaml", "secrets.toml"),
        *("master.key", "terraform.tfstate", "terraform.tfvars"),
    }
)
# Containers of keys and certificates with their keys; state files of Terraform hold the secrets they were given.
SECRET_SUFFIXES = (
    *(".pem", ".p12", ".pfx", ".pkcs12", ".keystore", ".jks", ".kdbx", ".ppk", ".key", ".asc", ".gpg"),
    *(".tfstate", ".tfstate.backup", ".ovpn"),
)
# Names that people give such files with words of their own around: a Kubernetes secret (`db-secret.yaml`), what Google
# hands out for a service account, a client or a Firebase project. Whole words count: code and prose about secrets, in
# files of other kinds, are read.
_SECRET_PATTERN = re.compile(
    r"(?:.*[-_.])?secrets?(?:[-_.].*)?\.ya?ml"
    r"|(?:.*[-_.])?service[-_]?account(?:[-_.].*)?\.json"
    r"|client_secrets?(?:[-_.].*)?\.json"
    r"|(?:.*-)?firebase-adminsdk-.*\.json",
    re.DOTALL,
)
# Words that say of such a name that no secret is inside: a pattern to fill in, or one that only a cluster can open.
_HARMLESS_WORDS = frozenset({"example", "sample", "template", "defaults", "schema", "sealed", "external"})
# A file that shows which variables exist is written to be read: `.env.example` and its like hold no secret.
_SAMPLE_SUFFIXES = (".example", ".sample", ".template", ".dist", ".defaults", ".schema")

# Thousands of lines of versions and hashes that nobody wrote and no question is about.
LOCK_NAMES = frozenset(
    {
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"),
        *("poetry.lock", "pipfile.lock", "pdm.lock", "uv.lock", "pixi.lock", "conda-lock.yml"),
        *("cargo.lock", "go.sum", "go.work.sum", "gemfile.lock", "composer.lock", "mix.lock", "pubspec.lock"),
        *("podfile.lock", "package.resolved", "flake.lock", "deno.lock", "packages.lock.json", "gradle.lockfile"),
        *("cabal.project.freeze", "stack.yaml.lock", "manifest.toml.lock", ".terraform.lock.hcl", "module.bazel.lock"),
    }
)

# What minifiers and bundlers call their output.
MINIFIED_SUFFIXES = (".min.js", ".min.mjs", ".min.cjs", ".min.css", "-min.js", ".bundle.js", ".chunk.js")

# What code generators call theirs: source maps, protocol buffers, Dart, C#, Go string and mock generators, snapshots.
GENERATED_SUFFIXES = (
    *(".map", "_pb2.py", "_pb2.pyi", "_pb2_grpc.py", ".pb.go", ".pb.gw.go", ".pb.cc", ".pb.h", ".pb.swift"),
    *("_pb.js", "_pb.d.ts", "_pb.ts", "_grpc_pb.js", ".pbjson.dart", ".pb.dart", ".pbenum.dart"),
    *(".g.dart", ".freezed.dart", ".gr.dart", ".mocks.dart"),
    *(".designer.cs", ".g.cs", ".g.i.cs", ".generated.cs", "_generated.go", ".gen.go", "_string.go.txt"),
    *(".generated.ts", ".generated.js", ".gen.ts", ".snap"),
)


def is_secret(name: str) -> bool:
    """Whether a file of this name is expected to hold secrets."""
    low = name.lower()
    if low.startswith(".env.") or low.endswith(".env"):
        return not low.endswith(_SAMPLE_SUFFIXES)
    if low in SECRET_NAMES or low.endswith(SECRET_SUFFIXES):
        return True
    return bool(_SECRET_PATTERN.fullmatch(low)) and _HARMLESS_WORDS.isdisjoint(re.split(r"[-_.]", low))


def file_reason(name: str) -> SkipReason | None:
    """Why a regular file of this name is skipped: locks, minified and generated files."""
    low = name.lower()
    if low in LOCK_NAMES:
        return SkipReason.LOCK_FILE
    if low.endswith(MINIFIED_SUFFIXES):
        return SkipReason.MINIFIED
    if low.endswith(GENERATED_SUFFIXES):
        return SkipReason.GENERATED
    return None


def vendored_mark(name: str, sibling: Callable[[str], bool], inner: Callable[[str], bool]) -> str | None:
    """What shows that the folder `name` holds dependencies or outputs; None when nothing does.

    `sibling(x)` and `inner(x)` tell whether `x` exists next to the folder, or in it.
    """
    low = name.lower()
    if low in ALWAYS_VENDORED or low.endswith((".egg-info", ".dist-info")):
        return f"folder name {name}"
    for mark in SIBLING_MARKS.get(low, ()):
        if sibling(mark):
            return f"folder name {name} next to {mark}"
    for mark in INNER_MARKS.get(low, ()):
        if inner(mark):
            return f"folder name {name} with {mark}"
    return None
