"""python -m omen.cli"""

from __future__ import annotations

import sys

from omen.cli.main import main

sys.exit(main())
