"""What is known of the data: the figures that plans are made with, and the counts behind them."""

from cepheid.statistics.figures import Statistics

__all__ = ["Statistics"]
