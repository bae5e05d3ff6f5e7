"""The whole line on a small workspace on disk, with the real stages."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from gathering import World, run
from line_builders import make_candidate, make_file

from haversack import pipeline
from haversack.gather import Gathered, gather
from haversack.pipeline import Services
from haversack.templates.chat import message_tokens
from haversack.tokens import counter
from haversack.types import (
    Bundle,
    Candidate,
    CompactTier,
    HaversackError,
    InvalidRequest,
    Kind,
    Mention,
    Message,
    Outcome,
    OverBudget,
    Plan,
    Request,
    Role,
    Settings,
    Source,
    ToolCall,
    WindowState,
)
from haversack.workspace import Workspace

FILES = {
    "src/budget.py": "def split_budget(total, parts):\n    return [total // parts] * parts\n\n\nLIMIT = 4\n",
    "src/other.py": "def unrelated():\n    return 'nothing'\n",
    "README.md": "# Demo\n\nIt splits a budget.\n",
}
MODEL = "openai/gpt-4o"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, {"demo": dict(FILES)})


def ask(world: World, request: Request | str, services: Services | None = None) -> Bundle:
    asked = Request(request, model=MODEL) if isinstance(request, str) else request
    return run(pipeline.run(asked, world.workspace(), services or Services()))


def test_a_question_about_code_gets_the_code(world: World) -> None:
    """The definition is in a block, the row says so, and the prompt ends with the question."""
    bundle = ask(world, "how does split_budget work?")
    assert any(block.path == "src/budget.py" and "def split_budget" in block.text for block in bundle.blocks)
    assert bundle.prompt.messages[-1].content.endswith("## Question\n\nhow does split_budget work?")
    assert bundle.status == "completed"
    assert bundle.manifest.classification["codebase"] is True
    assert [row for row in bundle.manifest.items if row.path == "src/budget.py" and row.outcome is Outcome.INCLUDED]


def test_each_row_says_why_its_item_came_up(world: World) -> None:
    """What was named and what was found, in words of the source that brought it."""
    request = Request("how does split_budget work in @README.md?", model=MODEL)
    rows = ask(world, request).manifest.items
    assert len({row.source for row in rows}) > 1
    assert all(row.why for row in rows)
    assert {row.why for row in rows if row.path == "README.md" and row.required} == {"you named it"}


def test_equal_messages_each_keep_their_place(world: World) -> None:
    """Who says "go on" twice has said it twice, and no file in the context replaces a message that names it."""
    says = (("user", "go on"), ("assistant", "src/budget.py"), ("user", "go on"), ("assistant", "src/budget.py"))
    history = tuple(Message(Role(role), text, origins=("demo/src/budget.py",)) for role, text in says)
    prompt = ask(world, Request("how does split_budget work?", model=MODEL, history=history)).prompt
    assert [(message.role.value, message.content) for message in prompt.messages[1:-1]] == list(says)


def test_a_mention_that_cannot_be_served_has_a_row(world: World) -> None:
    """Outside, secret or unknown: the reply goes on, and the manifest says what became of each name."""
    world.write("demo", ".env", "KEY=hunter2\n")
    mentions = tuple(Mention(value) for value in ("../../etc/passwd", ".env", "nosuch.py"))
    bundle = ask(world, Request("how does split_budget work?", model=MODEL, mentions=mentions))
    rows = {row.title: row for row in bundle.manifest.items if row.source is Source.MENTIONS}
    assert {title: row.reasons for title, row in rows.items()} == {
        "../../etc/passwd": ("outside the workspace",),
        ".env": ("could not be read",),
        "nosuch.py": ("could not be read",),
    }
    assert all((row.outcome, row.tokens_before, row.tokens_after) == (Outcome.EXCLUDED, 0, 0) for row in rows.values())
    assert (rows[".env"].folder, rows[".env"].path) == ("demo", ".env")
    assert "secret-name" in rows[".env"].why
    assert not any("hunter2" in message.content for message in bundle.prompt.messages)


def test_small_talk_skips_gathering(world: World) -> None:
    """No source runs but those of rules, the user's and the project's, and the prompt is the greeting."""
    bundle = ask(world, "hi")
    assert [timing.name for timing in bundle.manifest.timings if timing.deadline] == ["knowledge", "rules"]
    assert bundle.blocks == ()
    assert bundle.prompt.messages[-1].content == "hi"


def test_token_use_adds_up_and_fits_the_window(world: World) -> None:
    """Each part is counted, tools included; prompt, tools and reply fit the window."""
    history = (Message(Role.USER, "hello"), Message(Role.ASSISTANT, "hi"))
    bundle = ask(world, Request("how does split_budget work?", model=MODEL, tools_tokens=321, history=history))
    use = bundle.manifest.tokens
    count_ = counter(bundle.route.model.tokenizer)
    sent = sum(message_tokens(message, count_) for message in bundle.prompt.messages)
    assert use.tools == 321
    assert use.total == use.system + use.tools + use.history + use.question + use.context
    assert use.total >= sent + 321
    assert use.total + use.reply_reserve <= use.window
    assert use.context == sum(block.tokens for block in bundle.blocks) <= use.context_budget
    assert use.counted == "exact"


def test_the_requests_budget_caps_the_context(world: World) -> None:
    """With room for one line only, no block costs more."""
    bundle = ask(world, Request("how does split_budget work?", model=MODEL, budget_tokens=40))
    assert bundle.manifest.tokens.context_budget == 40
    assert sum(block.tokens for block in bundle.blocks) <= 40


def test_a_long_conversation_is_compacted_before_context_is_packed(world: World) -> None:
    """Compaction starts at nine tenths of the window and makes room, and context has a part of it."""
    history = tuple(Message(Role.USER, f"turn {at} " + "word " * 600) for at in range(12))
    settings = Settings(context_window=8_000)
    small = World(world.tmp, {"demo": dict(FILES)}, settings)
    bundle = ask(small, Request("how does split_budget work?", model=MODEL, history=history))
    assert bundle.history.tier is not CompactTier.NONE
    assert bundle.history.tokens_after <= 8_000 * 0.65
    assert bundle.history.state is WindowState.COMPACTED
    assert bundle.blocks
    assert bundle.manifest.tokens.total + bundle.manifest.tokens.reply_reserve <= 8_000


def test_recent_messages_may_take_the_room_of_the_context(world: World) -> None:
    """What must stay of a conversation is refused only when the window itself has no room for it."""
    history = tuple(Message(Role.USER, "words " * 2_000) for _ in range(4))
    settings = Settings(context_window=16_000)
    bundle = ask(replace(world, settings=settings), Request("explain split_budget", model=MODEL, history=history))
    assert bundle.history.tokens_after > 0.5 * 12_000
    assert bundle.manifest.tokens.total + bundle.route.reply_reserve <= 16_000
    longer = tuple(replace(message, content=2 * message.content) for message in history)
    with pytest.raises(HaversackError) as refusal:
        ask(replace(world, settings=settings), Request("explain", model=MODEL, history=longer))
    assert refusal.value.code == "context_window_exceeded"


def test_a_conversation_gives_way_to_what_is_required(world: World) -> None:
    """A mentioned file that needs part of the conversation's share gets it: the conversation is compacted further."""

    async def given(plan: Plan, workspace: Workspace) -> Gathered:
        big = make_candidate("b", make_file("b.py", 700), kind=Kind.FILE, source=Source.MENTIONS, required=True)
        return Gathered((big,), (), ())

    small = World(world.tmp, {"demo": dict(FILES)}, Settings(context_window=8_000))
    history = tuple(Message(Role.USER, f"turn {at} " + "word " * 250) for at in range(12))
    request = Request("how does split_budget work?", model=MODEL, history=history)
    bundle = ask(small, request, Services(gather=given))
    assert bundle.blocks[0].spans == ((0, 700),)
    assert bundle.history.tier is CompactTier.PLAIN_FALLBACK
    assert bundle.manifest.tokens.total + bundle.manifest.tokens.reply_reserve <= 8_000


