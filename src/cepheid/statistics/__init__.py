"""What is known of the data: the figures that plans are made with, and the counts behind them."""

from cepheid.statistics.summary import Statistics

__all__ = ["Statistics"]
