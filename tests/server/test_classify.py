"""Classification of messages, as a table: what is about the project, what for, and which words are searched."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from haversack.classify import classify, is_slip
from haversack.mention_syntax import mentions_in
from haversack.types import (
    ActiveDocument,
    Confidence,
    Intent,
    Mention,
    MentionKind,
    Plan,
    Position,
    Range,
    Request,
    Settings,
    Snapshot,
    Source,
    Supplied,
)

SNAPSHOT = Snapshot((), {}, Settings(), 0.0)
NOT_CODE = [
    "hi",
    "Hello there!",
    "hey",
    "thanks, that works great",
    "thank you very much!",
    "ok",
    "good morning",
    "how are you?",
    "who are you?",
    "what can you do",
    "こんにちは",
    "спасибо!",
    "danke",
    "what is a monad?",
    "What is dependency injection?",
    "explain recursion",
    "explain git rebase",
    "what does SOLID stand for?",
    "difference between TCP and UDP",
    "what is the difference between a stack and a queue?",
    "write a haiku",
    "write me a short poem about autumn",
    "tell me a joke",
    "what's the weather tomorrow in Paris?",
    "what is the capital of France?",
    "who won the world cup in 1998?",
    "what's 2+2?",
    "translate good morning into French",
    "recommend a movie",
    "",
    "???",
    "👍",
]
CODE = [
    "why is the cache not working",
    "rename getUserById",
    "build it without docker",
    "run the tests without network access",
    "how do I exclude tests from the bundle",
    "do not log passwords",
    "avoid reading the config twice",
    "what is IndexReader?",
    "what is the cache ttl?",
    "what does this function return?",
    "where is the session token refreshed?",
    "can you fix the login bug",
    "who wrote the parser?",
    "Set console to binary on windows as fallback",
    "Drop support for Python 3.7",
    "Fix grammar: 'allows to'",
    "Remove extra space from die func output",
    "command: temporarily disable G602 due to securego/gosec",
    "make it faster",
    "キャッシュが動かないのはなぜ",
    "почему не работает кэш",
    "修复登录错误",
    "/review",
    "hi, why does src/app.py crash?",
    "thanks, now add a flag for it",
    "what does `invoke` do",
    "explain src/main.go",
    "a\x00b \ud800 ???? ((( *** c++ foo( [",
]


def plan(text: str, seen: Sequence[str] = (), **fields: object) -> Plan:
    return classify(Request(text, **fields), SNAPSHOT, lambda words: bool(set(words) & set(seen)))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("text", NOT_CODE)
def test_talk_and_general_knowledge_gather_nothing(text: str) -> None:
    """Greetings, thanks and questions any model answers without the project cost no gathering but for rules."""
    made = plan(text)
    assert (made.codebase, made.sources, made.intent) == (
        False,
        ((Source.KNOWLEDGE, 1.5), (Source.RULES, 1.5)),
        Intent.CHAT,
    )


@pytest.mark.parametrize("text", CODE)
def test_questions_on_code_are_gathered_for(text: str) -> None:
    """No word such as "not" or "without", and no language, makes a question on code anything else."""
    made = plan(text)
    assert made.codebase, made.reason
    assert Source.HYBRID in {source for source, _ in made.sources}


def test_what_the_index_knows_is_about_the_project() -> None:
    """A general question becomes one on the project when the index has the word; plain talk does not."""
    assert plan("what is a monad?", seen=["monad"]).codebase
    assert plan("what is express?", seen=["express"]).reason == "a general question, but the project knows express"
    assert not plan("hi", seen=["hi"]).codebase


def test_a_mention_or_selection_makes_any_message_one_on_code() -> None:
    """Who points at something wants it read, also with a word of thanks."""
    selection = Range(Position(0, 0), Position(2, 0))
    assert plan("hi", mentions=(Mention("a.py"),)).codebase
    assert plan("what is this @a.py").codebase
    assert plan("thanks", active=ActiveDocument("file:///a.py", selection=selection)).codebase
    assert not plan("thanks", active=ActiveDocument("file:///a.py", Position(0, 0))).codebase


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("/review", Intent.REVIEW),
        ("/plan the move to postgres", Intent.PLAN),
        ("/summarise src", Intent.SUMMARIZE),
        ("/usr/bin/env is missing", Intent.CHAT),
        ("review my changes", Intent.REVIEW),
        ("please reveiw this file", Intent.REVIEW),
        ("add a preview pane", Intent.EDIT),
        ("the preview is broken, why?", Intent.CHAT),
        ("where is the reviewer list made?", Intent.CHAT),
        ("summarize the parser", Intent.SUMMARIZE),
        ("sumarize the parser", Intent.SUMMARIZE),
        ("tl;dr of this module", Intent.SUMMARIZE),
        ("plan the migration", Intent.PLAN),
        ("how should we structure the retry code?", Intent.PLAN),
        ("the planet module is slow", Intent.CHAT),
        ("fix the login", Intent.EDIT),
        ("could you please rename foo_bar", Intent.EDIT),
        ("fix(parser): accept tabs", Intent.EDIT),
        ("parser: allow tabs", Intent.EDIT),
        ("why does add fail?", Intent.CHAT),
        ("how does update work", Intent.CHAT),
        ("write a prompt for commit messages", Intent.PROMPT),
        ("create a skill for linting", Intent.SKILL),
        ("where is the cache", Intent.CHAT),
    ],
)
def test_intent_is_read_from_commands_and_orders(text: str, intent: Intent) -> None:
    """Commands decide; else the word in the place of an order, one slip allowed, never a part of a word."""
    assert plan(text).intent is intent


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("where is the password checked", "authentication"),
        ("list all endpoints", "api"),
        ("which migration adds the column", "database"),
        ("explain the architecture", "architecture"),
        ("which environment variables are read", "configuration"),
        ("implement the exporter", "implementation"),
        ("mock the clock in pytest", "testing"),
        ("why does the button not render", "frontend"),
        ("restart the worker queue", "backend"),
        ("it is slow, find the bottleneck", "performance"),
        ("it crashes with a traceback", "errors"),
        ("deploy to kubernetes", "deployment"),
        ("update the readme", "documentation"),
        ("the authentification fails, authenticaton broken", "authentication"),
    ],
)
def test_categories_are_told_by_words(text: str, category: str) -> None:
    """Each subject is known by its words, with light stems and one slip in long words."""
    assert category in plan(text).categories


def test_short_words_are_no_traps() -> None:
    """Words that merely contain or resemble a telling word say nothing."""
    assert plan("the apiary and the dbase tester of restaurants").categories == ()


@pytest.mark.parametrize(
    ("text", "is_broad"),
    [
        ("what does this project do?", True),
        ("give me an overview", True),
        ("explain the architecture", True),
        ("what is the structure of the project", True),
        ("where do I start?", True),
        ("explain the structure of IndexReader", False),
        ("fix the data structure", False),
        ("why is the cache slow", False),
        ("Refactor directory structure", False),
        ("这个项目结构是什么", True),
    ],
)
def test_broad_questions_are_on_the_project_as_a_whole(text: str, is_broad: bool) -> None:
    """Broad is what a newcomer asks; a named piece or an order to change something is not."""
    assert plan(text).broad is is_broad


def test_terms_keep_names_as_written_and_leave_function_words_out() -> None:
    """Paths and names come first, whole; then other words in their order."""
    made = plan("Why does Context.invoke() in src/click/core.py not pass `auto_envvar`, and ensureUnique fails?")
    assert made.paths == ("src/click/core.py",)
    assert set(made.identifiers) == {"Context.invoke", "auto_envvar", "ensureUnique"}
    assert made.terms[0] == "src/click/core.py"
    assert not {"why", "does", "the", "in", "and", "not"} & {term.lower() for term in made.terms}
    assert made.confidence is Confidence.HIGH


def test_terms_of_a_commit_message_leave_its_machine_parts_out() -> None:
    """Trailers, links, addresses, digests and rules of dashes are nothing to search for."""
    text = (
        "Make `raise_for_status` chainable (#123)\n\n* merge branch 'x' of y\n* Update test_async_client.py\n---\n"
        "See https://example.org/issue for deadbeef12\n\nCo-authored-by: Ann <ann@example.org>\n"
        "Signed-off-by: Bob <b@c.d>"
    )
    made = plan(text)
    joined = " ".join(made.terms).lower()
    assert "raise_for_status" in made.terms
    assert "test_async_client.py" in made.paths
    for absent in ("ann", "bob", "example", "https", "deadbeef12", "123", "authored", "merge"):
        assert absent not in joined.split()
    assert made.mentions == ()


def test_terms_are_few_and_taken_from_the_start() -> None:
    """Pasted text gives names only, and never more than forty words."""
    text = " ".join(f"alpha{i}beta" for i in range(100))
    assert len(plan(text).terms) == 40
    long = "look at this " + "word " * 1_000 + " tailword tail_name"
    assert "tail_name" in plan(long).terms
    assert "tailword" not in plan(long).terms


def test_terms_of_unspaced_scripts_are_runs_and_pairs() -> None:
    """Without blanks, the run and its pairs of characters are searched; glued names come apart."""
    terms = plan("キャッシュのget_user関数が遅い").terms
    assert "get_user" in terms
    assert {"キャッシュの", "関数が遅い", "関数"} <= set(terms)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("see lib/router/index.js and CHANGELOG.md", ("lib/router/index.js", "CHANGELOG.md")),
        ("read/write and and/or and 1/2", ()),
        ("python 3.7 e.g. now", ()),
        ("in src/utils/ or ./run.sh", ("src/utils/", "./run.sh")),
        ("res.download and app.use", ()),
    ],
)
def test_paths_are_told_from_other_words_with_dots_and_slashes(text: str, paths: tuple[str, ...]) -> None:
    """An ending that files have, or folders, make a path."""
    assert plan(text).paths == paths


def test_tests_and_docs_are_wanted_when_the_first_line_says_so() -> None:
    """A list of touched test files further down is not a question about tests."""
    assert plan("add a test for the parser").tests_wanted
    assert not plan("Fix the parser\n\n* Update test_parser.py\n* more tests").tests_wanted
    assert plan("Add notes to the docs").docs_wanted
    assert not plan("fix the latest contest").tests_wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("which test covers AbortWithStatusJSON?", True),
        ("fix the flaky tests on Windows", True),
        ("how is the router tested?", True),
        ("tests: use a temporary folder", True),
        ("Test that retries stop", True),
        ("how does parametrize generate test ids", False),
        ("How does fixture teardown work?", False),
        ("add an option that limits how long one test may run", False),
        ("fix the test client's cookies", False),
        ("how do I run the tests?", False),
    ],
)
def test_tests_are_wanted_themselves_not_for_a_feature_that_is_called_so(text: str, wanted: bool) -> None:
    """In a project about tests, every question holds the word."""
    assert plan(text).tests_wanted is wanted


@pytest.mark.parametrize(
    "text",
    [
        "How do I run the tests?",
        "how do I build and test it?",
        "how to install from source",
        "How can I start the dev server locally?",
        "what is the command to run the unit tests",
        "如何运行测试？",
        "Wie kann ich die Tests ausführen?",
    ],
)
def test_how_to_build_and_test_is_answered_by_guides(text: str) -> None:
    """Documents are wanted, the tests' own code is not."""
    made = plan(text)
    assert made.practical
    assert made.docs_wanted
    assert not made.tests_wanted
    assert not made.broad


