"""Where a request points: the document, the place in it, and whether anybody may read it."""

from __future__ import annotations

from haversack import uris
from haversack.fim.nouns import Cursor, FimRequest
from haversack.types import Document, FileText, HaversackError, InvalidRequest
from haversack.workspace import Workspace
from haversack_index.languages import language_of

# Documents of editors that are no source: what a program printed, other versions of a file, parts of a chat.
NO_SOURCE = frozenset(
    {"output", "git", "debug", "vscode-chat-code-block", "vscode-userdata", "comment", "search-editor"}
)


def cursor_of(request: FimRequest, workspace: Workspace) -> Cursor:
    """The cursor, moved to the nearest place before it that exists. Blocks.

    Raises `document_not_open` for a document that no editor has open, `document_not_source` for one that is no source,
    and `document_withheld` for one that the reader may not have.
    """
    document = _document(request, workspace)
    file = _read(document, workspace)
    if request.position.line < 0 or request.position.character < 0:
        raise InvalidRequest("`position` is before the start of the document.", "Lines and columns begin at 0.")
    line, column = _clamped(file, request.position.line, request.position.character)
    head = file.lines[0] if file.lines else ""
    language = document.language or language_of(document.path or _name(document.uri), head) or "text"
    return Cursor(document.uri, file, line, column, language)


def _document(request: FimRequest, workspace: Workspace) -> Document:
    scheme = uris.scheme_of(request.uri)
    if scheme in NO_SOURCE:
        raise HaversackError("document_not_source", f"A {scheme} document is no source to complete.")
    document = workspace.document(request.uri)
    if document is None:
        raise HaversackError(
            "document_not_open",
            "The document to complete is not open, or is another tenant's.",
            "Send textDocument/didOpen first.",
        )
    return document


def _read(document: Document, workspace: Workspace) -> FileText:
    inside = document.folder is not None and document.path is not None
    folder, path = (document.folder or "", document.path or "") if inside else ("", document.uri)
    file = workspace.read(folder, path)
    if file is None:
        raise HaversackError(
            "document_withheld",
            "The policy keeps this document from agents.",
            "Take it off the policy's lists of privileged and strategy documents.",
        )
    return file


def _clamped(file: FileText, line: int, column: int) -> tuple[int, int]:
    lines = file.lines
    if line >= len(lines):
        if not lines or lines[-1].endswith(("\n", "\r")):
            return len(lines), 0
        return len(lines) - 1, len(lines[-1])
    return line, min(column, len(lines[line].rstrip("\r\n")))


def _name(uri: str) -> str:
    return uri.rsplit("/", 1)[-1].rsplit(":", 1)[-1]
