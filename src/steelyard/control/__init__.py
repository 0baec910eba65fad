"""Control of a fitted model: a scorecard of whole points, and edits that are recorded.

Whoever adds up the points of a card needs no computer. ``card`` is what it contains and
is written as, ``scorecard`` how it is made, ``card_cells`` how cells are merged and
rounded; ``edits`` are changes by hand.
"""
