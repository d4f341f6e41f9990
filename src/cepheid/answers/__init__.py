"""Answers about matches: groups, windows over their ends, and aggregates over the matches in them.

`AnswerFold` takes the matches of an engine, batch by batch, and gives answers as time passes.
"""

from cepheid.answers.answer_fold import AnswerFold

__all__ = ["AnswerFold"]
