"""Made-up conversations with facts planted in them, in three manners that share no sentence; the same seed, same text.

`pairing`: a person and a model talk in whole sentences, with tool results in between. `ticket`: terse notes of an
on-call shift, tools that print tables and logs, German now and then. `pages`: sentences of Python's own reference
pages, and parts of its library as tool results, which seldom come twice. About every second sentence of the filler
names paths, identifiers or numbers of its own, so that a fact cannot be told from the rest by its form.
"""

from __future__ import annotations

import json
import random
import re
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import talk_held_out

from haversack.types import Message, Role, ToolCall

# How many facts of each kind are planted; forty together. The first three name something that can be looked for.
KINDS = {"path": 8, "identifier": 8, "number": 8, "decision": 6, "constraint": 5, "plain": 5}
NAMED = ("path", "identifier", "number")


@dataclass(frozen=True)
class Fact:
    """`needles`: what a text must hold, in one line, to say it."""

    kind: str
    sentence: str
    needles: tuple[str, ...]

    def is_in(self, lines: Sequence[str]) -> bool:
        return any(all(needle in line for needle in self.needles) for line in lines)


@dataclass(frozen=True)
class Manner:
    facts: Mapping[str, Sequence[Callable[[random.Random, int], tuple[str, tuple[str, ...]]]]]
    user: Sequence[str]
    assistant: Sequence[str]
    tools: Sequence[str]
    output: Callable[[random.Random], str]
    words: Sequence[str]
    joints: Sequence[str] = (" ", " ", "\n", "\n\n")  # what stands between two sentences
    prose: Callable[[random.Random], str] | None = None  # a sentence of somebody's, in place of the patterns


WORDS = (
    *(
        "cache",
        "worker",
        "queue",
        "parser",
        "router",
        "token",
        "ledger",
        "invoice",
        "batch",
        "cursor",
        "shard",
    ),
    *(
        "mirror",
        "bucket",
        "tenant",
        "webhook",
        "planner",
        "scheduler",
        "renderer",
        "adapter",
        "gateway",
    ),
    *(
        "fixture",
        "snapshot",
        "migration",
        "retry",
        "backlog",
        "digest",
        "session",
        "profile",
        "banner",
    ),
    *(
        "payload",
        "registry",
        "pipeline",
        "reducer",
        "selector",
        "exporter",
        "importer",
        "locale",
        "tracker",
    ),
    *("beacon",),
)
GERMAN = (
    *(
        "Warteschlange",
        "Speicher",
        "Auftrag",
        "Rechnung",
        "Zeile",
        "Knoten",
        "Sitzung",
        "Anfrage",
        "Antwort",
    ),
    *(
        "Fehler",
        "Kunde",
        "Tabelle",
        "Grenze",
        "Puffer",
        "Abgleich",
        "Lauf",
        "Spiegel",
        "Paket",
        "Eintrag",
    ),
    *(
        "Zugriff",
        "Ablauf",
        "Schritt",
        "Zweig",
        "Stand",
    ),
)


def made(manner: str, count: Callable[[str], int], n_tokens: int, seed: int = 7) -> tuple[list[Message], list[Fact]]:
    """A conversation of about `n_tokens`, two fifths of them tool results, and its facts in order."""
    chance, how = random.Random(f"{manner}{seed}"), HELD_OUT[manner]
    facts = [_fact(how, kind, chance, at) for kind, n in KINDS.items() for at in range(n)]
    chance.shuffle(facts)
    messages: list[Message] = []
    said = tool = 0
    due = iter(facts)
    # None in the last part, which stays as it is whatever happens.
    places = iter(sorted(chance.uniform(0.01, 0.9) for _ in facts))
    place = next(places)
    while said + tool < n_tokens:
        planted: list[str] = []
        while place is not None and said + tool >= place * n_tokens:
            planted.append(next(due).sentence)
            place = next(places, None)
        by_user = chance.random() < 0.5
        for role in (Role.USER, Role.ASSISTANT):
            lines = list(_talk(how, role, chance))
            if planted and (role is Role.USER) is by_user:
                for sentence in planted:
                    lines.insert(chance.randint(0, len(lines)), sentence)
            text = "".join(line + chance.choice(how.joints) for line in lines).strip()
            said += count(text)
            messages.append(Message(role, text))
            if role is Role.USER:
                while tool < 0.7 * said:
                    id = f"call_{len(messages)}"
                    arguments = json.dumps({"path": _path(how, chance), "lines": chance.randint(20, 400)})
                    result = how.output(chance)
                    call = ToolCall(id, chance.choice(how.tools), arguments)
                    messages.append(Message(Role.ASSISTANT, "", (call,)))
                    messages.append(Message(Role.TOOL, result, tool_call_id=id))
                    tool += count(result)
    return messages, facts


