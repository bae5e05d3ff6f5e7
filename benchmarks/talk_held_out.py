"""A conversation that the digest was not made with at first: other sentences, other names, other files, another trade.

`firmware`: two people and a model about devices, C and Rust, Windows paths, registers in hexadecimal, versions, French
and Spanish now and then. No sentence of it was in sight when the digest was made. What its first run showed was mended
by kind: options, names with `::`, drives, and short numbers, which say less than long ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

Made = Callable[[random.Random, int], tuple[str, tuple[str, ...]]]

NOUNS = (
    *(
        "antenna",
        "battery",
        "boot",
        "bridge",
        "button",
        "clock",
        "coil",
        "display",
        "driver",
        "flash",
        "frame",
        "gauge",
    ),
    *("heater", "interrupt", "latch", "lens", "motor", "nozzle", "packet", "panel", "pump", "radio", "relay", "rotor"),
    *("sensor", "servo", "socket", "spindle", "stack", "timer", "valve", "voltage", "watchdog", "wheel"),
)
CASES = "abcdefgh"


def _noun(chance: random.Random) -> str:
    return chance.choice(NOUNS)


def path(chance: random.Random) -> str:
    """As several systems write them."""
    a, b, c = (_noun(chance) for _ in range(3))
    return chance.choice(
        (
            f"drivers/{a}/{b}_{c}.c",
            f"C:\\build\\{a}\\{b}.dts",
            f"./boards/{a}-{b}/Kconfig",
            f"crates/{a}-hal/src/{b}.rs",
            f"/etc/udev/rules.d/{chance.randint(10, 99)}-{a}.rules",
        )
    )


def name(chance: random.Random) -> str:
    a, b = _noun(chance), _noun(chance)
    return chance.choice(
        (
            f"CONFIG_{a.upper()}_{b.upper()}",
            f"{a}::{b}::new",
            f"k{a.capitalize()}{b.capitalize()}",
            f"--{a}-{b}",
            f"{a}_{b}_t",
            f"${a.upper()}_{b.upper()}",
        )
    )


def number(chance: random.Random) -> str:
    return chance.choice(
        (
            f"0x{chance.getrandbits(12):03X}",
            f"{chance.randint(1, 9)}.{chance.randint(0, 20)}.{chance.randint(0, 20)}",
            f"{chance.randint(1, 400)} mV",
            f"{chance.randint(2, 90)}%",
            str(chance.choice((8, 12, 20, 48, 96, 115_200))),
        )
    )


def _fact(pattern: str, make: Callable[[random.Random, int], str]) -> Made:
    def made(chance: random.Random, at: int) -> tuple[str, tuple[str, ...]]:
        needle = make(chance, at)
        return pattern.replace("{}", needle), (needle,)

    return made


def _planted_path(chance: random.Random, at: int) -> str:
    a, b = _noun(chance), _noun(chance)
    return (
        f"D:\\keys\\{a}{at}\\{b}-root.pem",
        f"~/.config/{a}{at}/{b}.ron",
        f"subsys/{a}{at}/{b}/CMakeLists.txt",
        f"//nas{at}/release/{a}_{b}.hex",
    )[at % 4]


def _planted_name(chance: random.Random, at: int) -> str:
    a, b, c = (_noun(chance) for _ in range(3))
    return (
        f"{a.upper()}_{b.upper()}_{c.upper()}_{CASES[at].upper()}",
        f"{a}::{b}::{c}{CASES[at]}",
        f"--no-{a}-{b}-{c}{CASES[at]}",
        f"{a}{b.capitalize()}{c.capitalize()}{CASES[at].upper()}",
    )[at % 4]


def _planted_number(chance: random.Random, at: int) -> str:
    return (
        f"0x{chance.randint(0x10_0000, 0xFF_FFFF):X}",
        f"{chance.randint(11, 99)}.{chance.randint(100, 999)}.{chance.randint(100, 999)}",
        f"{chance.randint(10_000, 99_000):,}",
        f"{chance.randint(1_000, 9_000)}.{chance.randint(11, 99)}",
    )[at % 4]


PATTERNS = {
    "path": (
        "signing material sits at {} these days",
        "you will want {} open next to the datasheet",
        "Henrik moved the old image to {}",
        "le script de test est dans {}",
        "{} got corrupted during the power cut",
    ),
    "identifier": (
        "the guard we were missing turned out to be {}",
        "flip {} before flashing the second unit",
        "el simbolo correcto es {}",
        "{} swallows the overflow silently",
        "without {} the linker picks the weak version",
    ),
    "number": (
        "the serial of the faulty unit reads {}",
        "Tomoko measured {} on the bench",
        "la tension maximale est de {}",
        "calibration offset ended up at {}",
        "purchase order {} covers the spare boards",
    ),
}
MAKERS = {"path": _planted_path, "identifier": _planted_name, "number": _planted_number}

SENTENCES = {
    "decision": (
        "We'll take the lithium cells and forget about nickel.",
        "on part sur un bootloader unique pour toutes les cartes",
        "Bluetooth gets cut from the spring revision.",
        "Henrik and I settled on encrypted updates over serial.",
        "The enclosure stays aluminium, plastic was voted down.",
        "Certification happens in Eindhoven rather than Taipei.",
    ),
    "constraint": (
        "Heaters may not run while charging is active.",
        "Firmware has to survive brownouts during erase cycles.",
        "ningun reinicio durante la calibracion del laboratorio",
        "Interrupt handlers are not allowed to allocate.",
        "Customers mustn't see the debugging console.",
    ),
    "plain": (
        "Tomoko borrowed the oscilloscope from the university.",
        "Henrik's train was cancelled again yesterday.",
        "The supplier in Gdansk answers within minutes.",
        "Our demonstration unit sits in the lobby downstairs.",
        "Lightning struck the antenna mast last August.",
    ),
}

USER = (
    "so the {w} spins up but the {w} stays dark",
    "diff of {p} attached",
    "je regarde {p} ce soir",
    "reads {n} with the {w} unplugged",
    "is {i} even reachable from there",
    "fair enough",
    "swap the {w} and try once more",
)
ASSISTANT = (
    "The {w} holds its line low until the {w} acknowledges.",
    "In {p} the {w} is set up before the {w}.",
    "{i} reads the {w} and stores it for the {w}.",
    "Typical draw of the {w} is {n}, which matches the sheet.",
    "Both the {w} and the {w} share one supply.",
    "El {w} queda en reposo.",
    "From {p} it looks like {i} expects {n}.",
    "Nothing else touches the {w}.",
)


def trace(chance: random.Random) -> str:
    """What a debugger or a bus analyser prints."""
    return "".join(
        f"[{chance.randint(0, 99_999):>8}.{chance.randint(0, 999_999):06d}] {_noun(chance)}{chance.randint(0, 3)}: "
        f"{_noun(chance)} {chance.getrandbits(32):08x} -> {chance.getrandbits(16):04x} {_noun(chance)}\n"
        for _ in range(chance.randint(8, 60))
    )


def facts() -> dict[str, tuple[Made, ...]]:
    """Of the kinds that name something, as `talk.Manner` wants them."""
    return {kind: tuple(_fact(pattern, MAKERS[kind]) for pattern in PATTERNS[kind]) for kind in PATTERNS}


def filler(chance: random.Random) -> Iterator[str]:
    """Sentences without end, patterns filled."""
    while True:
        text = chance.choice((*USER, *ASSISTANT))
        for mark, make in (("{p}", path), ("{i}", name), ("{n}", number), ("{w}", _noun)):
            while mark in text:
                text = text.replace(mark, make(chance), 1)
        yield text
