"""SpiderCast (Chockler, Melamed, Tock, Vitenberg 2007) as a second core, and its rivals in the same code."""
