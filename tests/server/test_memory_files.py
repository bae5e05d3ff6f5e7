"""Project memories as files of a team: written, read again, merged, and what must not be among them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from gathering import World, run
from hypothesis import given, settings
from hypothesis import strategies as st

from haversack.memory import Category, Memory, MemoryStore, Scope, files
from haversack.memory.store import Merge
from haversack.remembering import Memories
from haversack.types import HaversackError, InvalidRequest, Settings

NOW = 1_790_000_000.25


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, {"ws": {"a.py": "a\n"}}, now=NOW)


@pytest.fixture
def memories(world: World) -> Iterator[Memories]:
    store = MemoryStore(world.tmp / "m.db")
    yield session(world, store)
    store.close()


def session(world: World, store: MemoryStore) -> Memories:
    async def at_once(function: object, *args: object) -> object:
        return function(*args)  # type: ignore[operator]

    return Memories(store, world.snapshot, at_once)


def put(world: World, name: str, text: str) -> None:
    world.write("ws", f"{files.DIRECTORY}/{name}", text)


def names(world: World) -> list[str]:
    return sorted(path.name for path in (world.tmp / "ws" / files.DIRECTORY).iterdir())


LINES = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1).map(str.strip).filter(bool)


@settings(max_examples=60, deadline=None)
@given(
    LINES.filter(lambda text: len(text) <= 200),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r"), min_size=1)
    .map(str.strip)
    .filter(bool),
    st.lists(LINES.filter(lambda text: "|" not in text and len(text) <= 64), max_size=4, unique=True),
)
def test_what_is_written_is_read_again(title: str, content: str, keywords: list[str]) -> None:
    """Whatever letters a note has, `---` and colons included."""
    memory = Memory(
        "a1", Category.RULE, title, content, tuple(keywords), Scope.PROJECT, "/ws", NOW, NOW, origins=("a.py",)
    )
    assert files.parse("x.md", files.render(memory), "/ws", 0.0) == memory


def test_a_team_shares_its_memories(world: World, memories: Memories) -> None:
    """Exported, committed, imported by another person; twice gives nothing new, and a newer text wins."""
    kept = run(memories.add("project", category="Rule", title="Money", content="Use decimals.", keywords=["money"]))
    run(memories.add("user", category="rule", title="Mine", content="Use tabs."))
    assert run(memories.export()).paths == (f"{files.DIRECTORY}/money-{kept.id[:8]}.md",)
    before = (world.tmp / "ws" / files.DIRECTORY / names(world)[0]).stat().st_mtime_ns
    run(memories.export())
    assert (world.tmp / "ws" / files.DIRECTORY / names(world)[0]).stat().st_mtime_ns == before
    other = session(world, MemoryStore(world.tmp / "other.db"))
    assert [became for _, became in run(other.take_in()).done] == [Merge.ADDED]
    assert [became for _, became in run(other.take_in()).done] == [Merge.UNCHANGED]
    assert run(other.list()) == (kept,)
    world.now += 10
    run(memories.update(kept.id, title="Amounts", content="Use Decimal."))
    run(memories.export())
    assert names(world) == [f"amounts-{kept.id[:8]}.md"]
    assert [became for _, became in run(other.take_in()).done] == [Merge.UPDATED]
    world.now += 10
    run(other.update(kept.id, content="Use cents."))
    assert [became for _, became in run(other.take_in()).done] == [Merge.KEPT]
    assert [each.content for each in run(other.list())] == ["Use cents."]


def test_a_file_a_person_wrote_is_enough(world: World, memories: Memories) -> None:
    """Category and title: its name is its identity, and its text wins until it has a time of its own."""
    put(world, "money.md", "---\r\ncategory: rule\r\ntitle: Money: exact\r\n---\r\nUse decimals.\r\n")
    (first,) = run(memories.take_in()).done
    assert (first[0].title, first[0].content, first[1]) == ("Money: exact", "Use decimals.", Merge.ADDED)
    put(world, "money.md", "---\ncategory: rule\ntitle: Money\n---\nUse cents.\n")
    world.now += 10
    assert [became for _, became in run(memories.take_in()).done] == [Merge.UPDATED]
    world.now += 10
    assert [became for _, became in run(memories.take_in()).done] == [Merge.UNCHANGED]


def test_a_bad_file_is_named_and_the_others_go_on(world: World, memories: Memories) -> None:
    """What is wrong, by field or line; links and giants are not read."""
    good = "---\ncategory: rule\ntitle: t\nid: same\n---\nc\n"
    put(world, "a.md", good)
    put(world, "b.md", good)
    put(world, "c.md", "no header")
    put(world, "d.md", "---\ncategory: gossip\ntitle: t\n---\nc\n")
    put(world, "e.md", "---\ncategory: rule\ncolour: red\n---\nc\n")
    put(world, "f.md", "---\nid: ../../x\ncategory: rule\ntitle: t\n---\nc\n")
    put(world, "g.md", "---\ncategory: rule\ntitle: t\nupdated: yesterday\n---\nc\n")
    put(world, "h.md", good + "x" * files.LARGEST_FILE)
    (world.tmp / "outside.md").write_text(good.replace("same", "stolen"))
    os.symlink(world.tmp / "outside.md", world.tmp / "ws" / files.DIRECTORY / "i.md")
    (world.tmp / "ws" / files.DIRECTORY / "j.md").write_bytes(b"\xff\xfe")
    done = run(memories.take_in())
    assert [memory.id for memory, _ in done.done] == ["same"]
    reasons = {each.path[-4:-3]: each.reason for each in done.bad}
    assert sorted(reasons) == list("bcdefghij")
    assert (reasons["b"], reasons["e"][:7], reasons["f"][:2], reasons["g"][:7]) == (
        *("its id same is that of another file", "line 3:"),
        *("id", "updated"),
    )
    assert "symbolic link" in reasons["i"] or "symlink" in reasons["i"]


def test_what_must_stay_on_this_machine_is_not_written(world: World, memories: Memories) -> None:
    """Private notes, notes derived from restricted files, notes with a secret; ids alone tell of them."""
    world.settings = Settings(restricted_paths=("secret/",))
    key = "AKIA" + "QWERTYUIOPASDFGH"
    given = {"category": "rule", "title": "t", "content": "c"}
    private = run(memories.add("project", **given, private=True))
    derived = run(memories.add("project", **given, origins=["ws/secret/plan.md"]))
    secret = run(memories.add("project", **{**given, "content": f"aws_access_key_id = {key}"}))
    done = run(memories.export())
    assert done.paths == ()
    assert dict(done.left_out) == {
        private.id: "private",
        derived.id: "derived from restricted files",
        secret.id: "holds a secret",
    }
    assert not (world.tmp / "ws" / files.DIRECTORY).exists()


def test_origins_survive_the_way_through_a_file(world: World, memories: Memories) -> None:
    """Written as paths in the folder, and read as files of the folder, whatever it is called there."""
    kept = run(memories.add("project", category="rule", title="t", content="c", origins=["ws/lib/a.py"]))
    run(memories.export())
    assert "origin: lib/a.py\n" in (world.tmp / "ws" / files.DIRECTORY / names(world)[0]).read_text()
    assert [became for _, became in run(memories.take_in()).done] == [Merge.UNCHANGED]
    other = session(world, MemoryStore(world.tmp / "other.db"))
    run(other.take_in())
    assert run(other.list()) == (kept,)


def test_an_import_never_loosens_what_is_kept(world: World, memories: Memories) -> None:
    """A newer file changes the text alone: a private note stays private, and origins are only added."""
    given = {"category": "rule", "title": "t", "content": "old"}
    kept = run(memories.add("project", **given, private=True, origins=["ws/plans/a.md"]))
    header = f"---\nid: {kept.id}\ncategory: rule\ntitle: t\nupdated: 2100-01-01\norigin: lib/b.py\n---\n"
    put(world, "a.md", header + "new\n")
    ((_, became),) = run(memories.take_in()).done
    assert became is Merge.UPDATED
    (now,) = run(memories.list())
    assert (now.content, now.private, now.origins) == ("new", True, ("ws/plans/a.md", "ws/lib/b.py"))
    put(world, "a.md", header.replace("lib/b.py", "plans/c.md") + "new\n")
    run(memories.take_in())
    assert run(memories.list())[0].origins == ("ws/plans/a.md", "ws/lib/b.py", "ws/plans/c.md")


def test_a_folder_that_is_a_link_is_neither_read_nor_written(world: World, memories: Memories) -> None:
    """A repository cannot make an export write somewhere else."""
    (world.tmp / "elsewhere").mkdir()
    (world.tmp / "ws" / ".haversack").mkdir()
    os.symlink(world.tmp / "elsewhere", world.tmp / "ws" / ".haversack" / "memory")
    run(memories.add("project", category="rule", title="t", content="c"))
    for act in (memories.export, memories.take_in):
        with pytest.raises(HaversackError) as refused:
            run(act())
        assert refused.value.code == "path_outside_workspace"
    assert list((world.tmp / "elsewhere").iterdir()) == []


def test_an_untrusted_workspace_gives_no_memories(world: World, memories: Memories) -> None:
    """Rules steer a model; a folder that somebody sent must not bring its own."""
    put(world, "a.md", "---\ncategory: rule\ntitle: t\n---\nObey.\n")
    world.trusted = False
    with pytest.raises(HaversackError) as refused:
        run(memories.take_in())
    assert refused.value.code == "untrusted_workspace"
    assert run(memories.list()) == ()


def test_two_clones_have_the_same_memories(world: World) -> None:
    """One id in two folders is two notes, and a change says which one it means."""
    world = replace(world, folders={"one": {}, "two": {}})
    memories = session(world, MemoryStore(world.tmp / "m2.db"))
    text = "---\nid: shared\ncategory: rule\ntitle: t\n---\nc\n"
    for key in ("one", "two"):
        world.write(key, f"{files.DIRECTORY}/a.md", text)
        assert [became for _, became in run(memories.take_in(key)).done] == [Merge.ADDED]
    with pytest.raises(InvalidRequest):
        run(memories.delete("shared"))
    run(memories.delete("shared", "one"))
    assert [(each.id, Path(each.project).name) for each in run(memories.list())] == [("shared", "two")]
    with pytest.raises(InvalidRequest) as refused:
        run(memories.add("project", category="rule", title="t", content="c"))
    assert refused.value.details["field"] == "workspaceFolder"
