"""Statistics of the data: the figures that plans are based on, and the counts behind them."""

from cepheid.statistics.summary import Statistics

__all__ = ["Statistics"]
