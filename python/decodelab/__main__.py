"""`python -m decodelab` is the command `decodelab`."""

from decodelab.launcher import main

main()