def test_a_question_larger_than_the_window_is_refused_with_numbers(world: World) -> None:
    """The error names the code, the size and what to do."""
    with pytest.raises(HaversackError) as caught:
        ask(
            World(world.tmp, {"demo": dict(FILES)}, Settings(context_window=4_000)), "fix this code: " + "word " * 9_000
        )
    assert caught.value.code == "context_window_exceeded"
    assert caught.value.remedy


def test_an_unknown_recipe_is_refused(world: World) -> None:
    """Before any work is done."""
    with pytest.raises(InvalidRequest):
        ask(world, Request("hi", recipe="nonsense"))


def test_a_kind_that_the_recipe_has_not_stays_out(world: World) -> None:
    """It has a row that says so."""

    async def given(plan: Plan, workspace: Workspace) -> Gathered:
        team = make_candidate("team", None, kind=Kind.TEAM, text="owned by us\n", source=Source.KNOWLEDGE)
        return Gathered((team,), (), ())

    def outcome(recipe: str) -> Outcome:
        request = Request("how does split_budget work?", model=MODEL, recipe=recipe)
        return ask(world, request, Services(gather=given)).manifest.items[0].outcome

    assert outcome("chat") is Outcome.INCLUDED
    assert outcome("edit") is Outcome.EXCLUDED


