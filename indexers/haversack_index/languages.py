"""Which language a file is written in, told by its name or its first line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Language:
    """`grammar` is the grammar's name in the language pack, empty when files are cut by lines or headings."""

    name: str
    extensions: tuple[str, ...] = ()
    filenames: tuple[str, ...] = ()
    shebangs: tuple[str, ...] = ()
    comment: str = "#"
    grammar: str = ""


# One row a language. Extensions are lower case and without the dot.
_ROWS: tuple[Language, ...] = (
    Language("python", ("py", "pyi", "pyw"), ("SConstruct", "SConscript", "wscript"), ("python",), "#", "python"),
    Language(
        "javascript", ("js", "jsx", "mjs", "cjs", "es6"), ("Jakefile",), ("node", "deno", "bun"), "//", "javascript"
    ),
    Language("typescript", ("ts", "mts", "cts"), (), ("ts-node", "tsx"), "//", "typescript"),
    Language("tsx", ("tsx",), (), (), "//", "tsx"),
    Language("go", ("go",), (), (), "//", "go"),
    Language("rust", ("rs",), (), ("rust-script",), "//", "rust"),
    Language("java", ("java",), (), (), "//", "java"),
    Language("c", ("c", "h"), (), (), "//", "c"),
    Language(
        "cpp",
        ("cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "ipp", "inl", "tpp", "cu", "cuh", "ino"),
        (),
        (),
        "//",
        "cpp",
    ),
    Language("csharp", ("cs", "csx"), (), (), "//", "csharp"),
    Language(
        "ruby",
        ("rb", "rake", "gemspec", "ru"),
        ("Rakefile", "Gemfile", "Guardfile", "Vagrantfile", "Podfile", "Fastfile", "Brewfile"),
        ("ruby",),
        "#",
        "ruby",
    ),
    Language("php", ("php", "phtml", "php5", "inc"), (), ("php",), "//", "php"),
    Language("kotlin", ("kt", "kts"), (), (), "//", "kotlin"),
    Language("swift", ("swift",), (), (), "//", "swift"),
    Language(
        "bash",
        ("sh", "bash", "zsh", "ksh", "bats", "ebuild"),
        (".bashrc", ".bash_profile", ".profile", ".zshrc", "PKGBUILD"),
        ("sh", "bash", "zsh", "dash", "ksh", "ash"),
        "#",
        "bash",
    ),
    Language("lua", ("lua",), (), ("lua", "luajit"), "--", "lua"),
    Language("markdown", ("md", "markdown", "mdown", "mkd", "mdx"), ("README", "CHANGELOG"), (), ""),
    Language("rst", ("rst", "rest"), (), (), ".."),
    Language(
        "json", ("json", "jsonc", "json5", "ipynb", "webmanifest", "geojson"), (".babelrc", ".eslintrc"), (), "//"
    ),
    Language("toml", ("toml",), ("Pipfile",), (), "#"),
    Language("yaml", ("yaml", "yml"), (".clang-format", ".clang-tidy"), (), "#"),
    Language("html", ("html", "htm", "xhtml"), (), (), "<!--"),
    Language("css", ("css", "scss", "less"), (), (), "/*"),
    Language(
        "ini", ("ini", "cfg", "conf", "properties"), (".editorconfig", ".gitconfig", ".flake8", ".pylintrc"), (), "#"
    ),
    Language("xml", ("xml", "xsd", "xsl", "xslt", "svg", "csproj", "props", "targets", "plist"), (), (), "<!--"),
    Language("vue", ("vue",), (), (), "<!--"),
    Language("svelte", ("svelte",), (), (), "<!--"),
    Language("scala", ("scala", "sc", "sbt"), (), ("scala",), "//"),
    Language("sql", ("sql", "ddl", "psql"), (), (), "--"),
    Language("make", ("mk", "mak"), ("Makefile", "makefile", "GNUmakefile"), ("make",), "#"),
    Language("cmake", ("cmake",), ("CMakeLists.txt",), (), "#"),
    Language("dockerfile", ("dockerfile",), ("Dockerfile", "Containerfile"), (), "#"),
    Language("perl", ("pl", "pm", "t"), (), ("perl",), "#"),
    Language("r", ("r",), (), ("Rscript",), "#"),
    Language("dart", ("dart",), (), (), "//"),
    Language("elixir", ("ex", "exs"), (), ("elixir",), "#"),
    Language("erlang", ("erl", "hrl"), (), ("escript",), "%"),
    Language("haskell", ("hs", "lhs"), (), ("runhaskell",), "--"),
    Language("ocaml", ("ml", "mli"), (), ("ocaml",), "(*"),
    Language("clojure", ("clj", "cljs", "cljc", "edn"), (), (), ";"),
    Language("zig", ("zig",), (), (), "//"),
    Language("nim", ("nim", "nims"), (), (), "#"),
    Language("julia", ("jl",), (), ("julia",), "#"),
    Language("fish", ("fish",), (), ("fish",), "#"),
    Language("powershell", ("ps1", "psm1", "psd1"), (), ("pwsh",), "#"),
    Language("groovy", ("groovy", "gradle"), ("Jenkinsfile",), ("groovy",), "//"),
    Language("objc", ("m", "mm"), (), (), "//"),
    Language("protobuf", ("proto",), (), (), "//"),
    Language("graphql", ("graphql", "gql"), (), (), "#"),
    Language("terraform", ("tf", "tfvars", "hcl"), (), (), "#"),
    Language("emacs-lisp", ("el",), (), (), ";"),
    Language("vim", ("vim",), (".vimrc",), (), '"'),
    Language("tex", ("tex", "sty", "cls", "bib"), (), (), "%"),
    Language("text", ("txt", "text", "log"), ("LICENSE", "COPYING", "NOTICE", "AUTHORS"), (), ""),
)

LANGUAGES = MappingProxyType({row.name: row for row in _ROWS})

_BY_EXTENSION = {extension: row.name for row in _ROWS for extension in row.extensions}
_BY_FILENAME = {filename: row.name for row in _ROWS for filename in row.filenames}
_BY_SHEBANG = {shebang: row.name for row in _ROWS for shebang in row.shebangs}

# `#!/usr/bin/env -S FOO=1 python3.11 -u` names python: the program is the last path part, its version is cut off.
_SHEBANG = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+|\w+=\S*\s+)*(?:\S*/)?)?([A-Za-z+_-]+)")

