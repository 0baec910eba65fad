"""What is odd about rows: at fit, in new rows, in rows to evaluate on.

``notice`` has the one kind of object and how lists of them are put in order;
``new_rows`` the rules for new rows, with the standard library alone, and ``check``
reads tables for them; ``training`` and ``training_look`` those at fit, from what is
counted already; ``row_sketch`` has hashes of training rows.
"""

from steelyard.notices.notice import Notice as Notice