def _fact(how: Manner, kind: str, chance: random.Random, at: int) -> Fact:
    makers = how.facts[kind]
    sentence, needles = makers[at % len(makers)](chance, at)
    return Fact(kind, sentence, needles)


def _talk(how: Manner, role: Role, chance: random.Random) -> Iterator[str]:
    patterns = how.user if role is Role.USER else how.assistant
    for _ in range(chance.randint(2, 6) if role is Role.USER else chance.randint(5, 16)):
        yield how.prose(chance) if how.prose else _filled(chance.choice(patterns), how, chance)


def _filled(pattern: str, how: Manner, chance: random.Random) -> str:
    text = pattern
    for mark, make in (("{p}", _path), ("{i}", _name), ("{n}", _number), ("{w}", _word)):
        while mark in text:
            text = text.replace(mark, make(how, chance), 1)
    return text


def _word(how: Manner, chance: random.Random) -> str:
    return chance.choice(how.words)


def _path(how: Manner, chance: random.Random) -> str:
    del how
    ending = chance.choice(("py", "ts", "go", "toml", "sql"))
    return f"{chance.choice(('src', 'lib', 'app'))}/{chance.choice(WORDS)}/{chance.choice(WORDS)}.{ending}"


def _name(how: Manner, chance: random.Random) -> str:
    del how
    one, other = chance.choice(WORDS), chance.choice(WORDS)
    return chance.choice((f"{one}_{other}", f"{one}{other.capitalize()}", f"{one.capitalize()}{other.capitalize()}"))


def _number(how: Manner, chance: random.Random) -> str:
    del how
    return str(chance.choice((2, 3, 10, 16, 30, 64, 100, 128, 200, 256, 404, 500, 512, 1000)))


def _code(chance: random.Random) -> str:
    head = f"def {_name(PAIRING, chance)}({chance.choice(WORDS)}, {chance.choice(WORDS)}):\n"
    lines = [
        f"    {chance.choice(WORDS)} = {_name(PAIRING, chance)}({chance.choice(WORDS)}, {_number(PAIRING, chance)})\n"
        for _ in range(chance.randint(10, 70))
    ]
    return head + "".join(lines)


def _log(chance: random.Random) -> str:
    return "".join(
        f"2026-03-{chance.randint(1, 28):02d}T{chance.randint(0, 23):02d}:{chance.randint(0, 59):02d}:"
        f"{chance.randint(0, 59):02d}Z {chance.choice(('INFO', 'INFO', 'DEBUG', 'WARN'))} "
        f"{chance.choice(WORDS)}[{chance.randint(100, 9999)}] {chance.choice(WORDS)} {chance.choice(WORDS)} "
        f"took {chance.randint(1, 900)}ms id={chance.getrandbits(40):010x}\n"
        for _ in range(chance.randint(8, 50))
    )


def _unusual(chance: random.Random) -> int:
    return chance.randint(11_000, 98_000)


def _path_fact(pattern: str) -> Callable[[random.Random, int], tuple[str, tuple[str, ...]]]:
    def make(chance: random.Random, at: int) -> tuple[str, tuple[str, ...]]:
        path = f"deploy/{chance.choice(WORDS)}{at}/{chance.choice(WORDS)}-{chance.choice(WORDS)}.yaml"
        return pattern.replace("{}", path), (path,)

    return make


def _name_fact(pattern: str) -> Callable[[random.Random, int], tuple[str, tuple[str, ...]]]:
    def make(chance: random.Random, at: int) -> tuple[str, tuple[str, ...]]:
        name = f"{chance.choice(WORDS)}_{chance.choice(WORDS)}_{'abcdefgh'[at]}{chance.choice(WORDS)}"
        return pattern.replace("{}", name), (name,)

    return make


def _number_fact(pattern: str) -> Callable[[random.Random, int], tuple[str, tuple[str, ...]]]:
    def make(chance: random.Random, at: int) -> tuple[str, tuple[str, ...]]:
        del at
        number = str(_unusual(chance))
        return pattern.replace("{}", number), (number,)

    return make


def _plainly(*sentences: str) -> tuple[Callable[[random.Random, int], tuple[str, tuple[str, ...]]], ...]:
    """Sentences kept when the longest three words of each are in one line."""

    def make(sentence: str) -> Callable[[random.Random, int], tuple[str, tuple[str, ...]]]:
        words = sorted({word.strip(".,;:") for word in sentence.split()}, key=lambda word: (-len(word), word))
        return lambda chance, at: (sentence, tuple(words[:3]))

    return tuple(make(sentence) for sentence in sentences)


