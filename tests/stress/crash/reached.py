"""How often a campaign reached the states that it is for."""

from __future__ import annotations

from dataclasses import dataclass

RecentRows = set[tuple[int, int]]
"""Feed and sequence number of the rows of the table `recent`."""


@dataclass
class Reached:
    """Counts over all stores of a campaign."""

    kills: int = 0
    with_recent: int = 0
    """Kills that left a store with recent points."""
    with_several: int = 0
    """Kills that cost more than one request."""
    in_move: int = 0
    """Kills in a page that moves recent points into blocks, as the same page did after the kill."""
    moves: int = 0
    """Runs after which recent points were in blocks."""
    moved: int = 0
    """The rows of the table `recent` that these runs removed."""
    most_rows: int = 0
    """The most rows of this table after a run."""
    forgets: int = 0
    compacts: int = 0

    def count_rows(self, before: RecentRows, after: RecentRows) -> None:
        """Count what a run, whether killed or not, did to the recent points."""
        gone = len(before - after)
        self.moves += gone > 0
        self.moved += gone
        self.most_rows = max(self.most_rows, len(after))

    def count_kill(self, after: RecentRows, cost: int) -> None:
        """Count a kill that cost so many requests."""
        self.kills += 1
        self.with_recent += bool(after)
        self.with_several += cost > 1

    def missing(self) -> list[str]:
        """The states without which a campaign of a wide plant proves nothing."""
        wanted = {
            "no kill left recent points": self.with_recent,
            "no run moved recent points into blocks": self.moves,
        }
        return [text for text, count in wanted.items() if not count]

    def __str__(self) -> str:
        """A line for people."""
        return (
            f"{self.kills} kills: {self.with_recent} left recent points, {self.with_several} cost "
            f"several requests, {self.in_move} were in a page that moves recent points; "
            f"{self.moves} runs moved {self.moved} rows of recent points into blocks, of at most "
            f"{self.most_rows}; {self.forgets} forgets, {self.compacts} compacts"
        )
