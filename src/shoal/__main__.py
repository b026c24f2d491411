"""``python -m shoal`` is the command ``shoal``."""

from shoal._cli import main

if __name__ == "__main__":
    main()