PAIRING = Manner(
    facts={
        "path": [
            _path_fact("The staging values live in {} and nowhere else."),
            _path_fact("I found the stale copy, it is {}."),
            _path_fact("Please leave {} alone until Friday."),
            _path_fact("The fix belongs into {}."),
        ],
        "identifier": [
            _name_fact("The flag that turns it off is called {}."),
            _name_fact("What breaks is {}, it returns before the lock is taken."),
            _name_fact("Everything goes through {} in the end."),
            _name_fact("Use {} for the new column."),
        ],
        "number": [
            _number_fact("The service listens on port {} in production."),
            _number_fact("Customers are allowed {} exports a day."),
            _number_fact("It took {} milliseconds before the change."),
            _number_fact("The ticket is number {}."),
        ],
        "decision": _plainly(
            "We decided to drop Redis and keep advisory locks in Postgres.",
            "Let's go with protobuf for the wire, JSON stays for debugging.",
            "I agreed with Marta that the importer becomes a separate process.",
            "We will ship without pagination first.",
            "The team chose feature branches over trunk for this release.",
            "Instead of polling we subscribe to change notifications.",
        ),
        "constraint": _plainly(
            "Never write personal data into the analytics warehouse.",
            "All migrations must be reversible without downtime.",
            "The public signature cannot change before the major release.",
            "Only the billing service may touch customer balances.",
            "Always run the linter before committing generated clients.",
        ),
        "plain": _plainly(
            "Marta comes back from parental leave in autumn.",
            "The customer in Lisbon complains most about slow dashboards.",
            "Our staging environment is rebuilt every Sunday evening.",
            "Bartholomew knows the printing subsystem best.",
            "The first prototype was written during a hackathon.",
        ),
    },
    user=(
        "Can you look at {p} again?",
        "Hmm, {i} still looks odd to me.",
        "That seems fine, go on with the {w}.",
        "What does the {w} do when the {w} is empty?",
        "I ran it with {n} rows and the {w} kept up.",
        "Show me how {i} is called from {p}.",
        "Thanks, that reads much better now.",
        "Could the {w} and the {w} share some code?",
        "Let me think about the {w} for a moment.",
    ),
    assistant=(
        "I looked at {p} and the {w} is built there.",
        "The function {i} takes the {w} and hands it to the {w}.",
        "There are {n} places where the {w} is used.",
        "This part is straightforward, the {w} wraps the {w}.",
        "Next I will read {p} to see how {i} behaves.",
        "It might help to move the {w} closer to the {w}.",
        "So far the {w} looks healthy and nothing stands out.",
        "I would write a small test for the {w} first.",
        "In short, the {w} is prepared, then the {w} is told about it.",
        "The loop runs {n} times at most, which is cheap.",
        "You can see this in {i}, where the {w} is copied.",
    ),
    tools=("read_file", "search", "run_tests"),
    output=_code,
    words=WORDS,
)

TICKET = Manner(
    facts={
        "path": [
            _path_fact("runbook: {}"),
            _path_fact("cert is mounted from {} (not the default)"),
            _path_fact("Konfiguration liegt unter {}"),
            _path_fact("dump saved to {}"),
        ],
        "identifier": [
            _name_fact("alert fires on {}"),
            _name_fact("root cause = {} is not idempotent"),
            _name_fact("Schalter heißt {}"),
            _name_fact("rollback via {}"),
        ],
        "number": [
            _number_fact("pool size there: {}"),
            _number_fact("Grenzwert {} Anfragen pro Minute"),
            _number_fact("INC-{} is the parent"),
            _number_fact("p99 was {} ms at noon"),
        ],
        "decision": _plainly(
            "decision: freeze deployments until Thursday's postmortem",
            "wir nehmen Kafka statt RabbitMQ für Ereignisse",
            "switching the canary back to Frankfurt",
            "agreed with Priya, quarantine instead of deleting",
            "going with blue-green, no rolling restarts",
            "entschieden: Nachtlauf bleibt abgeschaltet",
        ),
        "constraint": _plainly(
            "do not restart the primary during settlement",
            "Zugangsdaten dürfen niemals ins Protokoll",
            "must keep seven years of receipts for auditors",
            "nur lesend auf Produktionsdatenbanken zugreifen",
            "vendor contract forbids scraping their sandbox",
        ),
        "plain": _plainly(
            "Giovanni takes over the pager tomorrow afternoon",
            "der Kunde aus Innsbruck war sehr geduldig",
            "coffee machine upstairs is unrelated, obviously",
            "previous shift already rebooted the switch",
            "status page shows yellow since breakfast",
        ),
    },
    user=(
        "any news on the {w}?",
        "check {p} pls",
        "und die {w}?",
        "seeing {n} of those per hour now, seems normal",
        "ok",
        "same on the other {w}, see {i}",
        "kannst du {i} noch einmal ansehen",
    ),
    assistant=(
        "- {w}: healthy, {n} replicas",
        "- looked at {p}, nothing new",
        "- {i} called by the {w}",
        "- die {w} läuft, {n} Einträge im Puffer",
        "- restarting the {w} takes a moment",
        "- graph for the {w} is flat",
        "- will compare with {p} next",
        "- {w} and {w} in sync",
        "- {i}: no change since the last look",
        "- Stand der {w} unverändert",
    ),
    tools=("kubectl", "psql", "grep"),
    output=_log,
    words=(*WORDS, *GERMAN),
    joints=("\n",),
)


