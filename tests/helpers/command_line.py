"""Call the command line in this process."""

import sys

import pytest

from nfgnn.cli import main


def main_status(*arguments: str) -> object:
    """Run ``nfgnn ARGUMENTS`` and return its exit status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["nfgnn", *arguments])
        try:
            main()
        except SystemExit as stop:
            return stop.code or 0
    return 0
