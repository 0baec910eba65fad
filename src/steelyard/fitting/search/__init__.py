"""Methods that search, for attributes or by what rows they get right.

``left_out`` scores training rows without refitting (``left_out_numbers`` for
densities); ``forward_search`` is that of SPSS.
"""
