"""What `--help` shows below the options: examples of every command, and the exit codes."""

from __future__ import annotations

EXIT_CODES = """exit codes:
  0    done
  1    refused or failed; the reason is on stderr, with --json in `error` on stdout
  2    wrong command line
  3    `doctor` found something to mend
  130  interrupted
  141  the reader of the output went away"""

MAIN_EXAMPLES = """examples:
  haversack context "How are retries handled?"
  haversack context "Why does @src/app.py:40-60 fail?" --budget 4000
  haversack explain src/app.py:42 "How are retries handled?"
  haversack select docs/guide.md:40-60
  haversack index --status
  haversack log
  haversack doctor
  haversack policy
  haversack memory list
  haversack serve                 (an editor starts this)"""

CONTEXT_EXAMPLES = """examples:
  haversack context "Where is the token budget computed?"
  haversack context "Review this" --mention diff --model openai/gpt-4o
  haversack context "Explain the parser" --mention src/parser.py:10-80 --mention @Parser
  haversack context "Rename the flag" --json | jq .manifest.items
  haversack context "Summarise the design" --prompt > prompt.md"""

EXPLAIN_EXAMPLES = """examples:
  haversack explain src/app.py "How are retries handled?"
  haversack explain src/app.py:42 "How are retries handled?" --budget 2000"""

SELECT_EXAMPLES = """examples:
  haversack select docs/guide.md
  haversack select docs/guide.md:40-60 --quote "three attempts" --budget 800
  haversack select src/app.py --section App/run --section App/stop --json | jq .sections
  haversack select contracts/lease.md --question "Who pays for repairs?" --tenant acme
  haversack select plans/offer.md --view

A budget is kept but for the card and what you point at. With --view the document is shown to you and goes to no
model; that alone shows strategy documents."""

INDEX_EXAMPLES = """examples:
  haversack index
  haversack index --status --workspace ~/project
  haversack index --rebuild"""

LOG_EXAMPLES = """examples:
  haversack log
  haversack log --limit 100 --json | jq .records
  haversack log 3f2a              (one record; the beginning of its id will do)"""

VERIFY_EXAMPLES = """examples:
  haversack verify 3f2a

A record that is as it was written ends with 0, whatever became of the files it names; a changed one with 1."""

DOCTOR_EXAMPLES = """examples:
  haversack doctor
  haversack doctor --json"""

POLICY_EXAMPLES = """examples:
  haversack policy
  haversack policy --workspace ~/project --json
  haversack policy --schema > policy.schema.json"""

MEMORY_EXAMPLES = """examples:
  haversack memory list
  haversack memory add --category rule --title Money --content "Amounts are decimals, never floats."
  haversack memory add --category knowledge --title Queue --content - --user < notes.md
  haversack memory search "why are jobs retried"
  haversack memory update 3f2a… --title "Money and rounding"
  haversack memory export         (into .haversack/memory, for the team to commit)
  haversack memory import"""

COMPACT_EXAMPLES = """examples:
  haversack compact chat.json > shorter.json
  haversack compact request.json --format anthropic --budget 20k
  haversack compact chat.json --json | jq .tier

FILE is a list of messages, or a request with one under `messages`, which then stays a request."""

SERVE_EXAMPLES = """examples:
  haversack serve
  haversack serve --tcp 127.0.0.1:7345"""
