"""``python -m nfgnn`` is ``nfgnn``."""

from nfgnn.cli import main

if __name__ == "__main__":
    main()
