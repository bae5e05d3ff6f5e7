"""The settings about long conversations: when they are compacted, what stays, and who writes summaries."""

from __future__ import annotations

from haversack.settings_row import ANYWHERE, STANDING, Scope, Setting
from haversack.settings_values import (
    one_of,
    read_flag,
    read_share,
    read_variable_name,
    read_web_address,
    whole_number,
    within,
    words,
)

CONVERSATION: tuple[Setting, ...] = (
    Setting(
        "history.warningShare",
        "warning_share",
        read_share,
        "0.8",
        "0 to 1, a part of the window",
        ANYWHERE,
        "How full the window is when the answer says that compaction is near. All that must be in the prompt counts; "
        "gathered context does not, since it takes what is left. At 0.8 a few turns remain for the user to act, or for "
        "summaries to be written ahead.",
        "`window`: the state `warning` in the answer, and when summaries are written ahead",
    ),
    Setting(
        "history.compactShare",
        "compact_share",
        within(0.1, 0.97),
        "0.9",
        "0.1 to 0.97, a part of the window",
        ANYWHERE,
        "How full the window is when old messages are compacted. What is above it is left to the reply: a tenth of a "
        "16k window is an answer with a changed function in it. The shortest reply (256 tokens) is always kept.",
        "`window`: the room of the conversation, and the least of the reply",
    ),
    Setting(
        "history.keepRecent",
        "keep_recent",
        whole_number(1, 100),
        "4",
        "1 to 100 messages",
        ANYWHERE,
        "The last messages of a conversation, which compaction never touches. The question refers to them; four are "
        "two exchanges, or one with a tool call.",
        "`compact`: which messages stay as they are",
    ),
    Setting(
        "history.largeToolResult",
        "large_tool_result",
        whole_number(100, 1_000_000),
        "200",
        "100 to 1,000,000 characters",
        ANYWHERE,
        "Longer results and arguments of tools in older turns become markers when the window is full. The marker "
        "itself takes about 120 characters, so below 200 nothing is won.",
        "`compact`: what the tier `TOOL_STRIP` takes out",
    ),
    Setting(
        "summarizer.provider",
        "summarizer",
        one_of("editor", "openai", "ollama", "extract"),
        "editor",
        "`editor` (its own model, where it offers one), `openai` or `ollama` (a server), `extract` (no model)",
        STANDING,
        "Who summarizes old messages when the window is full. Without a model they become a digest in their own words.",
        "`summarize`: who is asked",
        guarded=True,
    ),
    Setting(
        "summarizer.endpoint",
        "summarizer_endpoint",
        read_web_address,
        "empty",
        "an http or https address",
        STANDING,
        "Where the model for summaries listens. Old messages are sent there, without restricted ones and secrets when "
        "it is another machine.",
        "`summarize`: the address of the calls",
        guarded=True,
    ),
    Setting(
        "summarizer.model",
        "summarizer_model",
        words(200),
        "empty",
        "the server's name of a model",
        STANDING,
        "The model that writes summaries.",
        "`summarize`: named in the calls",
        guarded=True,
    ),
    Setting(
        "summarizer.keyVariable",
        "summarizer_key_variable",
        read_variable_name,
        "empty (no key)",
        "the name of an environment variable, never the key itself",
        (Scope.USER,),
        "The environment variable that holds that server's key. The server gets it as a bearer token.",
        "`summarize`: the key of the calls",
        hidden=True,
    ),
    Setting(
        "summarizer.timeoutMs",
        "summarizer_timeout_ms",
        whole_number(100, 600_000),
        "20000",
        "100 to 600,000 milliseconds",
        ANYWHERE,
        "How long an answer waits for all its summaries together. A summary of a few thousand tokens takes a small "
        "model some ten seconds; later than this the user would rather have the digest.",
        "`summarize`: the deadline",
    ),
    Setting(
        "summarizer.ahead",
        "summarize_ahead",
        read_flag,
        "false",
        "true or false",
        STANDING,
        "Have summaries written in the background once the warning share is reached, so that no turn waits for them.",
        "`conversations`: whether the model is asked before it is needed",
        guarded=True,
    ),
)
