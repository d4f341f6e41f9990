"""The result of `explain`: how a query runs and why, and with a run, what happened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from cepheid.errors import DataError
from cepheid.explain.document import to_json
from cepheid.explain.explanation_text import explanation_text
from cepheid.explain.page import fragment, page
from cepheid.explain.picture import picture
from cepheid.plan.profile import Profile
from cepheid.planner.planned import Planned
from cepheid.rewrites import Applied

_SHOWN = 60
"""How many characters of the query its repr shows."""


@dataclass(frozen=True)
class Explanation:
    """How a query is run, as text (`print` it), JSON, a drawing or a page.

    query         the query as it is run: after the rewrites
    planned       the plan, its estimates, the plans that lost, and the statistics
    rewrites      the rules that were applied, in order
    warnings      what the user should know: a query that can match nothing, say
    distribution  how the work is spread, as (label, text): partitioning, columns, push-down
    profile       what happened, if it was run
    where         `on Spark` or `in process`
    answers       how answers are made of the matches, if the query returns those
    returns       RETURN as it is written, "" if there is none
    """

    query: str
    planned: Planned
    rewrites: tuple[Applied, ...] = ()
    warnings: tuple[str, ...] = ()
    distribution: tuple[tuple[str, str], ...] = ()
    profile: Profile | None = None
    where: str = "on Spark"
    answers: str | None = None
    returns: str = ""

    def __str__(self) -> str:
        return explanation_text(self)

    def __repr__(self) -> str:
        words = shorten(self.query, _SHOWN, placeholder=" …")
        return f"Explanation({words!r}, plan {self.planned.winner.name!r})"

    def to_json(self) -> str:
        """As a JSON object; `docs/explain.md` describes it."""
        return to_json(self)

    def to_svg(self) -> str:
        """The plan as a drawing."""
        return picture(self.planned, self.profile)

    def to_html(self) -> str:
        """A page with the drawing and all that the text says; it needs nothing else."""
        return page(self)

    def _repr_html_(self) -> str:
        return fragment(self)

    def save(self, path: str | Path) -> None:
        """Write the explanation in the format of the name's ending: .txt, .json, .svg or .html."""
        target = Path(path)
        match target.suffix.lower():
            case ".txt":
                content = f"{self}\n"
            case ".json":
                content = self.to_json() + "\n"
            case ".svg":
                content = self.to_svg()
            case ".html":
                content = self.to_html()
            case suffix:
                raise DataError(
                    f"an explanation can be saved as .txt, .json, .svg or .html, not as "
                    f"{suffix or 'a file without a suffix'!r}: {target.name}"
                )
        target.write_text(content, encoding="utf-8")