@pytest.mark.parametrize("text", ["how do I test a route handler?", "how does the runner start?", "run `main` twice"])
def test_questions_on_the_code_are_not_practical(text: str) -> None:
    """The same words about a part of the code ask for that part."""
    assert not plan(text).practical


@pytest.mark.parametrize(
    ("text", "changes", "searched"),
    [
        ("Review my changes", True, False),
        ("are there bugs in my uncommitted changes?", True, False),
        ("write a commit message", True, False),
        ("please review the diff", True, False),
        ("review", True, False),
        ("do my changes break the tokenizer?", True, True),
        ("review the tokenizer", False, True),
        ("how does the diff algorithm work", False, True),
    ],
)
def test_changes_are_searched_for_only_by_what_they_are_about(text: str, changes: bool, searched: bool) -> None:
    """A search for `review` and `changes` finds change logs."""
    made = plan(text)
    assert made.changes is changes
    assert (Source.HYBRID in {source for source, _ in made.sources}) is searched


@pytest.mark.parametrize("text", ["what is this", "What is this?", "what does it do?"])
def test_a_question_without_a_word_to_search_for_is_about_the_project(text: str) -> None:
    """Nothing else is at hand; with a mention, that is meant."""
    assert plan(text).broad
    assert not plan(f"{text} @a.py").broad


