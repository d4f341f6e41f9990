"""The file of a query, a folder of queries that read each other's matches, or a folder of rules in
which one comes, changes and goes."""

from __future__ import annotations

import random
from pathlib import Path

from tests.campaign.scenarios import CHANGING, Question, Scenario


class Rules:
    """`versions` are all forms that the changing rule has had; `last` is the one that it has, if
    it has one, and the last row that was written before it was published."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        folder.mkdir()
        self._scenario = scenario
        self.path = folder if scenario.rules or scenario.before else folder / "query.cep"
        for number, query in enumerate(scenario.before):
            (folder / f"{number}.cep").write_text(query)
        for name, question in scenario.questions.items():
            (folder / f"{name or 'query'}.cep").write_text(question.query)
        self.versions: list[Question] = []
        self.last: tuple[Question, int] | None = None
        self._pending: tuple[Question, int] | None = None

    def change(self, chance: random.Random, checkpoint: Path) -> str:
        """Add the rule, make it another, or remove it."""
        file = self.path / f"{CHANGING}.cep"
        self.last = self._pending = None
        if file.exists() and chance.random() < 0.3:
            file.unlink()
            return "a rule is removed"
        new = chance.choice(self._scenario.changing)
        hidden = self.path / f".{CHANGING}"
        hidden.write_text(new.query)
        hidden.rename(file)
        self.versions.append(new)
        self._pending = new, _published(checkpoint)
        return f"a rule is now: {new.query}"

    def look(self, rows: int, checkpoint: Path) -> None:
        """Whether a change has been published; `rows` have been written before."""
        if self._pending is not None and _published(checkpoint) > self._pending[1]:
            self.last, self._pending = (self._pending[0], rows), None


def _published(checkpoint: Path) -> int:
    """How many versions of the rules there are."""
    return len(list((checkpoint / "rules").glob("*.parquet")))
