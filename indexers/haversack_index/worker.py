"""The indexing process: JSON lines in on stdin, JSON lines out on stdout, one database written.

    python -m haversack_index.worker --folder F --cache-dir C [--rules JSON] [--embedder JSON]

In:  {"command": "update", "paths": [...] or null} | {"command": "rebuild"} | {"command": "stop"}
     {"command": "configure", "rules": {...}, "embedder": {...} or null}
Out: {"event": "scanning"} | {"event": "progress", "done": n, "total": n} | {"event": "generation", "generation": n}
     {"event": "skipped", "counts": {reason: n}} | {"event": "problem", "message": "..."}
     {"event": "ready", "generation": n, "ticket": n}

A command may carry a rising "ticket"; "ready" names the last one that its pass took in, so that who sent another
meanwhile knows that there is more to wait for.

It runs at low priority, all but the first seconds, and ends when stdin ends, because then its parent is gone.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TextIO, cast

import apsw

from haversack_index.database import database_path, remove
from haversack_index.embed_errors import ServiceUnavailableError
from haversack_index.pool import EmbedderSpec, ParsePool, die_with_parent, start_server
from haversack_index.prepare import EmbedFailure
from haversack_index.reader import IndexReader
from haversack_index.store import Store, StoreReplacedError
from haversack_index.types import Embedder
from haversack_index.update import Update, UpdateResult, embed_missing
from haversack_index.walk import WalkRules

# The editor and the server go first; indexing takes what is left.
NICENESS = 10
# The first pass of a process is what somebody who opened a folder waits for. While it is small it has the priority of
# any command they might have typed instead; at 300 to 1,000 files a second 5,000 are done before it is lowered.
EAGER_FILES = 5_000
EAGER_SECONDS = 10.0
# Waits between tries to reach an embedding service, in seconds; the last one repeats.
EMBED_BACKOFF = (1.0, 2.0, 5.0, 15.0, 60.0, 300.0)
# Waits between tries to write while another process holds the lock or the disk is full.
WRITE_BACKOFF = (1.0, 2.0, 5.0, 15.0, 60.0)
# Progress is told at most this often: more is only noise in the editor.
PROGRESS_SECONDS = 0.1
# After its parent is gone the running batch may end; then the process goes whatever it does.
GRACE_SECONDS = 2.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="haversack_index.worker", description="Index one folder.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--cache-dir", type=Path, required=True)
    parser.add_argument("--rules", default="{}", help="JSON object of walk rules")
    parser.add_argument("--embedder", default="", help="JSON object with 'factory' and 'arguments'")
    parser.add_argument("--processes", type=int, default=0, help="parse processes; 0 for one less than there are cores")
    options = parser.parse_args(arguments)
    out = _protected_stdout()
    die_with_parent()
    if not database_path(options.folder, options.cache_dir).exists():
        start_server()  # all of it will be parsed
    spec = embedder_spec(json.loads(options.embedder)) if options.embedder else None
    worker = Worker(options.folder, options.cache_dir, out, _rules(json.loads(options.rules)), spec, options.processes)
    threading.Thread(target=worker.listen, args=(sys.__stdin__ or sys.stdin,), daemon=True).start()
    worker.run()
    return 0


@dataclass(slots=True)
class Worker:
    """The state of one indexing process. `listen` runs in its own thread and only fills the queue."""

    folder: Path
    cache_dir: Path
    out: TextIO
    rules: WalkRules = field(default_factory=WalkRules)
    spec: EmbedderSpec | None = None
    n_processes: int = 0
    _commands: queue.Queue[Mapping[str, Any]] = field(default_factory=queue.Queue[Mapping[str, Any]])
    _stopping: threading.Event = field(default_factory=threading.Event)
    _embedder: Embedder | None = None
    _pool: ParsePool | None = None
    _store: Store | None = None
    _failure: EmbedFailure | None = None
    _embed_tries: int = 0
    _write_tries: int = 0
    _told: float = 0.0
    _generation: int = -1
    _ticket: int = 0
    _started: float = field(default_factory=time.monotonic)
    _is_calm: bool = False

    def listen(self, lines: TextIO) -> None:
        for line in lines:
            try:
                command = json.loads(line)
            except ValueError:
                command = None
            if not isinstance(command, dict):
                self._tell("problem", message="The indexer got a line that is not a JSON object.")
                continue
            if cast("dict[str, Any]", command).get("command") == "stop":
                break
            self._commands.put(cast("dict[str, Any]", command))
        self._stopping.set()
        self._commands.put({"command": "stop"})
        time.sleep(GRACE_SECONDS)
        os._exit(0)  # a pass that hangs must not keep a process without a parent alive

    def run(self) -> None:
        """Do commands until told to stop; between them give vectors to chunks that lack them."""
        try:
            while not self._stopping.is_set():
                command = self._next()
                if command is None:
                    self._embed_late()
                elif not self._do(command):
                    return
        finally:
            if self._pool is not None:
                self._pool.close()
            self._close_store()

    def _calm(self) -> None:
        """Go on at low priority, for good: without privileges there is no way back."""
        if self._is_calm:
            return
        self._is_calm = True
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
        if self._pool is not None:
            self._pool.calm(NICENESS)

    def _next(self) -> Mapping[str, Any] | None:
        """The next command, updates of single paths joined; None when it is time to try embedding again."""
        timeout = None
        if self._failure is not None and not self._failure.lasting:
            waits = EMBED_BACKOFF[min(self._embed_tries, len(EMBED_BACKOFF) - 1)] if self._failure.message else 0.0
            timeout = max(self._failure.retry_after or 0.0, waits)
        try:
            command: Mapping[str, Any] = self._commands.get(timeout=timeout)
        except queue.Empty:
            return None
        while command.get("command") == "update" and not self._commands.empty():
            later = self._commands.queue[0]
            if later.get("command") != "update":
                break
            self._commands.get()
            paths, more = command.get("paths"), later.get("paths")
            joined = None if paths is None or more is None else [*paths, *more]
            ticket = max(_ticket(command), _ticket(later))
            command = cast("dict[str, Any]", {"command": "update", "paths": joined, "ticket": ticket})
        return command

    def _do(self, command: Mapping[str, Any]) -> bool:
        name = command.get("command")
        self._ticket = max(self._ticket, _ticket(command))
        if name == "update":
            paths = command.get("paths")
            self._pass(None if paths is None else [str(path) for path in paths])
        elif name == "rebuild":
            self._calm()
            self._wipe()
            self._pass(None)
        elif name == "configure":
            self._calm()
            self._configure(command)
            self._pass(None)
        elif name == "stop":
            return False
        else:
            self._tell("problem", message=f"The indexer does not know the command {name!r}.")
        return True

    def _pass(self, paths: list[str] | None) -> None:
        """One update; what can go wrong with a disk becomes a problem and, where it may pass, another try."""
        try:
            result = self._update(paths)
            self._write_tries = 0
        except (OSError, apsw.CantOpenError, apsw.ReadOnlyError) as error:
            self._close_store()
            self._tell("problem", message=f"The index cannot be written to {self.cache_dir}: {error}")
            self._ready()  # the pass is over, and who waits for its end has to hear of it
            return
        except (apsw.Error, StoreReplacedError) as error:
            self._again(paths, error)
            return
        if result.stopped:
            return
        self._calm()
        for problem in result.problems:
            self._tell("problem", message=problem)
        self._tell("skipped", counts=result.skipped)
        self._ready()

    def _update(self, paths: list[str] | None) -> UpdateResult:
        store = self._opened()
        self._load_embedder()
        if self._pool is None:
            inline = self.spec if self._embedder is not None and self._embeds_inline() else None
            self._pool = ParsePool(self.folder, self.rules, store.path, inline, n_processes=self.n_processes)
            if self._is_calm:
                self._pool.calm(NICENESS)
            if paths is None and store.meta("complete") != "yes":
                self._pool.warm()
        update = Update(
            store,
            self.folder,
            self.rules,
            self._embedder,
            prepare_all=self._pool.prepare,
            on_progress=self._progress,
            stop=self._stopping.is_set,
            standing=(self._failure.message,) if self._failure is not None and self._failure.message else (),
        )
        result = update.run(paths)
        self._pool.shrink()
        if result.stopped or self.spec is None:
            return result
        if result.failure is not None:
            self._failure = result.failure
        elif self._failure is not None and self._failure.message:
            return result  # still waiting for the embedder, or given up on it
        elif self._embedder is not None and (paths is None or not self._embeds_inline()):
            # Vectors that did not come with the pass: another model's are gone, or files are embedded afterwards.
            self._failure = EmbedFailure("", False, 0.0)
        return result

    def _opened(self) -> Store:
        """The database, kept open between passes: opening it checks all of it."""
        if self._store is None:
            self._store = Store(database_path(self.folder, self.cache_dir))
        return self._store

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _embeds_inline(self) -> bool:
        """Whether embedding is so cheap that parse processes do it; others would hold back the text index."""
        return self.spec is not None and self.spec.arguments.get("kind", "static") == "static"

    def _embed_late(self) -> None:
        """Give vectors to chunks that have none, as long as there is no command to do first."""
        before = self._failure
        self._load_embedder()
        if self._embedder is None or before is None:
            self._embed_tries += 1
            return
        try:
            store = self._opened()
            failure = embed_missing(
                store, self.folder, self.rules, self._embedder, stop=self._interrupted, on_progress=self._progress
            )
            if failure is None and self._interrupted():
                failure = EmbedFailure(before.message, False, 0.0)  # the rest, after the command that came
            self._failure = failure
            self._embed_tries = 0 if failure is None else self._embed_tries + 1
            message = "" if failure is None else failure.message
            if message != before.message:
                store.set_meta({"problems": message})
            if message and message != before.message:
                self._tell("problem", message=message)
            self._tell_generation(int(store.meta("generation") or 0))
            if failure is None and before.message:
                self._ready()
        except (apsw.Error, OSError, StoreReplacedError) as error:
            self._tell("problem", message=f"Vectors could not be stored: {error}")
            self._close_store()
            self._embed_tries += 1

    def _interrupted(self) -> bool:
        return self._stopping.is_set() or not self._commands.empty()

    def _load_embedder(self) -> None:
        if self.spec is None or self._embedder is not None:
            return
        try:
            self._embedder = self.spec.load()
        except Exception as error:  # noqa: BLE001 - any code or service; words are indexed without it
            message = f"Vectors are off: {error}"
            if self._failure is None or self._failure.message != message:
                self._tell("problem", message=message)
            self._failure = EmbedFailure(message, not isinstance(error, (OSError, ServiceUnavailableError)), None)

    def _configure(self, command: Mapping[str, Any]) -> None:
        if "rules" in command:
            self.rules = _rules(cast("Mapping[str, Any]", command["rules"]))
        if "embedder" in command:
            value = command["embedder"]
            self.spec = None if value is None else embedder_spec(cast("Mapping[str, Any]", value))
            self._embedder, self._failure, self._embed_tries = None, None, 0
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _wipe(self) -> None:
        self._close_store()
        with suppress(OSError):  # what cannot be removed is brought up to date instead
            remove(database_path(self.folder, self.cache_dir))
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _again(self, paths: list[str] | None, error: Exception) -> None:
        """Queue the pass again after a wait, in which newer commands are not lost."""
        if not isinstance(error, apsw.BusyError):
            self._close_store()  # the next try looks at the whole of it first
        if self._write_tries == 1 and not isinstance(error, apsw.BusyError):
            self._tell("problem", message=f"The index could not be written ({error}); trying again.")
            self._ready()  # as good as it gets for now: a full disk may stay full
        self._stopping.wait(WRITE_BACKOFF[min(self._write_tries, len(WRITE_BACKOFF) - 1)])
        self._write_tries += 1
        self._commands.put({"command": "update", "paths": paths})

    def _ready(self) -> None:
        """Tell that the index is ready, once a fresh reader found that it answers."""
        reader = IndexReader(self.folder, self.cache_dir)
        try:
            status = reader.status()
        finally:
            reader.close()
        self._tell_generation(status.generation)
        state, n_files = status.state.value, status.n_files
        self._tell("ready", generation=status.generation, state=state, files=n_files, ticket=self._ticket)

    def _progress(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if total > EAGER_FILES or now - self._started > EAGER_SECONDS:
            self._calm()
        if phase == "scanning":
            self._tell("scanning")
        elif phase == "indexing" and (done in (0, total) or now - self._told > PROGRESS_SECONDS):
            self._told = now
            self._tell("progress", done=done, total=total)
            if self._store is not None:
                self._tell_generation(int(self._store.meta("generation") or 0))

    def _tell_generation(self, generation: int) -> None:
        if generation != self._generation:
            self._generation = generation
            self._tell("generation", generation=generation)

    def _tell(self, event: str, **values: object) -> None:
        try:
            self.out.write(json.dumps({"event": event, **values}) + "\n")
            self.out.flush()
        except (OSError, ValueError):
            self._stopping.set()  # nobody listens any more


def _protected_stdout() -> TextIO:
    """Keep stdout for messages: whatever else prints, in Python or C, here or in a child, goes to stderr."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return out


def _ticket(command: Mapping[str, Any]) -> int:
    ticket = command.get("ticket")
    return ticket if isinstance(ticket, int) else 0


def _rules(values: Mapping[str, Any]) -> WalkRules:
    known = {item.name for item in fields(WalkRules)}
    return WalkRules(**{name: value for name, value in values.items() if name in known})


def embedder_spec(values: Mapping[str, Any]) -> EmbedderSpec:
    default = EmbedderSpec()
    arguments = values.get("arguments", {} if "factory" in values else default.arguments)
    return EmbedderSpec(str(values.get("factory", default.factory)), dict(arguments))


if __name__ == "__main__":
    sys.exit(main())