def test_a_question_in_another_language_is_searched_in_english() -> None:
    """The words of code come first; its own stay, for projects that are written in it, but not for meaning."""
    made = plan("Wo wird entschieden, ob die Ausgabe farbig ist?")
    assert made.terms == ("decide", "output", "color", "entschieden", "Ausgabe", "farbig")
    assert made.search_text == "decide output color"
    chinese = plan("开发服务器如何处理请求？")
    assert chinese.terms[:5] == ("dev", "server", "handle", "request", "开发服务器如何处理请求")
    assert chinese.search_text == "dev server handle request"
    assert plan("where is the output coloured?").search_text == ""


def test_a_mentioned_place_is_searched_by_its_path_alone() -> None:
    """Neither the sign before it nor its lines are words of the question."""
    assert plan("Explain @src/hmr.ts:40-90").terms == ("src/hmr.ts",)
    assert plan("Explain @src/ssr/ please").terms == ("src/ssr/",)
    assert plan("update @nestjs/core").paths == ("@nestjs/core",)


def test_sources_follow_the_request() -> None:
    """Only what can give something is asked, each with the deadline of the settings."""
    made = plan("why is it slow", supplied=(Supplied("1", "t", "x"),))
    assert {source for source, _ in made.sources} == {
        *(Source.SYMBOLS, Source.HYBRID, Source.KNOWLEDGE, Source.DIFF, Source.RULES, Source.SUPPLIED)
    }
    assert {deadline for _, deadline in made.sources} == {1.5}
    talk = plan("hi", supplied=(Supplied("1", "t", "x"),))
    assert [source for source, _ in talk.sources] == [Source.KNOWLEDGE, Source.RULES, Source.SUPPLIED]
    asked = {source for source, _ in plan("look at @problems").sources}
    assert {Source.MENTIONS, Source.DIAGNOSTICS} <= asked
    assert dict(plan("look at @a.py").sources)[Source.MENTIONS] == 3.0  # what the user names is worth waiting for