@cache
def _sentences() -> tuple[str, ...]:
    from pydoc_data.topics import topics

    text = " ".join(topics[name] for name in sorted(topics))
    paragraphs = (" ".join(each.split()) for each in re.split(r"\n\s*\n", text))
    found = (sentence for each in paragraphs for sentence in re.split(r"(?<=[.!?]) +", each))
    return tuple(dict.fromkeys(each for each in found if 20 < len(each) < 220))


@cache
def _sources() -> tuple[str, ...]:
    library = Path(sysconfig.get_paths()["stdlib"])
    parts: list[str] = []
    for path in sorted(library.glob("[a-h]*.py")):
        lines = path.read_text("utf-8", "replace").split("\n")
        parts += ["\n".join(lines[at : at + 40]) for at in range(0, len(lines), 40)]
    return tuple(parts)


PAGES = Manner(
    facts={
        "path": [
            _path_fact("Oh, and the thing is configured by {}, in case you wondered."),
            _path_fact("He keeps his notes at {}."),
            _path_fact("Have a look into {} when you have time."),
            _path_fact("{} is generated."),
        ],
        "identifier": [
            _name_fact("By the way it is {} that we ought to call."),
            _name_fact("Somebody had renamed it to {}."),
            _name_fact("{} is the culprit."),
            _name_fact("He calls that one {}, I believe."),
        ],
        "number": [
            _number_fact("Accounting says {} euros."),
            _number_fact("We counted {} of them."),
            _number_fact("Give it {} megabytes."),
            _number_fact("That was build {}."),
        ],
        "decision": _plainly(
            "So it's settled, the mobile team takes over authentication.",
            "I've made up my mind: no Kubernetes for the pilot.",
            "We're moving ahead with Terraform.",
            "Fine, Elasticsearch it is.",
            "Legal signed off on keeping transcripts.",
            "Scrap the wizard, a single form will do.",
        ),
        "constraint": _plainly(
            "Whatever happens, payroll has to run on the 25th.",
            "Nobody but auditors gets to see salaries.",
            "It needs to work on tablets without network.",
            "Please avoid anything licensed under AGPL.",
            "Response times above two seconds are unacceptable.",
        ),
        "plain": _plainly(
            "Ludmila wrote her thesis about this.",
            "The Rotterdam office closes early on Wednesdays.",
            "Our designer prefers turquoise.",
            "It rained during the whole offsite.",
            "The previous vendor went bankrupt.",
        ),
    },
    user=(),
    assistant=(),
    tools=("read_file", "search"),
    output=lambda chance: chance.choice(_sources()),
    words=WORDS,
    prose=lambda chance: chance.choice(_sentences()),
)

FIRMWARE = Manner(
    facts={**talk_held_out.facts(), **{kind: _plainly(*each) for kind, each in talk_held_out.SENTENCES.items()}},
    user=(),
    assistant=(),
    tools=("gdb", "openocd", "read_file"),
    output=talk_held_out.trace,
    words=talk_held_out.NOUNS,
    joints=(" ", "\n"),
    prose=lambda chance: next(talk_held_out.filler(chance)),
)

MANNERS = {"pairing": PAIRING, "ticket": TICKET, "pages": PAGES}
# The digest was made with the ones above in sight, at their seed; these it has to meet unprepared.
HELD_OUT = {**MANNERS, "firmware": FIRMWARE}
HELD_OUT_SEEDS = (1009, 2027, 3041)
