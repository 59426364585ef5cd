#!/usr/bin/env python3
"""Runs the tests of the CI kit, or says why it cannot. DEADHEAT_NO_SKIP=1 makes that a failure."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
try:
    import yaml  # noqa: F401
except ImportError:
    print("ci: SKIPPED: python3 has no yaml; scripts/setup.sh installs it (python3-yaml)", file=sys.stderr)
    sys.exit(os.environ.get("DEADHEAT_NO_SKIP") == "1")
here = os.path.dirname(os.path.abspath(__file__))
suite = unittest.defaultTestLoader.discover(here)
sys.exit(not unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful())
