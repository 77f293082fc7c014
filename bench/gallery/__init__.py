"""The gallery: real frameworks, each trained tiny on the CPU under trainwatch, with faults (``bench/frameworks.py``).

``row.py`` says what a row is, ``rows/`` has one file for each family of frameworks, ``faults.py`` what is done to them,
``injected/`` the code that counts the optimizer's steps and makes the faults inside the trainer, ``supervised.py`` one
run under trainwatch, ``loops.py`` the same under an ``until`` loop, ``verdicts.py`` what is compared, ``table.py`` what
is printed and written into the documentation.
"""
