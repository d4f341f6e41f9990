"""What a query means, in plain Python, by brute force.

Written from the definition of the language, for obviousness and not for speed; it imports
nothing that optimizes or runs. Every engine returns exactly its multiset of matches.
"""

from .answers import answers
from .events import Event, Match
from .match import matches, outputs

__all__ = ["Event", "Match", "answers", "matches", "outputs"]