# Editors' ids that differ from ours.
_EDITOR_IDS = MappingProxyType(
    {
        "javascriptreact": "javascript",
        "typescriptreact": "tsx",
        "shellscript": "bash",
        "sh": "bash",
        "c++": "cpp",
        "c_sharp": "csharp",
        "cs": "csharp",
        "jsonc": "json",
        "restructuredtext": "rst",
        "plaintext": "text",
    }
)


def language_of(path: str, first_line: str = "") -> str:
    """The language's name by file name, then extension, then shebang; "text" when nothing tells."""
    filename = path.rsplit("/", 1)[-1]
    if filename in _BY_FILENAME:
        return _BY_FILENAME[filename]
    stem, dot, extension = filename.rpartition(".")
    if dot and extension.lower() in _BY_EXTENSION:
        return _BY_EXTENSION[extension.lower()]
    if (stem or filename).startswith("Dockerfile"):
        return "dockerfile"
    if first_line.startswith("#!"):
        match = _SHEBANG.match(first_line)
        if match:
            return _BY_SHEBANG.get(match[1].rstrip("-"), "text")
    return "text"


def settle(language: str, path: str, text: str) -> str:
    """A header file serves two languages; its text tells which."""
    if language == "c" and path.lower().endswith(".h") and _CPP_WORDS.search(text):
        return "cpp"
    return language


_CPP_WORDS = re.compile(
    r"^\s*(?:class\s+\w+[^;]*$|namespace\s+[\w:]*\s*\{?\s*$|template\s*<|using\s+\w+\s*=|(?:public|private|protected)\s*:)|\bstd::",
    re.MULTILINE,
)


def canonical_name(language: str) -> str:
    """Our name for a language id that an editor sends; "text" when it is unknown."""
    name = _EDITOR_IDS.get(language.lower(), language.lower())
    return name if name in LANGUAGES else "text"


def grammar_of(language: str) -> str:
    """The grammar's name, empty when the language has none here."""
    row = LANGUAGES.get(language)
    return row.grammar if row else ""