def test_restricted_files_stay_out_of_a_remote_prompt(world: World) -> None:
    """No byte of them is in any message; the manifest has the row with its reason."""
    closed = World(world.tmp, {"demo": dict(FILES)}, replace(Settings(), restricted_paths=("src/budget.py",)))
    bundle = ask(closed, Request("how does split_budget work?", model=MODEL))
    assert not any("total // parts" in message.content for message in bundle.prompt.messages)
    rows = [row for row in bundle.manifest.items if row.path == "src/budget.py"]
    assert rows
    assert all(row.outcome is Outcome.EXCLUDED for row in rows)


def test_history_that_quotes_restricted_files_stays_out_of_a_remote_prompt(tmp_path: Path) -> None:
    """A local model reads it; for a remote one the text goes, and calls still pair with their results."""
    world = World(tmp_path, {"demo": dict(FILES)}, settings=Settings(restricted_paths=("data/",)))
    call = ToolCall("t1", "write", '{"text": "canary"}')
    history = (
        Message(Role.USER, "hello"),
        Message(Role.ASSISTANT, "the canary says", tool_calls=(call,), origins=("demo/data/x.txt",)),
        Message(Role.TOOL, "canary", tool_call_id="t1", origins=("data/x.txt",)),
    )
    bundle = ask(world, Request("how does split_budget work?", model=MODEL, history=history))
    assert "canary" not in repr(bundle.prompt)
    assert [message.tool_call_id for message in bundle.prompt.messages if message.role is Role.TOOL] == ["t1"]
    assert any(message.content == "hello" for message in bundle.prompt.messages)
    assert [problem.code for problem in bundle.problems] == ["history_restricted"]
    local = ask(world, Request("how does split_budget work?", model="ollama/qwen2.5-coder:7b", history=history))
    assert "the canary says" in repr(local.prompt)
    assert local.problems == ()


def test_same_question_same_bytes(world: World) -> None:
    """Two runs agree on prompt, decisions and hashes, whatever the clock says."""
    ticks = count()
    first = ask(world, "how does split_budget work?")
    second = ask(world, "how does split_budget work?", Services(clock=lambda: float(next(ticks))))
    assert second.prompt == first.prompt
    assert second.blocks == first.blocks
    assert (second.version_hash, second.manifest.hash) == (first.version_hash, first.manifest.hash)
    assert second.manifest.items == first.manifest.items


def test_the_reply_may_have_what_the_prompt_leaves(world: World) -> None:
    """Never more than the model writes, and together with the prompt never more than the window."""
    bundle = ask(replace(world, settings=Settings(context_window=4_000)), "how does split_budget work?")
    assert bundle.route.max_output == 4_000 - bundle.manifest.tokens.total
    assert bundle.route.max_output >= bundle.route.reply_reserve
    assert ask(world, "how does split_budget work?").route.max_output == bundle.route.model.max_output


def test_every_stage_is_in_the_timings(world: World) -> None:
    """A slow answer can be explained from its manifest."""
    names = {timing.name for timing in ask(world, "how does split_budget work?").manifest.timings}
    assert {"classify", "mark", "route", "score", "compact", "pack", "assemble", "hybrid", "symbols"} <= names


