"""What every folder may use.

``settings`` declares and checks settings; ``checks`` has row weights and warnings,
``threads`` blocks of rows, ``progress`` bars, ``files`` atomic writes, ``text`` and
``html`` their output.
"""
