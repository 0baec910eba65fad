"""The default's weights: a hierarchy with strengths, chosen on rows that are held out.

``strengths`` compares strengths and ``column_pairs`` on the folds of ``held_out``, of
rows that ``row_sample`` draws. ``preconditioner`` has units for the weights of a
hierarchy, and for those of wide tables within bounds.
"""
