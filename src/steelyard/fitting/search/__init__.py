"""Methods that search, for attributes or by what rows they get right.

``left_out`` scores training rows without refitting; ``forward_search`` is that of SPSS.
"""