def test_the_same_message_gives_the_same_plan() -> None:
    """Nothing but the message and the snapshot decides."""
    text = CODE[0] + " in `a.b` and src/x.py with @foo"
    assert plan(text) == plan(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see @src/a.py please", [Mention("src/a.py")]),
        ("see @src/a.py:10-20.", [Mention("src/a.py", lines=(9, 20))]),
        ("@a.py#L3-L9 and @b.py:7", [Mention("a.py", lines=(2, 9)), Mention("b.py", lines=(6, 7))]),
        ("@a.py:10:5", [Mention("a.py", lines=(9, 10))]),
        ('open @"my file.py":2-3 now', [Mention("my file.py", lines=(1, 3))]),
        ("@'x y.md'", [Mention("x y.md")]),
        ("@diff and @problems", [Mention("diff", MentionKind.DIFF), Mention("problems", MentionKind.PROBLEMS)]),
        ("@Class.method() does?", [Mention("Class.method")]),
        ("(@src/)", [Mention("src/")]),
        ("mail ann@example.org or a.b@c.d", []),
        ("```py\n@property\ndef x(self): ...\n```", []),
        ("the `@property` decorator", []),
        ("```\n@unclosed fence", []),
        ("install @types/node", [Mention("types/node")]),
        ("看@src/a.py，谢谢", [Mention("src/a.py")]),
        ("@a.py @a.py", [Mention("a.py")]),
        ("@", []),
        ("@@ -1,3 +1,4 @@", []),
    ],
)
def test_mentions_are_read_from_the_text(text: str, expected: list[Mention]) -> None:
    """Paths, quoted names, line ranges, symbols and words of their own; not addresses, not pasted code."""
    found = [Mention(each.value, each.kind, each.lines) for each in mentions_in(text)]
    assert found == expected
    assert all(each.from_text for each in mentions_in(text))


@pytest.mark.parametrize(
    ("word", "other", "is_one"),
    [
        ("reveiw", "review", True),
        ("revew", "review", True),
        ("reviews", "review", True),
        ("preview", "review", False),
        ("review", "revolt", False),
        ("abcdef", "abdcef", True),
        ("abcdef", "abcfed", False),
        ("", "a", False),
    ],
)
def test_one_slip_is_told_from_another_word(word: str, other: str, is_one: bool) -> None:
    """One letter more, less, other, or two swapped; never the first."""
    assert is_slip(word, other) is is_one


@pytest.mark.parametrize("piece", ["\n", "\t", " \n", "_", "-a", "$", "a.", "a+", "~/", "Aa", "漢", "a’"])
def test_pasted_text_is_read_once(piece: str) -> None:
    """Forty thousand characters of anything take a moment: no pattern goes over the same run again and again."""
    started = time.perf_counter()
    classify(Request(text=piece * (40_000 // len(piece))), SNAPSHOT, lambda words: False)
    assert time.perf_counter() - started < 1.0