def test_the_stages_come_in_their_order(world: World) -> None:
    """What is marked is routed, what is routed is scored and packed; a second turn goes through all of it again."""
    order = ["classify", "mark", "route", "score", "compact", "pack", "assemble"]
    for _ in range(2):
        names = [timing.name for timing in ask(world, "how does split_budget work?").manifest.timings]
        assert [name for name in names if name in order] == order


def test_preview_has_the_decisions_without_content(world: World) -> None:
    """Same rows, same hashes, no text anywhere."""
    request = Request("how does split_budget work?", model=MODEL, history=(Message(Role.USER, "CANARY earlier"),))
    full = ask(world, request)
    preview = run(pipeline.preview(request, world.workspace()))
    assert preview.manifest.hash == full.manifest.hash
    assert preview.version_hash == full.version_hash
    assert [block.tokens for block in preview.blocks] == [block.tokens for block in full.blocks]
    assert not any(block.text for block in preview.blocks)
    assert not any(message.content for message in preview.prompt.messages)
    assert "CANARY" not in repr((preview.history, preview.prompt, preview.blocks))


def required_file(n_lines: int) -> Services:
    async def given(plan: Plan, workspace: Workspace) -> Gathered:
        big: Candidate = make_candidate(
            "big", make_file("big.py", n_lines), kind=Kind.FILE, source=Source.MENTIONS, required=True
        )
        return Gathered((big,), (), ())

    return Services(gather=given)


def test_what_is_required_and_does_not_fit_is_refused(world: World) -> None:
    """The error lists the items, and how much room the window or the request's budget has."""
    with pytest.raises(OverBudget) as caught:
        ask(world, "how does split_budget work?", required_file(30_000))
    assert caught.value.details["items"]
    assert 90_000 < int(str(caught.value.details["budget"])) < 128_000
    with pytest.raises(OverBudget) as caught:
        ask(world, Request("how does split_budget work?", model=MODEL, budget_tokens=1_000), required_file(3_000))
    assert caught.value.details["budget"] == 1_000


def test_what_is_required_may_take_more_than_pays_off(world: World) -> None:
    """Only the window and the request's own budget refuse what must be in."""
    bundle = ask(world, "how does split_budget work?", required_file(3_000))
    assert bundle.blocks[0].spans == ((0, 3_000),)
    assert bundle.manifest.tokens.context > bundle.route.model.gather_budget
    assert bundle.manifest.tokens.total + bundle.route.reply_reserve <= bundle.route.window


def test_problems_of_all_stages_are_in_the_bundle(world: World) -> None:
    """A broken source does not cost the reply, and the reader is told."""

    async def broken(plan: Plan, workspace: Workspace) -> Gathered:
        async def fail(_plan: Plan, _workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[()]]:
            raise OSError("disk on fire")

        return await gather(plan, workspace, dict.fromkeys(Source, fail))

    bundle = ask(world, "how does split_budget work?", Services(gather=broken))
    assert {problem.code for problem in bundle.problems} == {"source_failed"}
    assert bundle.problems == bundle.manifest.problems


def test_a_message_sent_back_with_its_context_is_known_by_the_files_it_quotes(tmp_path: Path) -> None:
    """What a local model read stays restricted as history, by its path or because it was when it was served."""
    world = World(tmp_path, {"demo": dict(FILES)}, settings=Settings(restricted_paths=("src/budget.py",)))
    local = ask(world, Request("how does split_budget work?", model="ollama/qwen2.5-coder:7b"))
    sent = local.prompt.messages[-1]
    assert "total // parts" in sent.content
    assert {"demo/src/budget.py", "?"} <= set(sent.origins)
    history = (sent, Message(Role.ASSISTANT, "like this"))
    remote = ask(world, Request("and then?", model=MODEL, history=history))
    assert "total // parts" not in repr(remote.prompt)
    opened = replace(world, settings=Settings())
    assert "total // parts" not in repr(ask(opened, Request("and then?", model=MODEL, history=history)).prompt)
    again = ask(world, Request("and then?", model="ollama/qwen2.5-coder:7b", history=history))
    assert again.prompt.messages[1] == sent
