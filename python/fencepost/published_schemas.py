"""The JSON Schemas of the documents that other programs read: `fencepost schema NAME`."""

from dataclasses import dataclass

from fencepost import crash_shape, evidence_shape, result_shape
from fencepost.shape import Schema, Shape

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class Published:
    """A kind of document, with the version of its format."""

    title: str
    version: int
    shape: Shape


DOCUMENTS = {
    "result": Published(
        "What `fencepost run` and `fencepost compare` write with --json (docs/results.md)",
        result_shape.FORMAT_VERSION,
        result_shape.RESULT,
    ),
    "evidence": Published(
        "Rows of evidence: what `fencepost validate` and `fencepost reproduce` write with --json "
        "(docs/studies.md)",
        evidence_shape.FORMAT_VERSION,
        evidence_shape.EVIDENCE,
    ),
    "crash": Published(
        "What `fencepost crash` writes with --json (docs/crash-consistency.md)",
        crash_shape.FORMAT_VERSION,
        crash_shape.CRASH,
    ),
}


NAMES = (*DOCUMENTS, "sweep")


def schema(name: str) -> Schema:
    """The schema of documents of this kind. Members that it does not know are no mistake, but in
    the plan of a sweep, which people write."""
    if name == "sweep":
        from fencepost.sweeps import schema as plans

        return plans.schema()
    document = DOCUMENTS[name]
    return {
        "$schema": DIALECT,
        "$id": f"urn:fencepost:{name}:{document.version}",
        "title": document.title,
        **document.shape.schema,
        "$defs": dict(document.shape.definitions),
    }
