"""`haversack/select`: one document through the line that every question takes, so that all readers read the same."""

from __future__ import annotations

from dataclasses import replace

from haversack import pipeline
from haversack.gather import Gathered
from haversack.gatherers.document import candidate_id, candidates, open_document
from haversack.pipeline import Services
from haversack.policy.secrets import without_secrets
from haversack.recipes import DOCUMENT
from haversack.types import Bundle, DocumentIdentity, InvalidRequest, Plan, Purpose, Request, Selected
from haversack.workspace import Workspace

_USUAL = Services()


async def select(request: Request, workspace: Workspace, services: Services = _USUAL) -> Selected:
    """The identity and sections of the request's document, with the bundle they are in.

    Raises HaversackError as `open_document` and the line do.
    """
    selection = request.document
    if selection is None:
        raise InvalidRequest("No document was named.", "Name one.")
    opened = await workspace.run(open_document, selection, request.folder, workspace)

    async def gathered(plan: Plan, workspace: Workspace) -> Gathered:
        del workspace
        return Gathered(candidates(opened, plan), opened.problems, ())

    asked = replace(request, recipe=DOCUMENT)
    if selection.purpose is Purpose.VIEW:
        asked = replace(asked, model=None, local_only=True)  # what a person looks at goes to no model
    bundle = await pipeline.run(asked, workspace, replace(services, gather=gathered))
    # As served: what is in a block has been through everything that takes words out of it.
    served = {item: block.text for block in bundle.blocks for item in block.items}
    named = {candidate_id(opened.file, f"section:{each.id}"): each for each in opened.sections}
    hides = workspace.snapshot.settings.redact_secrets and not bundle.route.model.local
    shown = tuple(
        replace(
            each,
            summary=served[name].removesuffix("\n") if each.summary else "",
            heading_path=_spared(each.heading_path) if hides else each.heading_path,
        )
        for name, each in named.items()
        if name in served
    )
    truncated = opened.capped or len(shown) < len(opened.sections)
    if selection.purpose is Purpose.VIEW:
        bundle = _for_people(bundle)
    card = served.get(candidate_id(opened.file, "identity"), "")
    return Selected(bundle, _as_served(opened.identity, card), shown, opened.focus, truncated)


def _spared(headings: tuple[str, ...]) -> tuple[str, ...]:
    """The headings as a remote model may have them; most have no secret, and one search for all of them says so."""
    every = "\n".join(headings)
    return headings if without_secrets(every) == every else tuple(without_secrets(each) for each in headings)


def _as_served(identity: DocumentIdentity, card: str) -> DocumentIdentity:
    """Title and gist as the card has them."""
    rows = dict(line.split(": ", 1) for line in card.split("\n") if ": " in line)
    return replace(
        identity,
        title=rows.get("Title", "") if identity.title is not None else None,
        gist=rows.get("Gist", "") if identity.gist is not None else None,
    )


def _for_people(bundle: Bundle) -> Bundle:
    """The bundle without what could be sent to a model as it is."""
    return replace(bundle, prompt=replace(bundle.prompt, messages=()), history=replace(bundle.history, messages=()))
