"""Decides what a message is about and what is to be gathered for it: same message, same plan; no model is asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from haversack.glossary import english_only, in_english
from haversack.mention_syntax import mentions_in
from haversack.types import Confidence, Intent, Mention, MentionKind, Plan, Request, Snapshot, Source
from haversack.vocabulary import (
    BROAD,
    CATEGORIES,
    CHANGE_WORDS,
    CHANGES,
    CODE_WORDS,
    DOCS,
    GENERAL,
    INTENT_PHRASES,
    INTENT_WORDS,
    PRACTICAL,
    SMALL_TALK,
    SMALL_TALK_KEYS,
    SMALL_TALK_PHRASES,
    TESTS,
    WORLD,
)
from haversack_index.lexical import STOP_WORDS, stem

# The part of a message that is read word by word; what follows is pasted text, of which only names count.
FULLY_READ = 4_000
# Of pasted text, names are taken from this much.
READ_FOR_NAMES = 40_000
# More words make every search hit everything.
MOST_TERMS = 40
MOST_NAMES = 40
# Messages longer than this are not small talk or a general question, whatever words they hold.
LONGEST_TALK = 12
LONGEST_GENERAL = 25
# What the user points at may take this much longer than what is only likely to help: without it the answer is wrong.
NAMED_PATIENCE = 2
# What is asked for stands in the beginning of the first line; patterns that look further cost its square.
LONGEST_REQUEST = 300
# Shorter words are too close to too many others for a slip to be told.
SHORTEST_SLIP = 6


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


Seen = Callable[[Sequence[str]], bool]

# Each pattern below can start once in a run of its own characters, never at every one of them: on pasted text the
# difference is one pass against the square of its length.
_COMMAND = re.compile(r"^\s*/([a-z]+)\b\s*")
_COMMANDS = {intent.value: intent for intent in Intent} | {
    "summarise": Intent.SUMMARIZE,
    "summary": Intent.SUMMARIZE,
    "fix": Intent.EDIT,
    "ask": Intent.CHAT,
    "explain": Intent.CHAT,
}
# Lines and pieces that a commit message carries for machines.
_MACHINE_LINES = re.compile(
    r"^(?:[\w-]+-by: .*|change-id: .*|git-svn-id: .*|-{3,}|={3,}"
    r"|[ \t]*(?:[*-][ \t]*)?merge (?:branch|pull request|remote).*)$",
    re.IGNORECASE | re.MULTILINE,
)
_NOISE = re.compile(
    r"\bhttps?://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.]+|(?<![\w/])#\d+\b|\bGH-\d+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b"
)
_PATH = re.compile(
    r"(?<![\w/.@+~-])(?:\.{0,2}/)?(?:[\w.@+~-]+/)+[\w.@+~-]*"  # with a slash
    r"|(?<![\w/.@+~-])\.?[\w@+~-]+(?:\.[\w-]+)*\.\w{1,10}(?![\w(])"  # name.ending
)
_EXTENSIONS = _listed(
    "py pyi js jsx mjs cjs ts tsx mts cts go rs java kt kts c h cc cpp cxx hpp hh cs rb php swift sh bash zsh "
    "lua md rst txt adoc json jsonc toml yaml yml html htm css scss less vue svelte sql proto graphql xml "
    "gradle cfg ini conf lock ipynb r jl scala ex exs erl hs ml clj dart zig nix tf mk cmake bat ps1 y l am "
    "ac in test jq snap env"
)
# Words joined by one slash that are no path.
_SLASHED = re.compile(
    r"^(?:\w{1,3}/\w{1,3}|and/or|either/or|input/output|read/write|true/false|yes/no|client/server|\d+/\d+)$",
    re.IGNORECASE,
)
_CODE_NAME = re.compile(
    r"(?<![\w$/@])[A-Za-z_$][\w$]*(?:(?:\.|::|->|#)[A-Za-z_$][\w$]*)+(?:\(\))?"  # a.b, A::b, a->b
    r"|(?<![\w$/@])[A-Za-z_$][\w$]*\(\)?"  # call(
    r"|(?<![\w/@])(?:[A-Za-z]\w*_\w+|_+[A-Za-z]\w*)"  # snake_case, _private
    r"|(?<![\w/@])[a-z]+[0-9]*[A-Z]\w*"  # camelCase
    r"|(?<![\w/@])[A-Z][a-z0-9]+[A-Z]\w*"  # PascalCase
    r"|(?<![\w/@])[A-Z]{2,}[a-z]{2,}\w*"  # HTTPServer
)
_QUOTED_NAME = re.compile(r"`([^`\n]{1,80})`")
_IDENTIFIER = re.compile(r"^[A-Za-z_$][\w$]*(?:(?:\.|::|->|#)[A-Za-z_$][\w$]*)*(?:\(\))?$")
_WORD = re.compile(r"[^\W_](?:[\w+#'’-]*[\w+#])?")
# The head of a commit message by the common convention: `fix(parser): ...`.
_CHANGE_HEADER = re.compile(r"(?:feat|fix|perf|refactor|build|ci|chore|docs|style|test|revert)(?:\([^)]*\))?!?: ")
# The lines of a mention are a place, not words.
_MENTIONED_LINES = re.compile(r"(?<=[\w\"'])[:#]L?\d+(?:-L?\d+)?\b")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
# Brand names written like code.
_NO_CODE_NAMES = _listed("GitHub GitLab JavaScript TypeScript iOS macOS OpenAPI GraphQL README e.g i.e")
_POLITE = _listed(
    "please can could would you pls kindly let lets let's us now then also just to i we want need d'like like "
    "help me and should must have got i'd we'd"
)
_ABOUT_THIS = re.compile(
    r"\b(?:this|these|our|my) (?:\w+ )?"
    r"(?:code|file|function|class|method|module|project|repo|test|error|bug|app|package|change)s?\b"
    r"|\b(?:here|in the (?:code|repo|project|codebase))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Read:
    """What a message holds, read once."""

    text: str  # without what it carries for machines
    words: tuple[str, ...]
    stems: tuple[str, ...]
    paths: tuple[str, ...]
    identifiers: tuple[str, ...]
    mentions: tuple[Mention, ...]
    categories: tuple[str, ...]
    intent: Intent
    command: str


def classify(request: Request, snapshot: Snapshot, seen: Seen) -> Plan:
    """The plan for a request. `seen(words)` tells whether the index holds any of the words by name."""
    read = _read(request)
    codebase, confidence, reason = _judge(request, read, seen)
    named = read.identifiers or read.paths
    written = read.text[:FULLY_READ].strip()
    first_line = written.split("\n", 1)[0][:LONGEST_REQUEST]
    is_practical = codebase and not named and bool(PRACTICAL.search(first_line))
    english = in_english(read.words)
    terms = _terms(read, english)
    changes = codebase and _is_about_changes(request, read, terms)
    # A question without a word to search for ("what is this?") asks about whatever is at hand: the project, if nothing.
    is_vague = not terms and not read.mentions and request.active is None and not changes
    is_broad = codebase and not named and not is_practical and (is_vague or bool(BROAD.search(written)))
    return Plan(
        request=request,
        codebase=codebase,
        broad=is_broad and read.intent is not Intent.EDIT,
        intent=read.intent if codebase or read.command else Intent.CHAT,
        categories=read.categories,
        confidence=confidence,
        reason=reason,
        terms=terms,
        identifiers=read.identifiers,
        paths=read.paths,
        sources=_sources(
            codebase, request, snapshot, read.mentions, searched=not (changes and _says_only_change(terms))
        ),
        mentions=read.mentions,
        tests_wanted=not is_practical and bool(TESTS.search(first_line)),
        docs_wanted=is_practical or not DOCS.isdisjoint(stem(word.lower()) for word in _words(first_line)),
        practical=is_practical,
        changes=changes,
        search_text=english_only(terms, english),
    )


def _is_about_changes(request: Request, read: _Read, terms: Sequence[str]) -> bool:
    if any(mention.kind is MentionKind.DIFF for mention in read.mentions) or CHANGES.search(read.text[:FULLY_READ]):
        return True
    points_elsewhere = read.mentions or request.active is not None
    return read.intent is Intent.REVIEW and not points_elsewhere and (not terms or _says_only_change(terms))


def _says_only_change(terms: Sequence[str]) -> bool:
    """Whether the terms tell nothing of what the changes are about, so that a search for them finds noise."""
    return bool(terms) and all(stem(term.lower()) in CHANGE_WORDS for term in terms)


def _read(request: Request) -> _Read:
    match = _COMMAND.match(request.text)
    command = match[1] if match and match[1] in _COMMANDS else ""
    written = request.text[match.end() :] if match and command else request.text
    text = _NOISE.sub(" ", _MACHINE_LINES.sub("", written[:READ_FOR_NAMES]))
    words = tuple(_words(_MENTIONED_LINES.sub("", text[:FULLY_READ])))
    stems = tuple(stem(word.lower()) for word in words)
    paths = _paths(text)
    return _Read(
        text=text,
        words=words,
        stems=stems,
        paths=paths,
        identifiers=_identifiers(text, paths),
        mentions=tuple(dict.fromkeys((*request.mentions, *mentions_in(written)))),
        categories=_categories(stems),
        intent=request.intent or (_COMMANDS[command] if command else _intent(text)),
        command=request.intent.value if request.intent is not None else command,
    )


def _judge(request: Request, read: _Read, seen: Seen) -> tuple[bool, Confidence, str]:
    """Whether the project has to be read, how sure that is, and why. When in doubt it is read: that costs little."""
    if read.mentions:
        return True, Confidence.HIGH, f"you mention {read.mentions[0].value}"
    active = request.active
    if active is not None and active.selection is not None and active.selection.start != active.selection.end:
        return True, Confidence.HIGH, "you selected text"
    if read.command and read.intent is not Intent.CHAT:
        return True, Confidence.HIGH, f"the command /{read.command}"
    if not read.words:
        return False, Confidence.HIGH, "the message has no words to search for"
    if _is_small_talk(read):
        return False, Confidence.HIGH, "small talk"
    if read.paths or read.identifiers:
        return True, Confidence.HIGH, f"it names {(read.paths or read.identifiers)[0]}"
    subject = _general_subject(read)
    if subject is not None:
        if subject and seen(subject):
            return True, Confidence.MEDIUM, f"a general question, but the project knows {' '.join(subject[:3])}"
        return False, Confidence.MEDIUM, "general knowledge, nothing of the project is named"
    if _ABOUT_THIS.search(read.text):
        return True, Confidence.HIGH, "it speaks of the code at hand"
    if len(read.categories) >= 2:
        return True, Confidence.HIGH, f"it speaks of {read.categories[0]} and {read.categories[1]}"
    if read.categories:
        return True, Confidence.MEDIUM, f"it speaks of {read.categories[0]}"
    if read.intent is not Intent.CHAT:
        return True, Confidence.MEDIUM, f"it asks for work ({read.intent})"
    if not CODE_WORDS.isdisjoint(read.stems):
        return True, Confidence.MEDIUM, "it speaks of software"
    telling = [word for word in read.words if word.lower() not in STOP_WORDS]
    if telling and seen(telling):
        return True, Confidence.MEDIUM, "the project holds words of it"
    return True, Confidence.LOW, "nothing says that it is not about the project"


def _is_small_talk(read: _Read) -> bool:
    if SMALL_TALK_PHRASES.match(read.text.strip()):
        return True
    lowered = [word.lower() for word in read.words]
    return (
        len(lowered) <= LONGEST_TALK
        and all(word in SMALL_TALK for word in lowered)
        and any(word in SMALL_TALK_KEYS for word in lowered)
    )


def _general_subject(read: _Read) -> list[str] | None:
    """What a question of general knowledge asks about, [] when about nothing nameable; None for any other message."""
    if len(read.words) > LONGEST_GENERAL or _ABOUT_THIS.search(read.text):
        return None
    sentence = " ".join(read.text.split())
    matches = [match for pattern in GENERAL if (match := pattern.match(sentence))]
    if not matches:
        match = WORLD.match(sentence)
        if match is None or not CODE_WORDS.isdisjoint(read.stems):
            return None
        matches = [match]
    subject = matches[0]["subject"] or ""
    return [word for word in _words(subject) if word.lower() not in STOP_WORDS and len(word) > 1]


def _categories(stems: Sequence[str]) -> tuple[str, ...]:
    counts = Counter(name for word in dict.fromkeys(stems) for name in _categories_of(word))
    order = list(CATEGORIES)
    return tuple(sorted(counts, key=lambda name: (-counts[name], order.index(name))))


@lru_cache(maxsize=8_192)
def _categories_of(word: str) -> tuple[str, ...]:
    return tuple(name for name, known in CATEGORIES.items() if any(_means(word, each) for each in known))


def _intent(text: str) -> Intent:
    lowered = " ".join(text[:FULLY_READ].lower().split())
    for intent, pattern in INTENT_PHRASES:
        if pattern.search(lowered):
            return intent
    if any(stem(word) == stem("tldr") for word in lowered.split()[:3]):
        return Intent.SUMMARIZE
    if _CHANGE_HEADER.match(lowered):
        return Intent.EDIT
    # The word in the place of an order: first in the message or in one of its first sentences, after polite words.
    # A commit's scope (`parser: allow ...`) stands before it.
    for sentence in re.split(r"[.!?;\n]\s+|\n|,\s+(?:and|then)\s+", text[:FULLY_READ].strip())[:3]:
        body = re.sub(r"^[\w./()*-]{1,30}!?:\s+", "", sentence.strip(" *-#\t"))
        # A question word in that place is no order, so questions need no rule of their own.
        order = next((word.lower() for word in _words(body) if word.lower() not in _POLITE), "")
        for intent, vocabulary in INTENT_WORDS.items():
            if any(_means(stem(order), known) for known in vocabulary):
                return intent
    return Intent.CHAT


def _means(word: str, known: str) -> bool:
    return word == known or (len(word) >= SHORTEST_SLIP and len(known) >= SHORTEST_SLIP - 1 and is_slip(word, known))


def is_slip(word: str, other: str) -> bool:
    """Whether two words differ by one typing slip: one letter more, less, other, or two swapped.

    The first letter must agree: `preview` is not a slip for `review`.
    """
    if not word or not other or word[0] != other[0] or abs(len(word) - len(other)) > 1:
        return False
    short, long = sorted((word, other), key=len)
    start = next((i for i, letter in enumerate(short) if letter != long[i]), len(short))
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    is_swapped = short[start : start + 2] == long[start : start + 2][::-1] and short[start + 2 :] == long[start + 2 :]
    return is_swapped or short[start + 1 :] == long[start + 1 :]


def _paths(text: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for match in _PATH.finditer(text):
        word = match.group().rstrip(".,:;")
        # `@src/a.py` is a mention of a path; `@scope/package` has no file's ending.
        if word.startswith("@") and (word.endswith("/") or word.rsplit(".", 1)[-1].lower() in _EXTENSIONS):
            word = word[1:]
        ending = word.rsplit(".", 1)[-1].lower() if "." in word else ""
        if "/" in word:
            is_path = ending in _EXTENSIONS or word.count("/") > 1 or not _SLASHED.match(word)
        else:
            is_path = ending in _EXTENSIONS and not word[0].isdigit()
        if is_path and len(word) > 2:
            found[word] = None
    return tuple(found)[:MOST_NAMES]


def _identifiers(text: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for match in _QUOTED_NAME.finditer(text):
        if _IDENTIFIER.match(match[1]) and match[1] not in paths:
            found[match[1]] = None
    without_paths = text
    for path in paths:
        without_paths = without_paths.replace(path, " ")
    for match in _CODE_NAME.finditer(without_paths):
        name = match.group().rstrip("(").removesuffix("()").removesuffix("(")
        if name not in _NO_CODE_NAMES and len(name) > 1 and not name.isdigit():
            found[name] = None
    return tuple(found)[:MOST_NAMES]


def _words(text: str) -> list[str]:
    """Words as written; runs of scripts without blanks come apart from what they are glued to."""
    spaced = _UNSPACED.sub(lambda match: f" {match.group()} ", text)
    return _WORD.findall(spaced)


def _terms(read: _Read, english: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Search words, most telling first: paths and names as written, then the other words in their order.

    Where a question is in another language, the words of code come before its own, and its function words stay out.
    """
    found: dict[str, None] = dict.fromkeys((*read.paths, *read.identifiers))
    parts = {part for path in read.paths for part in _words(path)}
    for word in read.words:
        found.update(dict.fromkeys(english.get(word, ())))
    for word in read.words:
        if word in english and not english[word]:
            continue
        if _UNSPACED.search(word):
            found[word] = None
            if len(word) > 2:
                found.update(dict.fromkeys(word[start : start + 2] for start in range(len(word) - 1)))
            continue
        plain = word.replace("’", "'").removesuffix("'s")
        is_word = len(plain) > 1 or not plain.isascii()
        if is_word and plain.lower() not in STOP_WORDS and plain not in parts:
            found[plain] = None
    once: dict[str, str] = {}
    for term in found:
        once.setdefault(term.lower(), term)
    return tuple(once.values())[:MOST_TERMS]


def _sources(
    codebase: bool, request: Request, snapshot: Snapshot, mentions: tuple[Mention, ...], *, searched: bool
) -> tuple[tuple[Source, float], ...]:
    deadline = snapshot.settings.source_deadline_ms / 1_000
    rules = [Source.RULES] if snapshot.trusted and snapshot.settings.rules_enabled and not request.document else []
    supplied = [*rules, *([Source.SUPPLIED] if request.supplied else [])]
    if not codebase:
        return tuple((source, deadline) for source in (Source.KNOWLEDGE, *supplied))  # for rules among memories
    hybrid = [Source.HYBRID] if searched else []
    sources = [Source.SYMBOLS, *hybrid, Source.KNOWLEDGE, Source.DIFF, *supplied]
    if mentions or request.active is not None:
        sources.insert(0, Source.MENTIONS)
    if any(document.dirty for document in snapshot.documents.values()):
        sources.append(Source.EDITS)
    if snapshot.diagnostics or any(mention.kind is MentionKind.PROBLEMS for mention in mentions):
        sources.append(Source.DIAGNOSTICS)
    return tuple((each, deadline * (NAMED_PATIENCE if each is Source.MENTIONS else 1)) for each in sources)
