"""The command `omen`: parse, call, print. A file is named after its command, and holds no logic.

`main.py` puts the commands together and turns errors into one line and exit code 2. What commands share: `arguments.py`
(kinds of values), `declared_options.py` and `system_options.py` (what algorithms and systems declare that they may be
told), `spark_options.py`, `output.py` (tables for people, one JSON object for scripts), `progress.py`.
"""
