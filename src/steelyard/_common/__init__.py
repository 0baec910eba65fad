"""What every folder may use.

``settings`` declares and checks settings, by what is ``allowed``; ``checks`` has row
weights, warnings and where rows are, ``threads`` blocks of rows, ``progress`` bars,
``files`` atomic writes and temporary folders, ``text`` and ``html`` their output.
``one_cell`` says what a single cell may be, ``agreed`` what classes, files and exports
have in common; ``later`` loads modules when they are used.
"""
